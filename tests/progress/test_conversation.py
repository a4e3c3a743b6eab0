"""Messages between a client and the coaches: contract, section 12."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.support.client import MONDAY, UNKNOWN, CoachClient
from tests.support.training import Json, block_with, client_path, employee_key, hide, task

OWN = "/customer/messages"


async def send(coach: CoachClient, customer: Json, text: str = "Hello", **fields: Any) -> Json:
    message: Json = (await coach.post(client_path(customer, "messages"), {"text": text, **fields})).ok(201)
    return message


async def send_own(client: CoachClient, text: str = "Hello, coach", **fields: Any) -> Json:
    message: Json = (await client.post(OWN, {"text": text, **fields})).ok(201)
    return message


async def read(coach: CoachClient, customer: Json, **query: Any) -> Json:
    page: Json = (await coach.get(client_path(customer, "messages"), **query)).ok()
    return page


async def conversations(coach: CoachClient, **query: Any) -> list[tuple[str, str | None, int]]:
    """The name of the client, the text of the last message and the number of unread ones, of each conversation."""
    page = (await coach.get("/coach/conversations", **query)).ok()
    return [(each["customer"]["name"], each["lastMessage"]["text"], each["unread"]) for each in page["docs"]]


async def test_client_and_coach_see_the_same_conversation_newest_first(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Flores")
    client = await coach.as_client(ana)

    first = await send(coach, ana, "  How was it?\nTell me.  ")
    second = await send_own(client, "Heavy <b>but</b> fine")

    assert first == {
        "_id": first["_id"],
        "customerId": ana["_id"],
        "author": {"type": "key", "_id": str(coach.ctx.caller.id), "name": "Olga Owner"},
        "text": "How was it?\nTell me.",
        "about": None,
        "attachments": [],
        "createdAt": first["createdAt"],
        "updatedAt": first["createdAt"],
        "editedAt": None,
        "readAt": None,
        "deliverAt": None,
        "notDelivered": None,
        "version": 0,
    }
    assert second["author"] == {"type": "client", "_id": ana["_id"], "name": "Ana"}
    assert second["text"] == "Heavy <b>but</b> fine", "plain text is stored as it is"
    page = {"docs": [second, first], "nextCursor": None, "hasMore": False}
    assert await read(coach, ana) == page == (await client.get(OWN)).ok()
    session = await coach.interactive()
    assert (await send(session, ana))["author"]["type"] == "coach"


@pytest.mark.parametrize("text", ["", "  \n", None, 5, "x" * 5_001])
async def test_message_needs_a_text_of_at_most_5000_characters(coach: CoachClient, text: object) -> None:
    ana = await coach.create_customer()
    (await coach.post(client_path(ana, "messages"), {"text": text})).refused(400)
    assert len((await send(coach, ana, "x" * 5_000))["text"]) == 5_000


async def test_walking_with_the_cursor_meets_every_message_once(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    sent = [(await send(coach, ana, str(number)))["_id"] for number in range(7)]
    await coach.ctx.db[
        "messages"
    ].update_many(  # in one millisecond: ties are broken by the identifier
        {"_id": {"$in": [ObjectId(each) for each in sent[:4]]}}, {"$set": {"createdAt": now()}}
    )
    walked: list[str] = []
    query: Json = {"limit": 2}
    while True:
        page = await read(coach, ana, **query)
        walked += [message["_id"] for message in page["docs"]]
        assert page["hasMore"] is (page["nextCursor"] is not None)
        if not page["hasMore"]:
            break
        query["after"] = page["nextCursor"]
        await send(coach, ana, "later")

    assert sorted(walked) == sorted(sent)
    assert [len(page["docs"]), page["nextCursor"]] == [1, None]
    cursor = (await read(coach, ana, limit=1))["nextCursor"]
    other_filters: list[tuple[Json, dict[str, str]]] = [(bo, {}), (ana, {"wblockId": UNKNOWN})]
    for customer, other in other_filters:
        refused = await coach.get(client_path(customer, "messages"), after=cursor, **other)
        assert refused.refused(400, "after")["errors"][0]["code"] == "INVALID_CURSOR"
    for malformed in ("x", "", cursor[:-2], cursor.partition(".")[0], f"x{cursor}"):
        (await coach.get(client_path(ana, "messages"), after=malformed)).refused(400, "after")
    (await coach.get("/coach/conversations", after=cursor)).refused(400, "after")
    for limit in ("0", "101", "x", ""):
        (await coach.get(client_path(ana, "messages"), limit=limit)).refused(400)


async def test_what_one_coach_has_read_is_read_for_the_company(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    client, other = await coach.as_client(ana), await coach.as_client(bo)
    assert await conversations(coach) == []
    for text in ("one", "two"):
        await send_own(client, text)
    await send(coach, bo, "How are you?")
    assert await conversations(coach) == [("Bo", "How are you?", 0), ("Ana", "two", 2)]
    assert await conversations(coach, unread="true") == [("Ana", "two", 2)]
    assert await conversations(coach, unread="false") == [("Bo", "How are you?", 0)]
    colleague = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))

    read_state = (await colleague.put(client_path(ana, "messages", "read"))).ok()

    assert (read_state["customer"], read_state["unread"]) == ({"_id": ana["_id"], "name": "Ana"}, 0)
    assert await conversations(coach, unread="true") == []
    messages = (await read(coach, ana))["docs"]
    assert all(message["readAt"] for message in messages)
    assert [message["version"] for message in messages] == [0, 0], "reading does not change the version"
    assert (await colleague.put(client_path(ana, "messages", "read"))).ok() == read_state
    assert (await read(coach, ana))["docs"] == messages, "the time of the first reading stays"
    assert (await read(coach, bo))["docs"][0]["readAt"] is None, "only the client reads what coaches write"
    assert (await other.put(f"{OWN}/read")).ok()["unread"] == 0
    assert (await read(coach, bo))["docs"][0]["readAt"] is not None


async def test_conversation_without_messages_has_nothing_to_read(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    empty = {"customer": {"_id": ana["_id"], "name": "Ana"}, "lastMessage": None, "unread": 0}
    assert (await coach.put(client_path(ana, "messages", "read"))).ok() == empty
    assert await read(coach, ana) == {"docs": [], "nextCursor": None, "hasMore": False}


async def test_only_the_author_changes_and_deletes_a_message(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    client = await coach.as_client(ana)
    mine, own = await send(coach, ana, "five sets"), await send_own(client, "six sets")
    colleague = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    path, own_path = client_path(ana, "messages", mine["_id"]), client_path(ana, "messages", own["_id"])
    for caller, target in ((colleague, path), (coach, own_path), (client, f"{OWN}/{mine['_id']}")):
        assert (await caller.patch(target, {"text": "x"})).refused(403)["code"] == "NOT_THE_AUTHOR"
        assert (await caller.delete(target)).refused(403)["code"] == "NOT_THE_AUTHOR"

    edited = (await coach.patch(path, {"text": "four sets", "version": 0})).ok()

    assert (edited["text"], edited["version"], edited["createdAt"]) == ("four sets", 1, mine["createdAt"])
    assert edited["editedAt"] is not None
    (await coach.patch(path, {"text": "x", "version": 0})).refused(409)
    assert (await coach.patch(path, {"text": "four sets"})).ok() == edited, "the same text is not a change"
    (await coach.patch(path, {"text": " "})).refused(400)
    (await client.patch(f"{OWN}/{own['_id']}", {"text": "7 sets"})).ok()
    (await client.delete(f"{OWN}/{own['_id']}")).ok(204)

    deleted, unchanged = (await read(coach, ana))["docs"]
    assert (deleted["_id"], deleted["text"], deleted["attachments"]) == (own["_id"], None, [])
    assert unchanged == edited
    for again in (await client.delete(f"{OWN}/{own['_id']}"), await client.patch(f"{OWN}/{own['_id']}", {"text": "x"})):
        again.refused(404, "Message")
    assert "7 sets" not in str(await coach.ctx.db["messages"].find_one({"_id": ObjectId(own["_id"])}))


async def test_colleague_cannot_change_what_was_typed_in_a_session(
    coach: CoachClient, interactive: CoachClient
) -> None:
    """Neither with a key nor in a session; the author may in either."""
    ana = await coach.create_customer()
    message = (await interactive.post(client_path(ana, "messages"), {"text": "five sets"})).ok(201)
    path = client_path(ana, "messages", message["_id"])
    assert message["author"]["type"] == "coach"
    key = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    employee = await coach.ctx.db["coaches"].find_one({"companyId": coach.ctx.company_id, "role": "EMPLOYEE"})
    assert employee is not None
    tokens = await sessions.create_session(coach.ctx, employee["_id"], "coach")
    for colleague in (key, coach.with_bearer(tokens["accessToken"])):
        assert (await colleague.patch(path, {"text": "x"})).refused(403)["code"] == "NOT_THE_AUTHOR"
        assert (await colleague.delete(path)).refused(403)["code"] == "NOT_THE_AUTHOR"
    assert (await coach.patch(path, {"text": "four sets"})).ok()["text"] == "four sets"
    (await interactive.delete(path)).ok(204)


async def test_deleted_message_is_no_longer_unread(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    first, second = await send_own(client, "one"), await send_own(client, "two")
    (await client.delete(f"{OWN}/{first['_id']}")).ok(204)
    assert await conversations(coach) == [("Ana", "two", 1)]
    (await client.delete(f"{OWN}/{second['_id']}")).ok(204)
    assert await conversations(coach, unread="true") == []
    assert await conversations(coach) == [("Ana", None, 0)]


async def test_message_comments_on_a_block_or_an_item(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    block, other = await block_with(coach, ana, task()), await block_with(coach, bo, task())
    item = block["items"][0]
    about_block = await send(coach, ana, "Nice", about={"wblockId": block["_id"]})
    about_item = await send(coach, ana, "Nice walk", about={"wblockId": block["_id"], "witemId": item["_id"]})
    await send(coach, ana, "About nothing", about=None)

    assert about_block["about"] == {"wblockId": block["_id"], "witemId": None}
    assert about_item["about"] == {"wblockId": block["_id"], "witemId": item["_id"]}
    assert (await read(coach, ana, wblockId=block["_id"]))["docs"] == [about_item, about_block]
    path = client_path(ana, "messages")
    for about in (
        {"wblockId": UNKNOWN},
        {"wblockId": other["_id"]},
        {"wblockId": block["_id"], "witemId": other["items"][0]["_id"]},
    ):
        (await coach.post(path, {"text": "x", "about": about})).refused(404)
    (await coach.post(path, {"text": "x", "about": {"wblockId": "malformed"}})).refused(400, "about.wblockId")


async def test_client_cannot_comment_on_a_hidden_day(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block, client = await block_with(coach, ana, task()), await coach.as_client(ana)
    comment = {"text": "Too much", "about": {"wblockId": block["_id"]}}
    await hide(coach, ana, MONDAY)
    (await client.post(OWN, comment)).refused(404, "Workout block")
    (await coach.post(client_path(ana, "messages"), comment)).ok(201)


async def test_impersonation_reads_and_changes_nothing(coach: CoachClient, interactive: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    own = await send_own(await coach.as_client(ana))
    message = await send(coach, ana)
    token = (await interactive.post(client_path(ana, "impersonate"))).ok()["accessToken"]
    impersonation = coach.with_bearer(token)

    assert (await impersonation.get(OWN)).ok()["docs"] == [message, own]
    for reply in (
        await impersonation.post(OWN, {"text": "x"}),
        await impersonation.patch(f"{OWN}/{own['_id']}", {"text": "x"}),
        await impersonation.delete(f"{OWN}/{own['_id']}"),
    ):
        assert reply.refused(403)["code"] == "IMPERSONATED"
    assert (await impersonation.put(f"{OWN}/read")).ok()["unread"] == 1
    assert (await read(coach, ana))["docs"] == [message, own]


async def test_employee_sees_only_the_conversations_of_assigned_clients(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    key = await employee_key(coach, "customers.view", "customers.edit")
    employee = await coach.ctx.db["coaches"].find_one({"companyId": coach.ctx.company_id, "role": "EMPLOYEE"})
    assert employee is not None
    (await coach.patch(f"/coach/customers/{bo['_id']}", {"assignedTo": str(employee["_id"])})).ok()
    for customer in (ana, bo):
        await send_own(await coach.as_client(customer))
    scoped = coach.with_key(key)

    assert await conversations(scoped) == await conversations(scoped, unread="true") == [("Bo", "Hello, coach", 1)]
    (await scoped.get(client_path(ana, "messages"))).refused(403)
    (await scoped.post(client_path(ana, "messages"), {"text": "x"})).refused(403)
    (await scoped.put(client_path(ana, "messages", "read"))).refused(403)


async def test_conversations_are_walked_with_the_cursor(coach: CoachClient, other_company: CoachClient) -> None:
    for number in range(5):
        await send(coach, await coach.create_customer(f"Client {number}"))
    await send(other_company, await other_company.create_customer("Stranger"))
    names: list[str] = []
    query: Json = {"limit": 2}
    while query.get("after", "") is not None:
        page = (await coach.get("/coach/conversations", **query)).ok()
        names += [each["customer"]["name"] for each in page["docs"]]
        query["after"] = page["nextCursor"]
    assert names == [f"Client {number}" for number in reversed(range(5))]


async def test_conversation_of_a_deleted_client_disappears_at_once(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    await send(coach, bo)
    await send_own(await coach.as_client(ana))
    (await coach.delete(f"/coach/customers/{ana['_id']}")).ok(204)
    assert await conversations(coach) == [("Bo", "Hello", 0)]


async def test_concurrent_messages_are_all_counted(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    await asyncio.gather(*(send_own(client, f"{n}") for n in range(8)), *(send(coach, ana) for _ in range(4)))
    [(_, _, unread)] = await conversations(coach)
    assert (unread, len((await read(coach, ana))["docs"])) == (8, 12)
    assert await coach.ctx.db["conversations"].count_documents({"customerId": ObjectId(ana["_id"])}) == 1


async def test_message_of_the_client_is_an_activity_and_that_of_the_coach_is_not(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    client = await coach.as_client(ana)
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(ana["_id"])}, {"$set": {"lastActivityDate": None}})
    await send(coach, ana)
    assert (await coach.get(f"/coach/customers/{ana['_id']}")).ok()["lastActivityDate"] is None
    await send_own(client)
    assert (await coach.get(f"/coach/customers/{ana['_id']}")).ok()["lastActivityDate"] is not None


async def test_repeated_request_with_a_key_sends_one_message(coach: CoachClient) -> None:
    """Two clients may use the same key: it belongs to the client whose session it is."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    for customer in (ana, bo):
        client = await coach.as_client(customer)
        first, second = [await client.post(OWN, {"text": "Done"}, headers={"Idempotency-Key": "one"}) for _ in range(2)]
        assert first.ok(201) == second.ok(201)
        assert second.headers["Idempotent-Replayed"] == "true"
        assert first.json["customerId"] == customer["_id"]
        assert len((await read(coach, customer))["docs"]) == 1


@pytest.mark.parametrize("field", ["text", "name"])
async def test_operators_in_input_do_not_reach_the_database(coach: CoachClient, field: str) -> None:
    ana = await coach.create_customer()
    await send(coach, ana)
    about = {"wblockId": {"$ne": None}}
    (await coach.post(client_path(ana, "messages"), {"text": {"$gt": ""}, "about": about})).refused(400)
    (await coach.post(client_path(ana, "messages"), {"text": "x", "attachments": [{"$ne": 1}]})).refused(400)
    assert (await read(coach, ana, **{f"{field}[$ne]": "x"}))["hasMore"] is False
    (await coach.get(client_path(ana, "messages"), wblockId="$ne")).refused(400, "wblockId")


# --- many clients ----------------------------------------------------------------------------------------------------

BULK = "/coach/customers/bulk/message"


async def test_a_message_has_no_characters_that_hide_or_turn_what_is_read(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    scotland = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
    text = f"Pay \u202e001\u202c \u2066now\u2069\U000e0048\U000e0069 {scotland}"
    sent = (await coach.post(client_path(ana, "messages"), {"text": text})).ok(201)
    assert sent["text"] == f"Pay 001 now {scotland}"
    (await coach.post(BULK, {"ids": [ana["_id"]], "text": text})).ok()
    assert [each["text"] for each in (await coach.get(client_path(ana, "messages"))).ok()["docs"]] == [sent["text"]] * 2
    (await coach.post(client_path(ana, "messages"), {"text": "\u202e\u2066"})).refused(400)


async def test_bulk_message_reaches_each_client_once(coach: CoachClient) -> None:
    names = [f"Client {number}" for number in range(8)]
    new = {"customers": [{"name": name} for name in names]}
    ids = [each["_id"] for each in (await coach.post("/coach/customers/batch", new)).ok()["results"]]
    body = {"ids": [*ids, ids[0], UNKNOWN], "text": "Closed on Monday."}

    dry_run = (await coach.post(BULK, body | {"dryRun": True})).ok()
    assert await conversations(coach) == []
    results = [(await coach.post(BULK, body, headers={"Idempotency-Key": "bulk"})).ok() for _ in range(2)]

    assert dry_run == results[0] == results[1]
    assert (results[0]["requested"], results[0]["ok"]) == (9, 8)
    assert [(failure["customerId"], failure["code"]) for failure in results[0]["failed"]] == [(UNKNOWN, "NOT_FOUND")]
    listed = await conversations(coach, limit=100)
    assert sorted(listed) == sorted((name, "Closed on Monday.", 0) for name in names)
    assert await coach.ctx.db["messages"].count_documents({"companyId": coach.ctx.company_id}) == 8


@pytest.mark.parametrize("body", [{}, {"text": " "}, {"text": "x" * 5_001}, {"text": "x", "about": None}])
async def test_bulk_message_is_validated(coach: CoachClient, body: Json) -> None:
    ana = await coach.create_customer()
    (await coach.post(BULK, {"ids": [ana["_id"]], **body})).refused(400)


async def test_bulk_message_fails_for_clients_outside_the_scope(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    scoped = coach.with_key(await employee_key(coach, "customers.view", "customers.edit"))
    result = (await scoped.post(BULK, {"ids": [ana["_id"]], "text": "x"})).ok()
    assert (result["ok"], result["failed"][0]["code"]) == (0, "FORBIDDEN")
