"""A company for random operations that can be undone, and its state; the operations: undoable_operations.py."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from coaching_service.core.database.documents import registry
from tests.support.client import CoachClient, Reply
from tests.support.training import (
    Json,
    circuit_of,
    client_path,
    exercise_of,
    form_of,
    metrics_of,
    reminder,
    task,
)

WEEK = {"startDate": "2026-03-02", "endDate": "2026-03-08"}
DATES = ("2026-03-02", "2026-03-03", "2026-03-05", "2026-03-09")
# Neither the log itself nor what is derived from nothing that an undo restores: jobs, counts of uses that only grow.
_NOT_RESTORED = {
    "audit",
    "changes",
    "changeParts",
    "replays",
    "jobs",
    "exerciseUses",
    "companies",
    "apiKeys",
    "changeCounters",
    "changeNumbers",
    "notifications",
}
# Counters that make transactions conflict, and figures that a job computes again within ten seconds.
_DERIVED = {
    "version",
    "updatedAt",
    "scheduleChanges",
    "figuresUntil",
    "figuresChangedAt",
    "complianceRate7d",
    "complianceRate30d",
    "complianceRate90d",
    "complianceDate",
    "lastTrainedDate",
    "attention",
    "absentDates",
}
_OVERRIDDEN = ("videoLink", "defaultInstructions", "aliases", "media")
Operation = Callable[["Company", random.Random], Awaitable[Reply | None]]
OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    """Add an operation to OPERATIONS."""
    OPERATIONS[function.__name__] = function
    return function


class Company:
    """A company with two clients, a program, and an entry of each library."""

    def __init__(self, coach: CoachClient) -> None:
        self.coach = coach

    @classmethod
    async def create(cls, coach: CoachClient) -> Company:
        """Create what the operations work on."""
        company = cls(coach)
        await coach.create_customer("Ana")
        await coach.create_customer("Bo", groups=["Team"])
        for name in ("Squat", "Press"):
            await coach.create_exercise(name)
        unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
        metrics = [{"name": name, "metricUnitId": unit} for name in ("Weight", "Waist")]
        (await coach.post("/coach/metrics-sets", {"name": "Body", "metrics": metrics})).ok(201)
        (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
        (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "Well?"}]})).ok(201)
        chance = random.Random(1)
        for client in (await coach.customers())["docs"]:
            blocks = [await company.new_block(chance) for _ in range(3)]
            (await coach.post(client_path(client, "wblocks/batch"), {"blocks": blocks})).ok(201)
        for _ in range(5):
            await OPERATIONS["log_item"](company, chance)
        return company

    async def state(self) -> dict[str, dict[str, Any]]:
        """Every stored document of the company by collection and identifier, without what an undo does not restore."""
        names = [name for name in registry if name not in _NOT_RESTORED]
        state: dict[str, dict[str, Any]] = {name: {} for name in names}
        own: Json = {"$match": {"companyId": self.coach.ctx.company_id}}
        stages: list[Json] = [own, {"$set": {"_collection": names[0]}}]
        stages += [
            {"$unionWith": {"coll": name, "pipeline": [own, {"$set": {"_collection": name}}]}} for name in names[1:]
        ]
        async for document in self.coach.ctx.db[names[0]].aggregate(stages):  # one command: 60 take ten times as long
            state[document.pop("_collection")][str(document["_id"])] = _without_derived(document)
        # An override that changes nothing stays, so that versions of its exercise never repeat.
        overrides = state["exerciseOverrides"].items()
        state["exerciseOverrides"] = {key: each for key, each in overrides if any(map(each.get, _OVERRIDDEN))}
        slots = state["customerTotals"].values()
        state["customerTotals"] = {key: sum(slot.get(key, 0) for slot in slots) for key in ("active", "archived")}
        groups: Counter[tuple[str, str]] = Counter()
        for slot in state["groupTotals"].values():
            groups.update({(slot["group"], key): slot.get(key, 0) for key in ("active", "archived")})
        state["groupTotals"] = {f"{group} {kind}": number for (group, kind), number in groups.items() if number}
        # Body weights are copied again when the values that they are copies of are restored.
        state["bodyWeights"] = {
            f"{each['customerId']} {each['date']} {each['metricId']}": (each["value"], each["unit"])
            for each in state["bodyWeights"].values()
        }
        # An undo that stores a text again also makes its entry again.
        for entry in state["searchTexts"].values():
            del entry["createdAt"]
        return state

    async def find(self, collection: str, **where: Any) -> list[Any]:
        """The stored documents of the company in a collection, in the order of their identifiers."""
        company = {"companyId": self.coach.ctx.company_id}
        return await self.coach.ctx.db[collection].find(company | where).sort("_id", 1).to_list(None)

    async def pick(self, chance: random.Random, collection: str, **where: Any) -> Any:
        """A stored document of the company as JSON has it, or None."""
        documents = await self.find(collection, **where)
        return _as_json(chance.choice(documents)) if documents else None

    async def new_item(self, chance: random.Random) -> Json:
        """An item of any type, to add."""
        exercises = [_as_json(each) for each in await self.find("exercises", deletedAt=None)]
        sets = await self.pick(chance, "metricSets", deletedAt=None)
        choices: list[Callable[[], Json]] = [task, reminder, form_of]
        if exercises:
            load = chance.choice([40, 60, 80])
            planned = {"type": "reps_load", "minPlannedReps": 5, "load": load}
            choices += 3 * [lambda: exercise_of(chance.choice(exercises), planned), lambda: circuit_of(*exercises)]
        if sets:
            choices += 2 * [lambda: metrics_of(sets)]
        return chance.choice(choices)()

    async def new_block(self, chance: random.Random) -> Json:
        """A block with items, to create."""
        items = [await self.new_item(chance) for _ in range(chance.randint(0, 3))]
        return {"name": f"Block {chance.randint(0, 9)}", "date": chance.choice(DATES), "items": items}


def _without_derived(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_derived(each) for name, each in value.items() if name not in _DERIVED}
    return [_without_derived(each) for each in value] if isinstance(value, list) else value


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    return value if isinstance(value, bool | int | float | None) else str(value)
