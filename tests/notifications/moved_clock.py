"""Two weeks of reminders with both changes of the clocks, in processes that are killed; run it as a program.

    python -m tests.notifications.moved_clock --clients 200 --days 14 --kills 20

The clock of the processes stands at what happens next, and runs from there until it has happened.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import time_machine

from coaching_service import runtime
from coaching_service.core.auth import new_master_key
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.installation.embedded import running_mongod
from coaching_service.people import availability, team
from coaching_service.people.customers import batch
from coaching_service.settings import Settings
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.service import ClientCalendar
from tests.notifications.oracle import QUIET, Minutes, Plan, Reminder
from tests.support.service_process import until

# The clocks are set forward on 27 and 28 March 2027 in the first ones, and back on 3 and 4 April in the next ones.
ZONES = (
    *("Europe/Madrid", "Europe/London", "Atlantic/Azores", "Asia/Beirut"),
    *("America/Santiago", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland"),
    *("America/New_York", "Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Honolulu"),
)
FIRST = date(2027, 3, 25)
_HARD = ("00:00", "00:30", "01:45", "02:00", "02:30", "02:59", "06:29", "06:30", "22:00", "23:59")
_NEVER = datetime.fromisoformat("2100-01-01")
_PROCESSES = 3


@dataclass
class Result:
    """What was found: problems in words, numbers of reminders, and how late one was at most (allowed: `limit` seconds)."""

    limit: float
    problems: list[str] = field(default_factory=list)
    sent: int = 0
    silent: int = 0
    latest: float = 0.0


def make_plans(clients: int, days: int) -> list[Plan]:
    """Return the plans of clients in all zones, the same at each run."""
    source = random.Random(42)
    plans = []
    for number in range(clients):
        reminders = []
        for offset in range(days):
            is_hard = source.random() < 0.4
            clock = source.choice(_HARD) if is_hard else f"{source.randrange(24):02}:{source.randrange(60):02}"
            reminders.append(Reminder(FIRST + timedelta(days=offset), clock))
        first_away = FIRST + timedelta(days=source.randrange(days))
        away = [first_away, first_away + timedelta(days=1)] if number % 4 == 0 else []
        plans.append(Plan(ZONES[number % len(ZONES)], number % 2 == 1, away, reminders))
    return plans


async def prepare(services: Services, plans: list[Plan]) -> tuple[Context, dict[ObjectId, Plan]]:
    """Store a company with clients and their reminders; returns the plans by client."""
    owner = await team.create_company(
        Context(services), "Moved", "Olga", f"olga-{ObjectId()}@example.com", "", timezone="UTC"
    )
    ctx = Context(services, owner)
    clients: dict[ObjectId, Plan] = {}
    for number, plan in enumerate(plans):
        details: Any = {"name": f"Client {number}", "email": f"{number}@moved.example.com", "timezone": plan.zone}
        client = (await batch.create_customer(ctx, details))["_id"]
        await _store(ctx, client, plan)
        clients[client] = plan
    return ctx, clients


async def _store(ctx: Context, client: ObjectId, plan: Plan) -> None:
    blocks: list[Any] = [
        {
            "name": "Day",
            "isRest": False,
            "date": str(each.day),
            "items": [{"type": "REMINDER", "reminderFields": {"scheduledTime": each.clock, "message": "Stretch"}}],
        }
        for each in plan.reminders
    ]
    await in_transaction(ctx, lambda tx: batches.write(tx, ClientCalendar(client), Batch(created=blocks), []))
    if plan.is_quiet:
        settings = {"notifications.quietFrom": QUIET[0], "notifications.quietTo": QUIET[1]}
        await ctx.db["customers"].update_one({"companyId": ctx.company_id, "_id": client}, {"$set": settings})
    if plan.away:
        period: Any = {"kind": "away", "from": str(plan.away[0]), "until": str(plan.away[-1]), "note": None}
        await availability.create_availability(ctx, client, period)


class MovedClock:
    """Processes whose clock is moved to what happens next; some of them are killed."""

    def __init__(self, services: Services, settings: Settings, folder: Path, kills: int) -> None:
        self._services, self._settings, self._file = services, settings, folder / "clock"
        self._kills, self._random = kills, random.Random(7)
        self.killed = 0
        self._processes: list[subprocess.Popen[bytes]] = []

    def _start_process(self) -> None:
        settings = self._settings
        arguments = (settings.mongodb_uri, settings.mongodb_database, settings.secret_keys[0], settings.data_dir)
        command = [sys.executable, "-m", "tests.notifications.worker", *map(str, arguments), str(self._file)]
        self._processes.append(subprocess.Popen(command))

    async def run(self, end: datetime) -> None:
        """Move the clock from the first day to `end`."""
        now = datetime.combine(FIRST, datetime.min.time()) - timedelta(days=1)
        self._set(now)
        for _ in range(_PROCESSES):
            self._start_process()
        try:
            events = 0
            while now < end:
                now = await self._pass(now, end)
                events += 1
                if self._kills > self.killed and self._random.random() < 0.05:
                    self._kill()
        finally:
            for process in self._processes:
                process.kill()
                process.wait()

    def _kill(self) -> None:
        process = self._processes.pop(self._random.randrange(len(self._processes)))
        process.kill()
        process.wait()
        self.killed += 1
        self._start_process()

    def _set(self, now: datetime) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{now.replace(tzinfo=UTC).timestamp()} {time.time()}")
        new.replace(self._file)

    async def _pass(self, now: datetime, end: datetime) -> datetime:
        """Wait until all that is due has happened, and move the clock to what happens next; returns this time.

        While a process has claimed something, which a killed one may have, the clock runs as fast as all others.
        """
        since = time.time()

        async def is_done() -> bool:
            following, is_claimed = await self._find_next()
            return not is_claimed and following > now + timedelta(seconds=time.time() - since)

        await until(is_done, f"what is due at {now} to be sent", 300)
        following, _ = await self._find_next()
        moment = max(min(following, end), now + timedelta(seconds=time.time() - since))
        self._set(moment)
        return moment

    async def _find_next(self) -> tuple[datetime, bool]:
        """Return when the next thing is due, and whether it is the end of a lease: no reminder is due within a minute."""
        db = self._services.db
        times: list[tuple[datetime, bool]] = [(_NEVER, False)]
        for collection, name in (
            ("notifications", "sendAt"),
            ("customers", "figuresUntil"),
            ("customers", "figuresChangedAt"),
        ):
            first = await db[collection].find_one({name: {"$ne": None}}, {name: 1}, sort=[(name, 1)])
            if first is not None:
                is_within_minute = bool(first[name].second or first[name].microsecond)
                times.append((first[name], name == "sendAt" and is_within_minute))
        return min(times)


async def check(ctx: Context, clients: dict[ObjectId, Plan], days: int, limit: float) -> Result:
    """Compare what was sent with what has to be sent."""
    minutes = {zone: Minutes(zone, FIRST - timedelta(days=2), FIRST + timedelta(days=days + 3)) for zone in set(ZONES)}
    result = Result(limit=limit)
    for client, plan in clients.items():
        await _check_client(ctx, client, plan, minutes[plan.zone], result)
    return result


async def _check_client(ctx: Context, client: ObjectId, plan: Plan, minutes: Minutes, result: Result) -> None:
    of_client = {"companyId": ctx.company_id, "customerId": client}
    stored = await ctx.db["notifications"].find({**of_client, "outcome": "sent"}).to_list(None)
    sent = {(each["subject"]["date"], each["subject"]["time"]): each["sentAt"] for each in stored}
    changes = await ctx.db["changes"].find({**of_client, "events.type": "reminder.sent"}).to_list(None)
    events = Counter(event["data"]["date"] for change in changes for event in change["events"])
    mails = await ctx.db["jobs"].count_documents({"kind": "send_mail", "about": client})
    expected: dict[tuple[str, str], datetime] = {}
    for each in plan.reminders:
        moment = minutes.find(each, is_quiet=plan.is_quiet)
        if moment is None or each.day in plan.away:
            result.silent += 1
        else:
            expected[str(each.day), each.clock] = moment
    if sent.keys() != expected.keys():
        result.problems.append(f"{plan.zone}: {sorted(sent.keys() ^ expected.keys())}")
    if mails != len(expected) or events != Counter(day for day, _ in expected):
        result.problems.append(f"{plan.zone}: {mails} mails and {events.total()} events for {len(expected)} reminders")
    for key in sent.keys() & expected.keys():
        late = (sent[key] - expected[key]).total_seconds()
        result.sent, result.latest = result.sent + 1, max(result.latest, late)
        if not 0 <= late <= result.limit:
            result.problems.append(f"{plan.zone}: {key} was sent {late} s after its minute")


async def run(
    settings: Settings, services: Services, folder: Path, *, clients: int, days: int, kills: int, limit: float = 60
) -> Result:
    """Send the reminders of so many clients and days in processes that are killed so often, and return the result.

    `limit`: how many seconds after its minute each is sent at the latest.
    """
    with time_machine.travel(datetime.combine(FIRST, datetime.min.time(), UTC) - timedelta(days=2), tick=True):
        ctx, planned = await prepare(services, make_plans(clients, days))
    clock = MovedClock(services, settings, folder, kills)
    await clock.run(datetime.combine(FIRST, datetime.min.time()) + timedelta(days=days + 1))
    result = await check(ctx, planned, days, limit)
    if clock.killed < kills:
        result.problems.append(f"only {clock.killed} of {kills} processes were killed")
    return result


async def _main(clients: int, days: int, kills: int) -> Result:
    with tempfile.TemporaryDirectory() as name, running_mongod(Path(name) / "data") as uri:
        folder = Path(name)
        settings = Settings(mongodb_uri=uri, secret_keys=(new_master_key(),), data_dir=folder / "data")
        async with runtime.open_services(settings) as services:
            await runtime.make_indexes(services)
            return await run(settings, services, folder, clients=clients, days=days, kills=kills)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Send two weeks of reminders with a moved clock.")
    for option, default in (("--clients", 200), ("--days", 14), ("--kills", 20)):
        parser.add_argument(option, type=int, default=default)
    outcome = asyncio.run(_main(**vars(parser.parse_args())))
    print(f"{outcome.sent} sent, {outcome.silent} not to be sent, the last {outcome.latest:.1f} s after its minute")
    print("\n".join(outcome.problems) or "no problem")
    sys.exit(bool(outcome.problems))
