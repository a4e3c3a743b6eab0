"""How requests are matched, read and rejected before a service function is called (contract, sections 1 to 3)."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.core.test_uploads import form, picture
from tests.support.client import UNKNOWN, CoachClient
from tests.support.logs import recorded_logs
from tests.support.other_process import AsServed


@pytest.mark.parametrize("identifier", ["%7B", "%7D", "a%7Db", "%7Bid%7D"])
async def test_identifier_with_braces_is_malformed(coach: CoachClient, identifier: str) -> None:
    (await coach.get(f"/coach/customers/{identifier}")).refused(400, "customerId")
    path = f"/coach/customers/{(await coach.create_customer())['_id']}/personal-records/{identifier}"
    assert (await coach.delete(path)).refused(500)["code"] == "PERSONAL_RECORD_ID_INVALID"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH", "OPTIONS"])
async def test_other_method_on_a_literal_path_is_405(coach: CoachClient, method: str) -> None:
    """A literal path matches first: `shift` is not an identifier of a block, which has these methods."""
    reply = await coach.send(method, f"/coach/customers/{UNKNOWN}/wblocks/shift")
    assert reply.refused(405)["code"] == "METHOD_NOT_ALLOWED"
    assert reply.headers["Allow"] == "POST"


async def test_other_method_on_a_path_with_identifiers_lists_its_methods(coach: CoachClient) -> None:
    reply = await coach.send("PUT", f"/coach/customers/{UNKNOWN}/wblocks/{UNKNOWN}")
    reply.refused(405)
    assert reply.headers["Allow"] == "DELETE, GET, HEAD, PATCH"


async def test_urlencoded_body_is_415_where_multipart_is_documented(coach: CoachClient) -> None:
    path = f"/coach/customers/{(await coach.create_customer())['_id']}/progress-photos"
    reply = await coach.send("POST", path, data={"createdAt": "2026-03-02", "imageSideIndex": "1"})
    assert reply.refused(415)["code"] == "UNSUPPORTED_MEDIA_TYPE"


async def test_api_key_is_accepted_as_a_bearer(coach: CoachClient, anonymous: CoachClient) -> None:
    """Contract 2: all rules of keys apply, a bad one is 401 `{message: "Invalid API key"}`."""
    me = (await coach.with_bearer(str(coach.key)).get("/me")).ok()
    assert me["via"] == "apiKey"
    assert (await coach.with_bearer(str(coach.key)).get("/coach/api-keys")).refused(403)["code"] == "SESSION_REQUIRED"
    for key in ("cs_ak_" + "A" * 43, "cs_ak_", "cs_test_" + "A" * 43):
        bad = {"Authorization": f"Bearer {key}"}
        assert (await anonymous.send("GET", "/me", headers=bad)).refused(401) == {"message": "Invalid API key"}
        assert (await coach.send("GET", "/me", headers=bad)).refused(401) == {"message": "Invalid API key"}


async def test_version_of_a_progress_photo_is_checked(coach: CoachClient) -> None:
    path = f"/coach/customers/{(await coach.create_customer())['_id']}/progress-photos"
    data = form(picture(), createdAt="2026-03-02", imageSideIndex="1")
    photo = (await coach.send("POST", path, data=data)).ok(201)

    def replacement(version: object) -> Any:
        return form(picture("PNG"), imageSideIndex="1", version=str(version))

    place = f"{path}/{photo['_id']}"
    changed = (await coach.send("PUT", place, data=replacement(photo["version"]))).ok()
    assert changed["version"] == photo["version"] + 1
    stale = (await coach.send("PUT", place, data=replacement(photo["version"]))).refused(409)
    assert stale["code"] == "VERSION_CONFLICT"
    (await coach.send("PUT", place, data=replacement("x"))).refused(400, "version must be an integer")


async def test_version_of_a_profile_photo_is_checked(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    path = f"/coach/customers/{customer['_id']}/profile-photo"

    def photo(version: int) -> Any:
        return form(picture(), "profilePhotoFile", version=str(version))

    changed = (await coach.send("PUT", path, data=photo(customer["version"]))).ok()
    stale = (await coach.send("PUT", path, data=photo(customer["version"]))).refused(409)
    assert stale["code"] == "VERSION_CONFLICT"
    assert (await coach.get(f"/coach/customers/{customer['_id']}")).ok()["profilePhotoUrl"]
    assert changed["version"] > customer["version"]


async def test_connection_closes_after_413(as_served: AsServed, coach: CoachClient) -> None:
    url = urlsplit(str(as_served.make_url("/")))
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        head = (
            f"POST /coach/customers HTTP/1.1\r\nHost: x\r\nX-API-Key: {coach.key}\r\nContent-Type: application/json\r\n"
        )
        writer.write(head.encode() + b"Content-Length: 2000000\r\n\r\n" + b" " * 2_000_000)
        response = await reader.read()
        writer.close()
    assert response.startswith(b"HTTP/1.1 413")
    assert b"Connection: close" in response.partition(b"\r\n\r\n")[0]


@pytest.mark.parametrize(("key", "status"), [("", 401), ("of the coach", 400)])
@pytest.mark.parametrize(("encoding", "body"), [("gzip", b"this is not gzip"), ("deflate", b"\xff\xff\xff")])
async def test_undecodable_body_is_one_log_line(
    as_served: AsServed,
    coach: CoachClient,
    encoding: str,
    body: bytes,
    key: str,
    status: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also where the body is not read: nothing else about the request is logged."""
    url = urlsplit(str(as_served.make_url("/")))
    with recorded_logs() as logs:
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            head = (
                f"POST /coach/customers HTTP/1.1\r\nHost: x\r\nX-API-Key: {coach.key if key else ''}\r\n"
                "X-Request-Id: undecodable\r\nContent-Type: application/json\r\nConnection: close\r\n"
                f"Content-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            response = await reader.read()
            writer.close()
    assert int(response.split()[1]) == status
    if status == 400:
        assert json.loads(response.partition(b"\r\n\r\n")[2])["code"] == "MALFORMED_BODY"
    lines = [entry for entry in logs if entry.get("request_id") == "undecodable"]
    assert [(line["event"], line["status"]) for line in lines] == [("request", status)]
    assert caplog.records == []
