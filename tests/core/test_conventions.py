"""The conventions of every operation: queries, bodies, errors, retries (contract 1 and 3)."""

from __future__ import annotations

import asyncio
import io
import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import employee_key

LISTS = ["/coach/customers", "/exercises/unified", "/exercises", "/coach/programs"]
NUMERIC = "Validation failed (numeric string is expected)"
BOOLEAN = "Validation failed (boolean string is expected)"


def page(path: str, **query: Any) -> dict[str, Any]:
    base = {"archived": "false"} if path.startswith("/coach") else {}
    return {**base, "pageSize": 20, "pageNum": 1, **query}


@pytest.mark.parametrize("path", LISTS)
async def test_numeric_strings_are_converted_before_validation(coach: CoachClient, path: str) -> None:
    """Contract 1: pageNum=1e0, pageSize=2e1 is accepted as page 1 with 20 items."""
    response = (await coach.get(path, **page(path, pageNum="1e0", pageSize="2e1"))).ok()
    assert (response["page"], response["limit"]) == (1, 20)
    for size in ("+5", "5.0", "50e-1", "0.5e1"):
        assert (await coach.get(path, **page(path, pageSize=size))).ok()["limit"] == 5


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("bad", ["", "abc", "1.5", "1_0", "0x10", "NaN", "Infinity", "1e", "٣", " 5", "1,0", "true"])
async def test_an_invalid_integer_has_the_message_of_the_specification(coach: CoachClient, path: str, bad: str) -> None:
    """Contract 3: 400 with message `Validation failed (numeric string is expected)`, error `Bad Request`."""
    for name in ("pageSize", "pageNum"):
        error = (await coach.get(path, **page(path, **{name: bad}))).refused(400)
        assert error == {"statusCode": 400, "message": NUMERIC, "error": "Bad Request"}


@pytest.mark.parametrize("path", LISTS)
async def test_page_size_and_number_are_required_and_limited(coach: CoachClient, path: str) -> None:
    """Contract 1: `pageSize` 1 to 50, no default; `pageNum` starts at 1, no default."""
    for missing in ("pageSize", "pageNum"):
        query = page(path)
        del query[missing]
        assert (await coach.get(path, **query)).refused(400)["message"] == NUMERIC
    for name, value in [("pageSize", 0), ("pageSize", 51), ("pageSize", -1), ("pageNum", 0), ("pageNum", "1e400")]:
        (await coach.get(path, **page(path, **{name: value}))).refused(400)
    for name, value in [("pageSize", 1), ("pageSize", 50), ("pageNum", 7)]:
        (await coach.get(path, **page(path, **{name: value}))).ok()


async def test_a_boolean_other_than_true_is_false(coach: CoachClient) -> None:
    """Contract 1: a supplied non-boolean value such as `yes` for a boolean query is coerced to false."""
    await coach.create_customer("Active")
    archived = await coach.create_customer("Archived")
    await coach.put("/coach/customers/archive", {"id": archived["_id"]})

    assert await coach.names(archived="true") == ["Archived"]
    for other in ("false", "yes", "TRUE", "1", "0", "no", "null"):
        assert await coach.names(archived=other) == ["Active"]
    for query in ({"archived": ""}, {}):
        error = (await coach.get("/coach/customers", pageSize=1, pageNum=1, **query)).refused(400)
        assert error == {"statusCode": 400, "message": BOOLEAN, "error": "Bad Request"}


@pytest.mark.parametrize("name", ["archived", "pageSize", "pageNum", "contains"])
async def test_a_repeated_scalar_is_refused(coach: CoachClient, name: str) -> None:
    query = page("/coach/customers", contains="a")
    (await coach.get("/coach/customers", **(query | {name: [query[name], query[name]]}))).refused(400, name)


async def test_unknown_query_parameters_are_ignored(coach: CoachClient) -> None:
    (await coach.get("/coach/customers", **page("/coach/customers"), page=3, search="x", **{"$where": "1"})).ok()


async def test_query_operators_never_reach_the_database(coach: CoachClient) -> None:
    await coach.create_customer()
    for parameter in ("groups[$ne]", "contains[$regex]", "archived[$ne]", "assignedTo[$ne]"):
        where = {"archived": "false", "pageSize": 1, "pageNum": 1, parameter: "x"}
        (await coach.get("/coach/customers", **where)).refused(400, "brackets")
    assert await coach.names(groups='{"$ne": null}') == []
    (await coach.patch(f"/coach/customers/{UNKNOWN}", {"name": {"$gt": ""}})).refused(400, "name")


async def test_a_body_must_be_a_json_object_sent_as_json(coach: CoachClient) -> None:
    async def send(data: bytes, content_type: str = "application/json") -> Any:
        return await coach.send("POST", "/coach/customers", data=data, headers={"Content-Type": content_type})

    for malformed in (b"", b"{", b"nope", b"[1]", b'"x"', b"null", b"\xff\xfe", b'{"name": NaN}', b'{"a":' * 5000):
        (await send(malformed)).refused(400)
    (await coach.send("POST", "/coach/customers")).refused(400, "must be a JSON object")
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/form-data"):
        (await send(b'{"name": "A"}', content_type)).refused(415, "application/json")
    (await send(b'{"name": "A"}', "application/json; charset=utf-8")).ok(201)
    assert (await coach.customers())["totalDocs"] == 1


async def test_a_body_over_the_limit_is_refused_with_or_without_a_length(coach: CoachClient) -> None:
    body = b'{"name": "' + b"a" * 1_100_000 + b'"}'

    async def chunks() -> Any:
        for at in range(0, len(body), 50_000):
            yield body[at : at + 50_000]

    headers = {"Content-Type": "application/json"}
    (await coach.send("POST", "/coach/customers", data=io.BytesIO(body), headers=headers)).refused(413)
    (await coach.send("POST", "/coach/customers", data=chunks(), headers=headers)).refused(413)
    (
        await coach.send(
            "POST", "/coach/customers", data=b"\x1f\x8b not gzip", headers=headers | {"Content-Encoding": "gzip"}
        )
    ).refused(400)
    assert (await coach.customers())["totalDocs"] == 0


async def test_an_unknown_path_and_a_wrong_method(coach: CoachClient) -> None:
    """Contract 1: 404 `{statusCode, message: "Cannot GET /x", error: "Not Found", code: "ROUTE_NOT_FOUND"}`; 405 with `Allow`."""
    for path in ("/x", "/coach", "/coach/customers/", "/coach//customers", "/.env", "/coach/customers/a/b/c"):
        error = (await coach.get(path)).refused(404)
        message = f"Cannot GET {path}"
        assert error == {"statusCode": 404, "message": message, "error": "Not Found", "code": "ROUTE_NOT_FOUND"}
    reply = await coach.put("/coach/customers")
    assert reply.refused(405)["error"] == "Method Not Allowed"
    assert reply.headers["Allow"] == "GET, HEAD, POST"


async def test_head_answers_like_get_without_a_body(coach: CoachClient) -> None:
    reply = await coach.send("HEAD", "/me")
    assert (reply.status, reply.raw) == (200, b"")


@pytest.mark.parametrize(
    "malformed", ["1", "zz3456789abcdef012345678", UNKNOWN + "0", "%24ne", "me", "%00", "%7B", "a%7Db"]
)
async def test_a_malformed_identifier_names_its_parameter(coach: CoachClient, malformed: str) -> None:
    """Contract 1: malformed identifier in a path, query or body: 400, naming the parameter."""
    (await coach.get(f"/coach/customers/{malformed}")).refused(400, "customerId")
    ana = await coach.create_customer()
    (await coach.get(f"/coach/customers/{ana['_id']}/wblocks/{malformed}")).refused(400, "wblockId")
    (await coach.get(f"/exercises/{malformed}")).refused(400, "exerciseId")


async def test_every_response_has_a_request_id(coach: CoachClient, anonymous: CoachClient) -> None:
    """Contract 1: the caller's if it is 1 to 128 of `[A-Za-z0-9._-]`."""

    async def request_id(sent: str) -> str:
        reply = await coach.send("GET", "/me", headers={"X-Request-Id": sent})
        return str(reply.headers["X-Request-Id"])

    assert await request_id("trace-1_A.b") == "trace-1_A.b"
    assert await request_id("x" * 128) == "x" * 128
    for invalid in ("x" * 129, "a b", "a;b", "é", ""):
        assert re.fullmatch(r"[0-9a-f]{32}", await request_id(invalid))
    for reply in (await anonymous.get("/me"), await anonymous.get("/nowhere"), await anonymous.get("/healthz")):
        assert reply.headers["X-Request-Id"]


async def test_identifiers_and_times_have_the_format_of_the_contract(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    assert re.fullmatch(r"[0-9a-f]{24}", ana["_id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", ana["createdAt"])


async def test_responses_are_not_cached(coach: CoachClient) -> None:
    headers = (await coach.get("/me")).headers
    assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
    assert headers["Server"] == "coaching-service"


class TestSafeRetries:
    """Contract 1: the same key and body returns the first 2xx answer again, executed once."""

    @staticmethod
    async def create(coach: CoachClient, key: str, body: Any, path: str = "/coach/customers") -> Any:
        return await coach.post(path, body, headers={"Idempotency-Key": key})

    async def test_a_repeated_request_returns_the_first_answer(self, coach: CoachClient) -> None:
        first = await self.create(coach, "k1", {"name": "Ana", "email": "a@example.com"})
        second = await self.create(coach, "k1", {"email": "a@example.com", "name": "Ana"})

        assert first.ok(201) == second.ok(201)
        assert "Idempotent-Replayed" not in first.headers
        assert second.headers["Idempotent-Replayed"] == "true"
        assert (await coach.customers())["totalDocs"] == 1

    async def test_the_same_key_with_another_body_is_a_conflict(self, coach: CoachClient) -> None:
        (await self.create(coach, "k", {"name": "Ana"})).ok(201)
        (await self.create(coach, "k", {"name": "Bo"})).refused(409)
        assert await coach.names() == ["Ana"]

    async def test_a_key_is_bound_to_company_and_path(self, coach: CoachClient, other_company: CoachClient) -> None:
        ana = (await self.create(coach, "k", {"name": "Ana"})).ok(201)
        (await self.create(other_company, "k", {"name": "Bo"})).ok(201)
        (await self.create(coach, "k", {"name": "A"}, "/exercises")).ok(201)
        path = f"/coach/customers/{ana['_id']}/wblocks"
        (await self.create(coach, "k", {"name": "A", "date": "2026-03-02"}, path)).ok(201)
        assert await other_company.names() == ["Bo"]

    async def test_a_refused_request_can_be_corrected_and_sent_again(self, coach: CoachClient) -> None:
        (await self.create(coach, "k", {"name": ""})).refused(400)
        (await self.create(coach, "k", {"name": "A", "assignedTo": UNKNOWN})).refused(404)
        (await self.create(coach, "k", {"name": "A"})).ok(201)

    async def test_concurrent_requests_with_the_same_key_execute_once(self, coach: CoachClient) -> None:
        replies = await asyncio.gather(*(self.create(coach, "k", {"name": "Ana"}) for _ in range(12)))

        statuses = {reply.status for reply in replies}
        assert statuses <= {201, 409}
        assert len({reply.json["_id"] for reply in replies if reply.status == 201}) == 1
        assert (await coach.customers())["totalDocs"] == 1
        assert (await self.create(coach, "k", {"name": "Ana"})).headers["Idempotent-Replayed"] == "true"

    @pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
    async def test_a_malformed_key_is_refused(self, coach: CoachClient, key: str) -> None:
        (await self.create(coach, key, {"name": "Ana"})).refused(400, "Idempotency-Key")
        assert (await coach.customers())["totalDocs"] == 0

    async def test_an_answer_about_a_deleted_client_is_not_replayed(self, coach: CoachClient) -> None:
        """Contract 4: DELETE: 404 everywhere at once."""
        ana = (await self.create(coach, "k", {"name": "Ana"})).ok(201)
        path, body = f"/coach/customers/{ana['_id']}/wblocks", {"name": "A", "date": "2026-03-02"}
        (await self.create(coach, "k", body, path)).ok(201)

        (await coach.delete(f"/coach/customers/{ana['_id']}")).ok(204)

        (await self.create(coach, "k", body, path)).refused(404)
        assert (await self.create(coach, "k", {"name": "Ana"})).ok(201)["_id"] != ana["_id"]

    async def test_an_answer_is_not_replayed_to_a_coach_without_access(self, coach: CoachClient) -> None:
        """Contract 1: a client outside an employee's scope is 403."""
        created = (await self.create(coach, "k", {"name": "Ana"})).ok(201)
        eli = coach.with_key(await employee_key(coach, "customers.create", "customers.view"))
        (await self.create(eli, "k", {"name": "Ana"})).refused(403)
        assert (await self.create(coach, "k", {"name": "Ana"})).ok(201) == created

    async def test_a_stored_answer_is_encrypted(self, coach: CoachClient) -> None:
        created = (await self.create(coach, "k", {"name": "Secretive"})).ok(201)
        [stored] = await coach.ctx.db["replays"].find({"companyId": coach.ctx.company_id}).to_list(None)
        assert str(stored["about"]) == created["_id"]
        assert b"Secretive" not in stored["answer"]
        assert created["firstAccessToken"].encode() not in stored["answer"]

    async def test_a_stored_answer_expires_after_a_day(self, coach: CoachClient) -> None:
        first = (await self.create(coach, "k", {"name": "Ana"})).ok(201)
        replays = coach.ctx.db["replays"]
        [stored] = await replays.find({"companyId": coach.ctx.company_id}).to_list(None)
        yesterday = stored["createdAt"] - timedelta(hours=24, seconds=1)
        await replays.update_one({"_id": stored["_id"]}, {"$set": {"createdAt": yesterday}})

        assert (await self.create(coach, "k", {"name": "Ana"})).ok(201)["_id"] != first["_id"]


async def test_a_literal_path_is_not_taken_for_an_identifier(coach: CoachClient) -> None:
    for method, path, allowed in [
        ("GET", "/coach/customers/archive", "PUT"),
        ("DELETE", "/coach/customers/groups", "GET, HEAD"),
        ("POST", "/exercises/unified", "GET, HEAD"),
        ("PATCH", "/exercises/unified", "GET, HEAD"),
    ]:
        reply = await coach.send(method, path)
        reply.refused(405)
        assert reply.headers["Allow"] == allowed


async def test_an_idempotency_key_ignores_the_case_of_path_identifiers(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    body, key = {"name": "A", "date": "2026-03-02"}, {"Idempotency-Key": "k"}
    first = await coach.post(f"/coach/customers/{ana['_id']}/wblocks", body, headers=key)
    again = await coach.post(f"/coach/customers/{ana['_id'].upper()}/wblocks", body, headers=key)
    assert first.ok(201) == again.ok(201)
