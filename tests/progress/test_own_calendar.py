"""A client's own session: what the client can read and log, and what is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import PASSWORD
from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.training import (
    Json,
    block_with,
    client_path,
    exercise_of,
    feed_types,
    hide,
    history,
    log,
    metric_set,
    metrics_of,
    one_of_each,
    own_log,
    path_of,
    read,
    responses,
    show,
    task,
)

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")


async def list_own_blocks(client: CoachClient, start: str = MONDAY, end: str = SUNDAY) -> list[Json]:
    blocks: list[Json] = (await client.get("/customer/wblock", startDate=start, endDate=end)).ok()
    return blocks


@pytest.mark.parametrize("way", ["first access", "sign-in", "impersonation"])
async def test_every_kind_of_client_session_reads_and_logs(
    coach: CoachClient, interactive: CoachClient, anonymous: CoachClient, way: str
) -> None:
    """A client's session (first access, sign-in, impersonation) reads its own visible calendar, logs its
    items and blocks."""
    email = f"ana@{coach.ctx.company_id}.test"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
    block = await block_with(coach, ana, task())
    if way == "impersonation":
        tokens = (await interactive.post(client_path(ana, "impersonate"))).ok()
    else:
        first = {"token": ana["firstAccessToken"], "password": PASSWORD}
        tokens = (await anonymous.post("/auth/first-access", first)).ok()
    if way == "sign-in":
        tokens = (await anonymous.post("/auth/login", {"email": email, "password": PASSWORD})).ok()
    client = anonymous.with_bearer(tokens["accessToken"])

    assert await list_own_blocks(client) == [block]
    logged = (await own_log(client, block, block["items"][0], comment="easy")).ok()
    noted = (await client.put(f"/customer/wblocks/{block['_id']}/log", {"sessionRpe": 6, "durationMinutes": 20})).ok()

    assert (logged["isCompleted"], logged["comment"], noted["isCompleted"]) == (True, "easy", True)
    assert (noted["sessionRpe"], noted["durationMinutes"]) == (6, 20)
    assert await list_own_blocks(client) == [noted] == [await read(coach, block)]
    assert await feed_types(coach, ana) == ["item_logged", "workout_completed"]


async def test_log_of_a_client_has_the_same_consequences_as_that_of_a_coach(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    items = [item for item in await one_of_each(coach) if item["type"] != "METRICS"]
    block = await block_with(coach, ana, *items, metrics_of(body))
    client = await coach.as_client(ana)
    form = next(item for item in block["items"] if item["type"] == "FORM")
    done: dict[str, Json] = {
        "METRICS": {"values": [{"metricId": body["metrics"][0]["_id"], "value": 71}]},
        "FORM": {"answers": [{"questionId": form["form"]["questions"][0]["_id"], "value": "Fine"}]},
    }
    for item in block["items"]:
        (await own_log(client, block, item, **done.get(item["type"], {}))).ok()

    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 71}]
    assert [each["value"] for each in (await responses(coach, ana))[0]["answers"]] == ["Fine"]
    assert await feed_types(coach, ana) == [
        "form_submitted",
        *["item_logged"] * 4,
        "metric_recorded",
        "workout_completed",
    ]
    for item in block["items"]:
        (await own_log(client, block, item, isCompleted=False)).ok()
    assert (await feed_types(coach, ana), await history(coach, ana, body), await responses(coach, ana)) == ([], [], [])
    (await own_log(client, block, block["items"][0], customerSets=[{"reps": "8"}])).refused(400, "customerSets.0.reps")


async def test_client_does_not_see_hidden_days(coach: CoachClient) -> None:
    """Contract 5: GET /customer/wblock?startDate&endDate (visible days only)."""
    ana = await coach.create_customer()
    monday = await block_with(coach, ana, task())
    tuesday = await block_with(coach, ana, task(), date=TUESDAY)
    client = await coach.as_client(ana)
    await hide(coach, ana, TUESDAY)

    assert await list_own_blocks(client) == [monday]
    assert await list_own_blocks(client, TUESDAY, TUESDAY) == []

    item, own = tuesday["items"][0], f"/customer/wblocks/{tuesday['_id']}"
    refused = (await own_log(client, tuesday, item)).refused(404)
    assert refused == (await own_log(client, {"_id": UNKNOWN}, item)).refused(404), "the same as for an unknown block"
    assert (await client.put(f"{own}/log", {"sessionRpe": 5})).refused(404) == refused
    assert (await own_log(client, tuesday, {"_id": UNKNOWN})).refused(404) == refused
    assert await read(coach, tuesday) == tuesday
    (await log(coach, tuesday, item)).ok(), "coaches can log on hidden days"

    await show(coach, ana, TUESDAY)
    assert [block["date"] for block in await list_own_blocks(client)] == [MONDAY, TUESDAY]
    (await own_log(client, tuesday, item)).ok()
    (await coach.patch(path_of(tuesday), {"date": SUNDAY})).ok()
    await hide(coach, ana, SUNDAY)
    (await own_log(client, tuesday, item)).refused(404)


async def test_client_cannot_read_other_clients(coach: CoachClient, other_company: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    stranger = await other_company.create_customer("Zoe")
    hers, his = await block_with(coach, ana, task("a")), await block_with(coach, bo, task("b"))
    theirs = await block_with(other_company, stranger, task("z"))
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    planned = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": 1})).ok(201)
    client = await coach.as_client(ana)

    assert await list_own_blocks(client, "0001-01-01", "9999-12-31") == [hers]
    unknown = (await own_log(client, {"_id": UNKNOWN}, hers["items"][0])).refused(404)
    for block in (his, theirs):
        assert (await own_log(client, block, block["items"][0])).refused(404) == unknown
        assert (await client.put(f"/customer/wblocks/{block['_id']}/log", {})).refused(404) == unknown
        assert (await own_log(client, hers, block["items"][0])).refused(404, "Workout item")
    assert (await client.put(f"/customer/wblocks/{planned['_id']}/log", {})).refused(404) == unknown
    assert (await read(coach, his), await read(other_company, theirs)) == (his, theirs)


async def test_hidden_days_of_one_client_do_not_affect_others(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    block = await block_with(coach, bo, task())
    await hide(coach, ana, MONDAY, SUNDAY)
    assert await list_own_blocks(await coach.as_client(bo)) == [block]


@pytest.mark.parametrize("who", ["key", "session"])
async def test_coach_cannot_use_the_operations_of_clients(
    coach: CoachClient, interactive: CoachClient, anonymous: CoachClient, who: str
) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    caller = coach if who == "key" else interactive
    own = f"/customer/wblocks/{block['_id']}"
    for refused in (
        await caller.get("/customer/wblock", startDate=MONDAY, endDate=SUNDAY),
        await caller.put(f"{own}/log", {}),
        await own_log(caller, block, block["items"][0]),
    ):
        assert refused.refused(403, "client")["error"] == "Forbidden"
    (await anonymous.get("/customer/wblock", startDate=MONDAY, endDate=SUNDAY)).refused(401)
    assert await read(coach, block) == block


async def test_client_cannot_use_the_operations_of_coaches(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    client, item = await coach.as_client(ana), block["items"][0]
    requests: list[tuple[str, str, Any]] = [
        ("GET", client_path(ana, "wblock") + f"?startDate={MONDAY}&endDate={SUNDAY}", None),
        ("PUT", f"{path_of(block)}/witems/{item['_id']}/log", {}),
        ("PUT", f"{path_of(block)}/log", {}),
        ("PUT", client_path(ana, "witems/move"), {}),
        ("POST", client_path(ana, "wblocks/shift"), {"from": MONDAY, "days": 1}),
        ("POST", f"{path_of(block)}/copy", {"date": TUESDAY}),
        ("GET", client_path(ana, "visibility") + f"?startDate={MONDAY}&endDate={SUNDAY}", None),
        ("PUT", client_path(ana, "visibility"), {"startDate": MONDAY, "endDate": MONDAY, "isVisible": True}),
        ("GET", client_path(ana, "metrics-sets"), None),
        ("GET", client_path(ana, "form-responses"), None),
        ("GET", client_path(ana, "notes"), None),
        ("POST", client_path(ana, "notes"), {"content": "mine"}),
        ("GET", client_path(ana, "activity-feed") + "?page=1&limit=10", None),
        ("GET", "/coach/workout-templates", None),
        ("GET", "/coach/metrics-sets", None),
        ("GET", "/coach/forms", None),
    ]
    for method, path, body in requests:
        (await client.send(method, path, json=body)).refused(403, "coaches")
    assert await read(coach, block) == block


async def test_own_calendar_requires_both_dates_in_order(coach: CoachClient) -> None:
    client = await coach.as_client(await coach.create_customer())
    for query in (
        {},
        {"startDate": MONDAY},
        {"startDate": SUNDAY, "endDate": MONDAY},
        {"startDate": "x", "endDate": "y"},
    ):
        (await client.get("/customer/wblock", **query)).refused(400)


async def test_client_reads_loads_in_the_unit_of_the_company(new_company: Any) -> None:
    american = await new_company(load_unit="lb")
    ana, squat = await american.create_customer(), await american.create_exercise()
    await block_with(american, ana, exercise_of(squat))
    [block] = await list_own_blocks(await american.as_client(ana))
    units = {variable["unit"] for planned in block["items"][0]["exerciseSets"] for variable in planned["variables"]}
    assert units == {"count", "lb"}
