"""A day of a client holds 20 workouts and 10 reminders at most, by whichever interface (contract, section 18)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from tests.support.client import CoachClient, Reply
from tests.support.fixed_clock import TODAY
from tests.support.mcp_client import McpHttpClient, approve
from tests.support.sampled import some
from tests.support.training import Json, client_path, log, path_of, read, reminder, task
from tests.support.transfer import export, import_file, make_zip, records, with_records
from tests.support.visitor import HtmlPage, Visitor

pytestmark = pytest.mark.usefixtures("wednesday")
MOST = {"workouts": 20, "reminders": 10}
CODES = {"workouts": "TOO_MANY_WORKOUTS", "reminders": "TOO_MANY_REMINDERS"}
FULL, OTHER, LATER = (str(TODAY + timedelta(days=number)) for number in (3, 2, 5))
FULL_PAST = str(TODAY - timedelta(days=3))


@dataclass
class Scene:
    """A client whose day has one workout, or reminder, less than it may have."""

    coach: CoachClient
    mcp: McpHttpClient
    browser: Visitor
    phone: Visitor
    client: Json
    what: str
    own: CoachClient
    stored: list[Json] = field(default_factory=list)

    def path(self, *rest: str) -> str:
        """The path of a resource of the client."""
        return client_path(self.client, *rest)

    def block(self, day: str = FULL, **fields: Any) -> Json:
        """A workout with one thing to count."""
        return {"name": "One", "date": day, "items": self.items, **fields}

    @property
    def items(self) -> list[Json]:
        return [reminder()] if self.what == "reminders" else [task()]

    async def add(self, day: str, **fields: Any) -> Json:
        created: Json = (await self.coach.post(self.path("wblocks"), self.block(day, **fields))).ok(201)
        return created

    async def program(self, *days: int) -> str:
        program = (await self.coach.post("/coach/programs", {"name": "Base"})).ok(201)
        for day in days:
            block = {"name": "One", "day": day, "items": self.items}
            (await self.coach.post(f"/coach/programs/{program['_id']}/wblocks", block)).ok(201)
        return str(program["_id"])

    async def schedule(self) -> list[Json]:
        """Everything on the client's calendar."""
        return await self.coach.calendar(self.client, "2031-01-01", "2031-12-31")

    async def count(self) -> int:
        """What is on the day."""
        return self.count_of(await self.schedule())

    def count_of(self, schedule: list[Json]) -> int:
        """What of a calendar is on the day."""
        blocks = [each for each in schedule if each["date"] == FULL]
        if self.what == "workouts":
            return len(blocks)
        return sum(item["type"] == "REMINDER" for block in blocks for item in block["items"])


Call = Callable[[], Awaitable[Any]]
Way = Callable[[Scene], Awaitable[Call]]


async def by_rest(s: Scene) -> Call:
    return lambda: s.coach.post(s.path("wblocks"), s.block())


async def by_batch(s: Scene) -> Call:
    return lambda: s.coach.post(s.path("wblocks/batch"), {"blocks": [s.block(LATER), s.block()]})


async def by_upsert(s: Scene) -> Call:
    names = iter("abc")
    return lambda: s.coach.put(s.path("wblocks/by-external-id", f"{s.what}-{next(names)}"), s.block())


async def by_changed_date(s: Scene) -> Call:
    others = iter([await s.add(OTHER) for _ in range(2)])
    return lambda: s.coach.patch(path_of(next(others)), {"date": FULL})


async def by_copy_of_days(s: Scene) -> Call:
    await s.add(OTHER)
    days = {"startDate": OTHER, "endDate": OTHER, "targetDate": FULL}
    return lambda: s.coach.post(s.path("schedule/copy"), days)


async def by_copy_of_a_workout(s: Scene) -> Call:
    block = await s.add(OTHER)
    return lambda: s.coach.post(f"{path_of(block)}/copy", {"date": FULL})


async def by_template(s: Scene) -> Call:
    template = (await s.coach.post("/coach/workout-templates", {"name": "T", "items": s.items})).ok(201)
    apply = {"customerId": s.client["_id"], "date": FULL}
    return lambda: s.coach.post(f"/coach/workout-templates/{template['_id']}/apply", apply)


async def by_program(s: Scene) -> Call:
    program = await s.program(1)
    start = {"customerId": s.client["_id"], "startDate": FULL}
    return lambda: s.coach.post(f"/coach/programs/{program}/assign", start)


async def by_linked_program(s: Scene) -> Call:
    program = await s.program(1)
    start = {"customerId": s.client["_id"], "startDate": OTHER}
    (await s.coach.post(f"/coach/programs/{program}/assign", start)).ok(201)

    async def sync() -> Reply:
        block = {"name": "One", "day": 2, "items": s.items}
        (await s.coach.post(f"/coach/programs/{program}/wblocks", block)).ok(201)
        return await s.coach.post(f"/coach/programs/{program}/sync", {})

    return sync


async def by_program_of_a_group(s: Scene) -> Call:
    groups = iter(["First", "Second"])

    async def join() -> Reply:
        group = f"{s.what} {next(groups)}"
        rule = {"programId": await s.program(1), "startOn": FULL}
        (await s.coach.put(f"/coach/customers/groups/{group}/program", rule)).ok()
        return await s.coach.post("/coach/customers/bulk/groups-add", {"ids": [s.client["_id"]], "groups": [group]})

    return join


async def by_bulk_program(s: Scene) -> Call:
    body = {"ids": [s.client["_id"]], "programId": await s.program(1), "startDate": FULL}
    return lambda: s.coach.post("/coach/customers/bulk/assign-program", body)


async def by_bulk_copy(s: Scene) -> Call:
    await s.add(OTHER)
    body = {"ids": [s.client["_id"]], "startDate": OTHER, "endDate": OTHER, "targetDate": FULL}
    return lambda: s.coach.post("/coach/customers/bulk/schedule-copy", body)


async def by_undo(s: Scene) -> Call:
    async def remove_and_fill() -> Reply:
        block = await s.add(FULL)
        change = await s.coach.delete(path_of(block))
        (await s.coach.post(s.path("wblocks"), s.block())).ok(201)
        return await s.coach.undo(change)

    async def remove() -> Reply:
        block = await s.add(FULL)
        return await s.coach.undo(await s.coach.delete(path_of(block)))

    calls = iter([remove, remove_and_fill])

    async def call() -> Reply:
        if await s.count() == MOST[s.what]:  # make room for one
            block = next(each for each in await s.schedule() if each["date"] == FULL and len(each["items"]) == 1)
            (await s.coach.delete(path_of(block))).ok(204)
        return await next(calls)()

    return call


async def by_tool(s: Scene) -> Call:
    text = {"date": FULL, "name": "One", "text": "reminder 12:00: win" if s.what == "reminders" else "task: Walk"}
    return lambda: s.mcp.call("create_workout", customerId=s.client["_id"], days=[text])


async def by_tool_that_moves(s: Scene) -> Call:
    others = iter([await s.add(LATER) for _ in range(2)])
    about = {"customerId": s.client["_id"]}
    return lambda: s.mcp.call("update_workout", **about, workoutId=next(others)["_id"], date=FULL)


async def by_tool_that_copies(s: Scene) -> Call:
    await s.add(OTHER)
    days = {"startDate": OTHER, "endDate": OTHER, "targetDate": FULL}
    return lambda: s.mcp.call("copy_schedule", customerId=s.client["_id"], **days)


async def by_tool_that_assigns(s: Scene) -> Call:
    program = await s.program(1)
    return lambda: s.mcp.call("assign_program", customerId=s.client["_id"], programId=program, startDate=FULL)


async def by_form(s: Scene) -> Call:
    text = "reminder 12:00: win" if s.what == "reminders" else "task: Walk"
    path = f"/app/customers/{s.client['_id']}"

    async def submit() -> HtmlPage:
        page = await s.browser.get(f"{path}?week={FULL}")
        return await s.browser.submit(page, f"{path}/blocks", name="One", date=FULL, text=text)

    return submit


async def by_form_that_moves(s: Scene) -> Call:
    others = iter([await s.add(OTHER) for _ in range(2)])
    path = f"/app/customers/{s.client['_id']}"

    async def submit() -> HtmlPage:
        page = await s.browser.get(f"{path}?week={FULL}")
        return await s.browser.submit(page, f"{path}/blocks/{next(others)['_id']}/move", date=FULL, place="1")

    return submit


async def by_the_client(s: Scene) -> Call:
    return lambda: s.own.post("/customer/wblocks", {"name": "Own", "date": FULL})


async def by_the_client_who_moves(s: Scene) -> Call:
    others = iter([await s.add(OTHER) for _ in range(2)])
    return lambda: s.own.put(f"/customer/wblocks/{next(others)['_id']}/date", {"date": FULL})


async def by_form_of_the_client(s: Scene) -> Call:
    async def submit() -> HtmlPage:
        page = await s.phone.get("/train/add-workout")
        return await s.phone.submit(page, "/train/add-workout", name="Own", date=FULL, text="task: Walk")

    return submit


async def by_added_item(s: Scene) -> Call:
    block = await s.add(FULL, items=[])
    return lambda: s.coach.post(f"{path_of(block)}/witems", reminder())


async def by_moved_item(s: Scene) -> Call:
    target = await s.add(FULL, items=[])
    source = await s.add(OTHER, items=[reminder()] * 2)
    left = iter(source["items"])

    def call() -> Awaitable[Reply]:
        item = {"wblockId": source["_id"], "witemId": next(left)["_id"]}
        return s.coach.put(s.path("witems/move"), {"source": item, "target": {"wblockId": target["_id"], "index": 0}})

    return call


async def by_upserted_items(s: Scene) -> Call:
    counts = iter((1, 2))

    def call() -> Awaitable[Reply]:
        items = [reminder()] * next(counts)
        return s.coach.put(s.path("wblocks/by-external-id", "items"), s.block(items=items))

    return call


async def by_tool_that_adds_items(s: Scene) -> Call:
    block = await s.add(FULL, items=[])
    known = {"customerId": s.client["_id"], "workoutId": block["_id"]}
    add = {"action": "add", "text": "reminder 12:00: win"}
    return lambda: s.mcp.call("update_workout_items", **known, changes=[add])


async def by_tool_that_moves_items(s: Scene) -> Call:
    target, source = await s.add(FULL, items=[]), await s.add(OTHER, items=[reminder()] * 2)
    known, left = {"customerId": s.client["_id"], "workoutId": source["_id"]}, iter(source["items"])

    def call() -> Awaitable[Json]:
        move = {"action": "move", "itemId": next(left)["_id"], "toWorkoutId": target["_id"]}
        return s.mcp.call("update_workout_items", **known, changes=[move])

    return call


async def by_text_in_a_form(s: Scene) -> Call:
    block = await s.add(FULL, items=[])
    path = f"/app/customers/{s.client['_id']}/blocks/{block['_id']}"

    async def submit() -> HtmlPage:
        return await s.browser.submit(await s.browser.get(path), f"{path}/text", text="reminder 12:00: win")

    return submit


COMMON: tuple[Way, ...] = (
    *(by_rest, by_batch, by_upsert, by_changed_date, by_copy_of_days, by_copy_of_a_workout, by_template),
    *(by_program, by_linked_program, by_program_of_a_group, by_bulk_program, by_bulk_copy, by_undo),
    *(by_tool, by_tool_that_moves, by_tool_that_copies, by_tool_that_assigns, by_form, by_form_that_moves),
    by_the_client_who_moves,
)
WAYS: dict[str, tuple[Way, ...]] = {
    "workouts": (*COMMON, by_the_client, by_form_of_the_client),
    "reminders": (
        *some(COMMON[3:], 4),  # which count them in one place with the workouts
        *(by_added_item, by_moved_item, by_upserted_items, by_tool_that_adds_items, by_tool_that_moves_items),
        by_text_in_a_form,
    ),
}


def refusal_of(answer: Any) -> str:
    """What a call that did nothing says; empty if it has done something."""
    if isinstance(answer, Reply):
        failed = answer.json.get("failed") if answer.status == 200 and isinstance(answer.json, dict) else None
        if failed:
            return str(failed[0]["message"])
        if answer.status >= 400:
            assert (answer.status, answer.json["code"]) in [(400, code) for code in CODES.values()], answer.raw
            return f"{answer.json['code']} {answer.json['message']}"
        return ""
    if isinstance(answer, HtmlPage):
        return answer.text if answer.status == 400 else ""
    return str(answer["content"][0]["text"]) if answer.get("isError") else ""


@pytest.fixture
async def new_scene(
    coach: CoachClient, mcp: McpHttpClient, server: TestServer
) -> AsyncIterator[Callable[[str], Awaitable[Scene]]]:
    """Creates clients with a day that is nearly full."""
    browser, phones = Visitor(server), list[Visitor]()
    browser.keep(coach_session=(await sessions.start_for_coach(coach.ctx, coach.ctx.caller.id)).token)
    owner, stored = await coach.interactive(), coach.ctx.db["workoutBlocks"]
    nearly_full: dict[str, list[Json]] = {}

    async def make(what: str) -> Scene:
        client = await coach.create_customer("Ana")
        phones.append(Visitor(server))
        token = (await sessions.start_for_customer(coach.ctx, ObjectId(client["_id"]), "Phone")).token
        phones[-1].keep(coach_session=token)
        scene = Scene(owner, mcp, browser, phones[-1], client, what, await coach.as_client(client))
        if what == "workouts":
            blocks = [{"name": "One", "date": FULL, "items": [task()]}] * 19
        else:
            blocks = [{"name": "One", "date": FULL, "items": [reminder()] * count} for count in (5, 3, 1)]
        owned = {"companyId": coach.ctx.company_id, "customerId": ObjectId(client["_id"])}
        if what not in nearly_full:
            (await coach.post(scene.path("wblocks/batch"), {"blocks": blocks})).ok(201)
            nearly_full[what] = await stored.find(owned).to_list(None)
        else:  # the same for another client
            for block in nearly_full[what]:
                items = [{**item, "_id": ObjectId()} for item in block["items"]]
                await stored.insert_one({**block, **owned, "_id": ObjectId(), "items": items})
        return scene

    yield make
    for each in (browser, *phones):
        await each.close()


@pytest.mark.parametrize("what", MOST)
async def test_no_interface_fills_a_day_beyond_its_limit(
    what: str, coach: CoachClient, new_scene: Callable[[str], Awaitable[Scene]]
) -> None:
    """The 20th workout and the 10th reminder are stored, the next one is refused, and nothing of it is stored."""
    for way in WAYS[what]:
        scene = await new_scene(what)
        await coach.ctx.db["assistantSpending"].delete_many({"companyId": coach.ctx.company_id})
        call = await way(scene)
        answer = await call()
        assert not refusal_of(answer), (way.__name__, answer)
        if isinstance(answer, dict) and answer["structuredContent"].get("executed") is False:
            await approve(scene.coach, answer["structuredContent"])
        full = await scene.schedule()
        assert scene.count_of(full) == MOST[what], way.__name__
        said = refusal_of(await call())
        assert f"{MOST[what]} {what}" in said and FULL in said, (way.__name__, said)
        after = await scene.schedule()
        assert scene.count_of(after) == MOST[what], way.__name__
        assert way is by_undo or after == full, (way.__name__, "half stored")


@pytest.mark.parametrize("what", MOST)
async def test_dry_runs_say_that_a_day_is_full(what: str, new_scene: Callable[[str], Awaitable[Scene]]) -> None:
    scene = await new_scene(what)
    block = await scene.add(FULL)
    await scene.add(OTHER)
    days = {"startDate": OTHER, "endDate": OTHER, "targetDate": FULL, "dryRun": True}
    start = {"startDate": FULL, "dryRun": True}
    program, about = await scene.program(1), {"customerId": scene.client["_id"]}
    for path, body in (
        (scene.path("wblocks"), scene.block(dryRun=True)),
        (scene.path("wblocks/batch"), {"blocks": [scene.block(LATER), scene.block()], "dryRun": True}),
        (scene.path("schedule/copy"), days),
        (f"/coach/programs/{program}/assign", {**start, **about}),
        ("/coach/customers/bulk/assign-program", {**start, "ids": [scene.client["_id"]], "programId": program}),
        ("/coach/customers/bulk/schedule-copy", {**days, "ids": [scene.client["_id"]]}),
    ):
        assert f"{MOST[what]} {what}" in refusal_of(await scene.coach.post(path, body)), path
    (await scene.coach.post(scene.path("schedule/copy"), {**days, "onConflict": "replace"})).ok()
    # What is there already may be changed.
    (await scene.coach.patch(path_of(block), {"name": "Legs"})).ok()


async def test_requests_at_the_same_time_share_the_room_of_a_day(
    new_scene: Callable[[str], Awaitable[Scene]],
) -> None:
    for what, most in MOST.items():
        scene = await new_scene(what)
        calls = [scene.coach.post(scene.path("wblocks"), scene.block()) for _ in range(4)]
        if what == "workouts":
            calls += [scene.own.post("/customer/wblocks", {"name": "Own", "date": FULL}) for _ in range(2)]
        answers = await asyncio.gather(*calls)
        assert sorted(each.status for each in answers) == [201] + [400] * (len(calls) - 1)
        assert await scene.count() == most


async def test_days_that_were_fuller_before_there_was_a_limit(
    coach: CoachClient, new_scene: Callable[[str], Awaitable[Scene]]
) -> None:
    """What is there is logged, changed and moved away as ever; only adding to such a day is refused."""
    scene = await new_scene("reminders")
    block = await scene.add(FULL, items=[task(), task("Stretch")])
    stored = coach.ctx.db["workoutBlocks"]
    where = {"companyId": coach.ctx.company_id, "_id": ObjectId(block["_id"])}
    five = await stored.find_one({"customerId": ObjectId(scene.client["_id"]), "items.4": {"$exists": True}})
    assert five is not None
    more = [{**item, "_id": ObjectId()} for item in five["items"]]
    await stored.update_one(where, {"$push": {"items": {"$each": more}}})
    assert await scene.count() == 14

    walk, stretch, first, *_ = (await read(coach, block))["items"]
    (await log(coach, block, walk, isCompleted=True)).ok()
    (await scene.own.put(f"/customer/wblocks/{block['_id']}/witems/{stretch['_id']}/log", {"isCompleted": True})).ok()
    (await scene.own.put(f"/customer/wblocks/{block['_id']}/log", {"comment": "Done"})).ok()
    later = {"reminderFields": {"scheduledTime": "09:30", "message": "Later"}}
    (await coach.patch(f"{path_of(block)}/witems/{first['_id']}", later)).ok()
    (await coach.patch(path_of(block), {"name": "Other"})).ok()
    (await coach.delete(f"{path_of(block)}/witems/{first['_id']}")).ok(204)
    assert await scene.count() == 13
    other = next(each for each in await scene.schedule() if len(each["items"]) == 1)
    target = {"wblockId": block["_id"], "index": 0}
    source = {"wblockId": other["_id"], "witemId": other["items"][0]["_id"]}
    (await coach.put(scene.path("witems/move"), {"source": source, "target": target})).ok()
    assert refusal_of(await coach.post(scene.path("wblocks"), scene.block()))
    assert await scene.count() == 13


async def test_imported_sessions_hold_no_more_reminders_than_others(
    coach: CoachClient, new_scene: Callable[[str], Awaitable[Scene]]
) -> None:
    """Sessions of a file are no workouts of the day's twenty; reminders that a coach adds to them count."""
    scene = await new_scene("workouts")
    rows = "".join(f"{FULL_PAST} {hour:02}:00,Run {hour},Squat,8,60\n" for hour in range(23))
    file = f"Date,Workout,Exercise,Reps,Weight\n{rows}".encode()
    about = {"customerId": scene.client["_id"], "loadUnit": "kg"}
    job = await import_file(scene.coach, file, name="sets.csv", **about)
    assert (job["status"], job["result"]["created"]["sessions"]) == ("done", 23), str(job)
    imported = await coach.calendar(scene.client, FULL_PAST, FULL_PAST)
    assert len(imported) == 23
    (await coach.post(scene.path("wblocks"), scene.block(FULL_PAST))).ok(201)
    for block in imported[:2]:
        for _ in range(5):
            (await coach.post(f"{path_of(block)}/witems", reminder())).ok(201)
    assert "10 reminders" in refusal_of(await coach.post(f"{path_of(imported[2])}/witems", reminder()))


async def test_an_archive_is_restored_whole(
    coach: CoachClient, other_company: CoachClient, new_scene: Callable[[str], Awaitable[Scene]]
) -> None:
    """Nothing that was stored once is lost; the day takes nothing more."""
    scene = await new_scene("workouts")
    await scene.add(FULL)
    entries = await export(coach)
    blocks = records(entries, "workoutBlocks")
    more = {**blocks[0], "_id": str(ObjectId()), "name": "One too many"}
    job = await import_file(other_company, make_zip(with_records(entries, "workoutBlocks", *blocks, more)))
    assert (job["status"], job["result"]["failed"], job["errors"]) == ("done", 0, []), job
    [client] = (await other_company.customers())["docs"]
    assert len(await other_company.calendar(client, FULL, FULL)) == 21
    full = await other_company.post(client_path(client, "wblocks"), scene.block())
    assert "20 workouts" in refusal_of(full)
