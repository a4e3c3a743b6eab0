"""Random edits of a program, of calendars and of logs, with syncs between them that are checked against what was seen.

Run it with 10,000 edits: `python -m tests.training.sync_run 10000`. The test `test_sync_run.py` makes 75, in the proofs 750.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from tests.support.client import CoachClient, Reply
from tests.support.schedules import plan_of
from tests.support.training import Json, client_path, exercise_of, log, path_of, task
from tests.training.test_client_programs import assign, days_from_today
from tests.training.test_program_sync import states, until_numbered

EDITS, SEED = "SYNC_EDITS", "SYNC_SEED"
_BETWEEN = 12  # edits from one sync to the next
_DAYS = range(1, 15)
_METADATA = ("version", "updatedAt")
Edit = Callable[["Company"], Awaitable[Reply | None]]


@dataclass
class Company:
    """A program with clients on it, and what was changed by hand on their calendars since they got it."""

    coach: CoachClient
    chance: random.Random
    program: Json = field(default_factory=dict)
    clients: list[Json] = field(default_factory=list)
    exercises: list[Json] = field(default_factory=list)
    copied: dict[str, Any] = field(default_factory=dict)  # what a client got from the program, by workout
    deleted_by_hand: set[tuple[str, str]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)

    async def create(self) -> None:
        """Store two exercises, a program, and clients at several points of it, one on weekdays."""
        coach = self.coach
        self.exercises = [await coach.create_exercise(name) for name in ("Squat", "Bench", "Row")]
        self.program = (await coach.post("/coach/programs", {"name": "Linked"})).ok(201)
        for day in (1, 2, 4, 6, 8, 9, 11, 13):
            await self.add_day(day)
        for number, start in enumerate((-9, -3, 0, 2)):
            client = await coach.create_customer(f"Client {number}")
            options = {"weekdays": [1, 3, 4, 6]} if number == 2 else {}
            await assign(coach, self.program, client, days_from_today(start), **options)
            self.clients.append(client)
        self.copied = {each: as_copied(block) for each, block in (await self.calendars()).items()}

    async def add_day(self, day: int) -> Reply:
        """Add a workout to the program."""
        items = [exercise_of(self.chance.choice(self.exercises)), task(f"Walk {self.chance.randrange(1000)}")]
        body = {"name": f"Day {day}", "day": day, "isRest": self.chance.random() < 0.1, "items": items}
        return await self.coach.post(f"/coach/programs/{self.program['_id']}/wblocks", body)

    async def planned(self) -> list[Json]:
        """The workouts of the program."""
        path = f"/coach/programs/{self.program['_id']}/wblock"
        blocks: list[Json] = (await self.coach.get(path, startDay=1, endDay=99)).ok()
        return blocks

    async def calendar(self, client: Json) -> list[Json]:
        """The workouts of a client."""
        first, last = days_from_today(-60), days_from_today(120)
        blocks: list[Json] = (await self.coach.get(client_path(client, "wblock"), startDate=first, endDate=last)).ok()
        return blocks

    async def calendars(self) -> dict[str, Json]:
        """All workouts of all clients, by identifier."""
        blocks = [block for client in self.clients for block in await self.calendar(client)]
        # The order within a day follows from the other workouts of the day.
        return {block["_id"]: {**block, "order": None} for block in blocks}

    async def any_own(self) -> Json | None:
        """A workout of a client."""
        blocks = await self.calendar(self.chance.choice(self.clients))
        return self.chance.choice(blocks) if blocks else None

    async def any_planned(self) -> Json | None:
        """A workout of the program."""
        blocks = await self.planned()
        return self.chance.choice(blocks) if blocks else None

    async def edit(self) -> None:
        """Make one edit."""
        edit = self.chance.choice(EDITS_OF_ALL)
        reply = await edit(self)
        assert reply is None or reply.status < 500, (edit.__name__, reply.raw)
        self.counts[edit.__name__] += reply is not None and reply.status < 300


async def add_to_program(company: Company) -> Reply | None:
    """A new day of the program, of which there are at most 14."""
    return await company.add_day(company.chance.choice(_DAYS)) if len(await company.planned()) < 14 else None


async def rename_planned(company: Company) -> Reply | None:
    """Another name, or the old one again."""
    block = await company.any_planned()
    name = company.chance.choice(["Base", "Speed", "Hills"])
    return None if block is None else await company.coach.patch(path_of(block), {"name": name})


async def move_planned(company: Company) -> Reply | None:
    block = await company.any_planned()
    return None if block is None else await company.coach.patch(path_of(block), {"day": company.chance.choice(_DAYS)})


async def remove_planned(company: Company) -> Reply | None:
    block = await company.any_planned()
    return None if block is None else await company.coach.delete(path_of(block))


async def swap_planned(company: Company) -> Reply | None:
    block = await company.any_planned()
    return None if block is None else await _swap(company, block)


async def _swap(company: Company, block: Json) -> Reply | None:
    items = [item for item in block["items"] if item["type"] == "EXERCISE"]
    if not items:
        return None
    body = {"exerciseId": company.chance.choice(company.exercises)["_id"]}
    return await company.coach.patch(f"{path_of(block)}/witems/{company.chance.choice(items)['_id']}", body)


async def swap_own(company: Company) -> Reply | None:
    if block := await company.any_own():
        return await _swap(company, block)
    return None


async def rename_own(company: Company) -> Reply | None:
    if block := await company.any_own():
        return await company.coach.patch(path_of(block), {"name": "By hand"})
    return None


async def move_own(company: Company) -> Reply | None:
    if block := await company.any_own():
        day = days_from_today(company.chance.randrange(-5, 20))
        return await company.coach.patch(path_of(block), {"date": day})
    return None


async def remove_own(company: Company) -> Reply | None:
    if block := await company.any_own():
        if block["programBlockId"]:
            company.deleted_by_hand.add((block["customerId"], block["programBlockId"]))
        return await company.coach.delete(path_of(block))
    return None


async def shift_own(company: Company) -> Reply | None:
    """Shift the schedule of a client: what only moves with it is not changed by hand."""
    client, first = company.chance.choice(company.clients), days_from_today(company.chance.randrange(-3, 12))
    before, days = {block["_id"]: block for block in await company.calendar(client)}, company.chance.randrange(-4, 9)
    reply = await company.coach.post(client_path(client, "wblocks/shift"), {"from": first, "days": days})
    for block in await company.calendar(client):
        if block["date"] != before[block["_id"]]["date"]:
            day, plan = company.copied[block["_id"]]
            company.copied[block["_id"]] = str(date.fromisoformat(day) + timedelta(days=days)), plan
    return reply


async def log_own(company: Company) -> Reply | None:
    """Complete an item, or take the log back."""
    block = await company.any_own()
    if block is None or not block["items"]:
        return None
    item = company.chance.choice(block["items"])
    return await log(company.coach, block, item, isCompleted=company.chance.random() < 0.6)


EDITS_OF_ALL: list[Edit] = [
    *(add_to_program, rename_planned, move_planned, remove_planned, swap_planned, swap_planned),
    *(swap_own, rename_own, move_own, remove_own, shift_own, log_own),
]


def as_copied(block: Json) -> Any:
    """What is planned in a workout, and when: a change that is taken back is no change."""
    return block["date"], plan_of(block)


def is_done(block: Json) -> bool:
    """Whether anything of a workout was logged."""
    return any(item["isCompleted"] or item["comment"] for item in block["items"])


def stripped(blocks: Iterable[Json]) -> list[Any]:
    """Workouts without what every write changes, in order of identifier."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(each) for name, each in value.items() if name not in _METADATA}
        return [without(each) for each in value] if isinstance(value, list) else value

    return sorted((without(block) for block in blocks), key=lambda block: block["_id"])


async def check_sync(company: Company) -> None:
    """Sync with random choices: what is done, past or by hand stays, the preview is right, and one undo restores all."""
    coach, chance = company.coach, company.chance
    include = [each for each in ("changed", "new", "removed", "customised") if chance.random() < 0.75] or ["new"]
    first = days_from_today(chance.choice([0, 0, 0, 4, -20]))
    body = {"include": include, **({"from": first} if chance.random() < 0.6 else {})}
    path = f"/coach/programs/{company.program['_id']}/sync"
    before, compared = await company.calendars(), await states(coach, company.program)

    for block in (block for each in compared for block in each["blocks"] if block["wblockId"] in before):
        own = before[block["wblockId"]]
        assert block["state"] != "customised" or company.copied[own["_id"]] != as_copied(own), (block, own)
    shown = (await coach.post(path, {**body, "dryRun": True})).ok()

    assert (await company.calendars(), await states(coach, company.program)) == (before, compared)
    result = (await coach.post(path, body)).ok()
    assert {**result, "dryRun": True, "changeId": None} == shown
    after = await company.calendars()
    today = days_from_today(0)
    limit = max(first if "from" in body else today, today)
    for block_id, block in before.items():
        by_hand = company.copied[block_id] != as_copied(block) and "customised" not in include
        if is_done(block) or block["date"] < limit or by_hand:
            assert after.get(block_id) == block, (block, after.get(block_id), body)
    for block_id, block in after.items():
        assert block == before.get(block_id) or block["date"] >= limit, "something was put before the first day"
        source = (block["customerId"], block["programBlockId"])
        if block_id not in before and "customised" not in include:
            assert source not in company.deleted_by_hand, "what was deleted by hand came back"
    written = [sum(b not in before for b in after), sum(b not in after for b in before)]
    assert written == [result["created"], result["removed"]]
    assert sum(after[b] != before[b] for b in after.keys() & before.keys()) == result["changed"]
    left = Counter(block["state"] for each in await states(coach, company.program) for block in each["blocks"])
    if limit == today:
        assert not [state for state in include if state != "customised" and left[state]], (include, left)
    company.counts["workouts changed, added or removed"] += sum(written) + result["changed"]
    if result["changeId"] is None:
        return
    if chance.random() < 0.5:
        await _undo(company, result["changeId"], [before, after])
        assert stripped((await company.calendars()).values()) == stripped(before.values())
        assert await states(coach, company.program) == compared
        company.counts["undone"] += 1
        return
    company.copied |= {each: as_copied(block) for each, block in after.items() if before.get(each) != block}
    company.deleted_by_hand -= {(block["customerId"], block["programBlockId"]) for block in after.values()}


async def _undo(company: Company, batch_id: str, calendars: list[dict[str, Json]]) -> None:
    before, after = calendars
    touched = {(before.get(b) or after[b])["customerId"] for b in before | after if before.get(b) != after.get(b)}
    await until_numbered(company.coach, batch_id, len(touched))
    undone = (await company.coach.post(f"/coach/changes/{batch_id}/undo")).ok()
    assert undone["failed"] == []


async def run(coach: CoachClient, edits: int, seed: int) -> Counter[str]:
    """Make random edits with syncs between them; returns how often what was done."""
    chance = random.Random(seed)
    company = Company(coach, chance)
    await company.create()
    for number in range(1, edits + 1):
        await company.edit()
        if number % _BETWEEN == 0:
            await check_sync(company)
            company.counts["syncs"] += 1
        if number % 400 == 0:  # calendars fill with what is done by hand
            company = Company(coach, chance, counts=company.counts)
            await company.create()
    return company.counts


def main() -> int:
    """Run the test with a number of edits, and print what was done."""
    edits = sys.argv[1] if len(sys.argv) > 1 else "10000"
    command = [sys.executable, "-m", "pytest", "-q", "-s", "tests/training/test_sync_run.py"]
    return subprocess.run(command, env={**os.environ, EDITS: edits}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
