"""What each operation writes: its events, whether it can be undone, audited actions, and nothing that is free text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from marshmallow import ValidationError

from coaching_service import features
from coaching_service.core.errors import ServiceError
from coaching_service.core.http.request_parsing import validate_body
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.people.sessions import credentials
from tests.conftest import PASSWORD
from tests.contract.test_declared import call, client_for, fill_path, identifiers_for, put_identifiers
from tests.contract.test_policy import assert_same, in_order
from tests.people.test_second_factor import set_up
from tests.support import check_ins
from tests.support.assistants import authorize_assistant
from tests.support.authenticator import register
from tests.support.client import CoachClient, Reply
from tests.support.declared_world import World, make_world
from tests.support.logs import recorded_logs
from tests.support.training import block_with, exercise_of

# What no event and no line of the process log may contain, with the spelling that is searched by.
MARKERS = ("Zanzibar", "zanzibar")


class Log:
    """The documents of a company in a collection that the test has not seen yet."""

    def __init__(self, coach: CoachClient, collection: str) -> None:
        self.coach = coach
        self.collection = coach.ctx.db[collection]
        self.seen: set[object] = set()

    async def find_new(self) -> list[Any]:
        """The documents that were written since the last call."""
        unread = {
            "action": {"$nin": ["client.read", "list.read"]}
        }  # reads are stored later, and tested by test_areas.py
        where = {"companyId": self.coach.ctx.company_id, "_id": {"$nin": list(self.seen)}, **unread}
        documents = await self.collection.find(where).sort("_id", 1).to_list(None)
        self.seen.update(each["_id"] for each in documents)
        return documents


# Background jobs run meanwhile, and may write what earlier requests have started.
WRITTEN_BY_JOBS = {*features.STEPS, "importCompany", "undoImport"}
# What is approved is the operation of the assistant.
RECORDED_AS = {"approveProposal": "create_workout"}


async def test_every_operation_writes_the_events_and_audited_actions_of_the_policies(coach: CoachClient) -> None:
    """Every operation is called once; what it adds to the change log and to the audit is what the policies state.

    A marker is in every text of every operation; neither the events nor the process log have it.
    """
    world = await make_world(coach)
    requests = await requests_of(coach, world)
    log, audit = Log(coach, "changes"), Log(coach, "audit")
    await log.find_new()
    await audit.find_new()
    written, performed, stored, accepted = [], [], list[Any](), set[str]()
    routes = sorted(
        in_order(routes_of(features.ROUTES)),
        key=lambda each: list(requests).index(each.operation_id) if each.operation_id in requests else 100,
    )
    with recorded_logs() as entries:
        for route in routes:
            reply, sent = await _send(coach, route, world, requests.get(route.operation_id))
            if reply.status < 300 and MARKERS[0] in str(sent):
                accepted.add(route.operation_id)
            if changes := _of_request(reply, new := await log.find_new()):
                written.append(_line(route, reply, changes))
            stored += new
            performed += [f"{route.method} {route.path} {entry['action']}" for entry in await audit.find_new()]
    assert accepted >= TEXTS, TEXTS - accepted
    assert any(MARKERS[0] in str(change.get("patch")) for change in stored)
    assert [change["events"] for change in stored if contains_marker(change["events"])] == []
    page = await coach.get("/coach/events", limit=500)
    assert page.ok()["docs"] and not contains_marker(page.json)
    assert [entry for entry in entries if contains_marker(entry)] == []
    assert_same("events.txt", written)
    await authorize_assistant(coach.ctx)
    performed += [f"FORM /oauth/authorize {entry['action']}" for entry in await audit.find_new()]
    session = await coach.interactive()
    await set_up(session)
    performed += [f"POST /auth/second-factor/totp/confirm {entry['action']}" for entry in await audit.find_new()]
    await register(session)
    performed += [f"POST /auth/passkeys {entry['action']}" for entry in await audit.find_new()]
    (await session.delete("/auth/second-factor")).ok(204)
    performed += [f"DELETE /auth/second-factor {entry['action']}" for entry in await audit.find_new()]
    await credentials.change_password(session.ctx, PASSWORD, "another long password")
    performed += [f"FORM /app/settings/my-account {entry['action']}" for entry in await audit.find_new()]
    assert_same("audit.txt", performed)


async def _send(coach: CoachClient, route: Route, world: World, request: tuple[str, Any] | None) -> tuple[Reply, Any]:
    """Call an operation, and return its reply and its body: this one, or its example with a marker in every text.

    Where it is refused with a marker, as an address or a key is, without one.
    """
    client = await client_for(coach, route, world)
    if request is not None:
        path, body = request
        reply = await client.send(route.method, path or fill_path(route, world), json=body)
        assert reply.status < 300, (route.operation_id, reply.raw)
        return reply, body
    if route.body is not None and route.multipart is None and route.writes:
        body = _mark(route, _body(route, world))
        reply = await client.send(route.method, fill_path(route, world), json=body)
        assert reply.status < 500, (route.operation_id, body, reply.raw)
        if reply.status < 300:
            return reply, body
    reply = await call(coach, route, fill_path(route, world), world)
    assert reply.status < 500, f"{route.method} {route.path}: {reply.raw!r}"
    return reply, None


def _of_request(reply: Reply, changes: list[Any]) -> list[Any]:
    """The changes that a request wrote, without the changes of background jobs, which its reply does not name."""
    name = reply.headers.get("X-Change-Id")
    others = [each for each in changes if name not in (str(each["_id"]), str(each.get("batchId")))]
    assert {each["operation"] for each in others if each["via"] != "system"} <= WRITTEN_BY_JOBS, others
    return [each for each in changes if each not in others]


def _line(route: Route, reply: Reply, changes: list[Any]) -> str:
    """The line of the policy for a request: it wrote one change, or one for each client with a shared `batchId`."""
    identifier = changes[0].get("batchId", changes[0]["_id"])
    assert str(identifier) == reply.headers["X-Change-Id"], route.path
    assert len(changes) == 1 or {change["batchId"] for change in changes} == {identifier}, route.path
    assert len({change["customerId"] for change in changes}) == len(changes) or route.path.endswith("delete")
    assert {change["operation"] for change in changes} == {RECORDED_AS.get(route.operation_id, route.operation_id)}
    types = dict.fromkeys(event["type"] for change in changes for event in change["events"])
    for renewed in ("attention.raised", "attention.cleared"):  # they depend on when the application has renewed figures
        types.pop(renewed, None)
    final = [] if all(change["undoable"] for change in changes) else ["final"]
    return " ".join([route.method, route.path, *(types or ["-"]), *final])


async def requests_of(coach: CoachClient, world: World) -> dict[str, tuple[str, Any]]:
    """Path (or the route's own) and body by operation, where its example would change nothing here, in this order."""
    ids = [(await coach.create_customer(name))["_id"] for name in ("Bo", "Cai")]
    press = await coach.create_exercise("Press")
    await coach.schedule({"_id": ids[0]}, "2026-03-04")
    shared = await coach.ctx.db["exercises"].find_one({"companyId": None, "deletedAt": None})
    assert shared is not None
    override = f"/exercises/{shared['_id']}/override"
    squat = exercise_of({"_id": world["exerciseId"]})
    await block_with(coach, {"_id": ids[0]}, squat, date="2026-03-03")
    overdue = {"type": "FORM", "form": {"formId": world["formId"]}}
    await block_with(coach, {"_id": ids[1]}, overdue, date=check_ins.day(coach, -3))
    week = {"startDate": "2026-03-02", "endDate": "2026-03-08"}
    replacement = {"exerciseId": world["exerciseId"], "withExerciseId": press["_id"], "startDate": "2026-03-02"}
    title = {"taskFields": {"title": f"Run {MARKERS[0]}"}}
    behind = await _program_behind(coach)
    done = {"witemId": world["wblockId/witemId"], "customerSets": [{"reps": 8, "load": 62.5}]}
    return {
        "deleteOwnPushSubscription": ("", None),  # before a new password ends the session of the device
        "archiveCustomer": ("", {"id": world["customerId"]}),
        "unarchiveCustomer": ("", {"id": world["customerId"]}),
        "bulkArchiveCustomers": ("", {"ids": ids}),
        "bulkUnarchiveCustomers": ("", {"ids": ids}),
        "bulkAddGroups": ("", {"ids": ids, "groups": ["Team", "Crew", MARKERS[0]]}),
        "updateCustomerGroup": ("/coach/customers/groups/Crew", {"name": f"Squad {MARKERS[0]}"}),
        "bulkRemoveGroups": ("", {"ids": ids, "groups": ["Team"]}),
        "bulkAssignTrainer": ("", {"ids": ids, "coachId": world["employeeId"]}),
        "bulkAssignProgram": ("", {"ids": ids, "programId": world["programId"], "startDate": "2026-03-02"}),
        "assignMetricsSet": (f"/coach/customers/{ids[0]}/metrics-sets", {"metricsSetId": world["metricsSetId"]}),
        "bulkAssignMetricsSet": ("", {"ids": ids[1:], "metricsSetId": world["metricsSetId"]}),
        "bulkSendMessage": ("", {"ids": ids, "text": f"Hello {MARKERS[0]}"}),
        "bulkCreateCheckIns": ("", {"ids": ids, "formId": world["formId"], "everyDays": 7, "startDate": "2026-03-02"}),
        "bulkRemindOfForms": ("", {"ids": ids}),
        "bulkAdjustSchedule": ("", {"ids": ids, **week, "progression": {"load": {"add": 2.5}}}),
        "bulkReplaceScheduledExercise": ("", {"ids": ids, **replacement}),
        "bulkShiftSchedule": ("", {"ids": ids, "from": "2026-03-02", "days": 1}),
        "bulkCopySchedule": ("", {"ids": ids, **week, "targetDate": "2026-04-06"}),
        "bulkClearSchedule": ("", {"ids": ids, "startDate": "2026-04-06", "endDate": "2026-04-12"}),
        "clearSchedule": (f"/coach/customers/{ids[0]}/schedule/clear", week),
        "bulkDeleteCustomers": ("", {"ids": ids}),
        "replaceScheduledExercise": ("", replacement),
        "updateWorkoutBlock": ("", {"date": "2026-03-05"}),
        "updateCheckIn": ("", {"everyDays": 2}),
        "upsertWorkoutBlocks": (
            "",
            {"blocks": [{"externalId": "new", "name": f"New {MARKERS[0]}", "date": "2026-03-06"}]},
        ),
        "upsertLogs": ("", {"logs": [{"wblockId": world["wblockId"], "items": [done]}]}),
        "updateWorkoutItem": ("", title),
        "updateProgramBlock": ("", {"name": f"Upper body {MARKERS[0]}"}),
        "updateProgramItem": ("", title),
        "updateOwnProfile": ("", {"notifications": {"messages": False}}),
        "replaceExerciseOverride": (override, {"aliases": [f"Mine {MARKERS[0]}"]}),
        "deleteExerciseOverride": (override, None),
        "syncProgram": (f"/coach/programs/{behind}/sync", {}),
    }


async def _program_behind(coach: CoachClient) -> str:
    """A program with a workout that a client who is on it does not have yet."""
    client, program = await coach.create_customer("Dee"), (await coach.post("/coach/programs", {"name": "New"})).ok(201)
    path, start = f"/coach/programs/{program['_id']}", str(coach.ctx.caller.today())
    for day in (1, 3):
        (await coach.post(f"{path}/wblocks", {"name": "Run", "day": day})).ok(201)
        if day == 1:
            (await coach.post(f"{path}/assign", {"customerId": client["_id"], "startDate": start})).ok(201)
    return str(program["_id"])


def _mark(route: Route, body: Any) -> Any:
    """The body with a marker in every text that may be any text."""
    assert route.body is not None
    paths = list(_texts(body, ()))
    for path in paths:
        changed = _replaced(body, path, f"{_value_at(body, path)} {MARKERS[0]}")
        try:
            validate_body(route.body, changed)
        except (ServiceError, ValidationError):
            continue
        body = changed
    return body


def _texts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str):
        yield path
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _texts(each, (*path, key))


def _value_at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _replaced(value: Any, path: tuple[Any, ...], text: str) -> Any:
    if not path:
        return text
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], text)
    return copy


def _body(route: Route, world: World) -> Any:
    """The example, whatever version is stored."""
    body = put_identifiers(route.example, identifiers_for(route, world))
    return {name: each for name, each in body.items() if name != "version"}


def contains_marker(value: Any) -> bool:
    """Whether a value has the marker anywhere."""
    text = str(value)
    return any(marker in text for marker in MARKERS)


# Operations whose texts must have been accepted, so that the test does not pass because all were refused.
TEXTS = {
    *("createCustomer", "updateCustomer", "createNote", "updateNote", "createProgram", "createForm", "createExercise"),
    *("logWorkoutItem", "logWorkoutBlock", "sendMessage", "createWorkoutTemplate", "createMetricsSet", "bulkAddGroups"),
    *("createWorkoutBlock", "createWorkoutBlocks", "logOwnWorkoutItem", "sendOwnMessage"),
}
