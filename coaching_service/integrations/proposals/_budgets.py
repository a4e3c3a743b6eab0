"""What an assistant may change without a confirmation in ten minutes, or an hour, over all calls of its key or grant.

A call is counted before its transaction ends, outside of it: of calls at the same time, on whatever process, at least
one sees the other, and none waits. A call that needs a confirmation is forgotten again; one that fails later remains
counted. What a coach has approved and what an assistant undoes do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import timedelta
from typing import TypedDict

from coaching_service.core.changes import history
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.models import DocumentFields, Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.confirmation import Reason
from coaching_service.core.mcp.results import RaisedLoad, Written
from coaching_service.integrations.proposals.versions import Version
from coaching_service.people.account.load_units import convert_stored_load
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks.done_work import regular_blocks
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.plan_changes import (
    is_done_work_changed,
    is_plan_changed,
    list_load_changes,
    list_moved_loads,
)

MAX_WRITES, MAX_CLIENT_DAYS, MAX_REMOVED = 30, 14, 3
MAX_NEW_CLIENTS = 20  # in an hour
MAX_RATIO, MAX_RAISE_KG = 1.5, 20
_WINDOW, _WINDOW_OF_CLIENTS = timedelta(minutes=10), timedelta(hours=1)


class LoadRaise(TypedDict):
    """A load `of` a client and exercise that a call has changed."""

    of: str
    before: float
    after: float


class DayLoads(TypedDict):
    """The loads `of` a client and exercise that a call has removed from a day, or added to it: one for each set."""

    of: str
    date: str
    isAdded: bool
    loads: list[float]


class CallSpending(TypedDict):
    """What a call changes: days of clients (`client date`), workouts it removes or replaces, new clients, and loads.

    What only adds to days without a workout counts as one day.
    """

    days: list[str]
    removed: int
    newClients: int
    loads: list[LoadRaise]
    dayLoads: list[DayLoads]


class StoredSpending(CallSpending, Stored):
    """What a call of an assistant, with this key or grant, changes."""

    credentialId: ObjectId


_spending = Documents[StoredSpending](
    "assistantSpending",
    (Index(("credentialId", "createdAt")),),
    secret=True,
    expire=("createdAt", int(_WINDOW_OF_CLIENTS.total_seconds()) + 60),
    transfer=NotExported("what assistants have done in the last hour"),
    incidental=True,
)


async def spend(tx: Context, call_id: ObjectId, written: Written, versions: Sequence[Version]) -> set[Reason]:
    """Count a call in whose transaction everything is written, or return why it has to be confirmed.

    `call_id` is the same when the transaction is repeated. `versions`: of what it has changed.
    """
    if written.leads_back or not tx.changes.documents:  # a dry run changes nothing
        return set()
    outside = replace(tx, session=None, thread=None, recorder=None)
    workouts = [each for each in versions if each.change.history.kind == "workout" and each.change.client_id]
    own = _measure(workouts, written.raised)
    if await _only_fills_empty_days(tx, workouts):
        own["days"] = [f"empty days {call_id}"]
    written_clients = [each for each in tx.changes.documents.values() if each.history.kind == "customer"]
    own["newClients"] = sum(each.action == "created" for each in written_clients)
    # At once: calls at the same time see it, whether their transactions commit or not.
    await _spending.upsert(outside, {"_id": call_id}, {"credentialId": tx.caller.credential_id, **own})
    of_last_hour = await _list_last_hour(outside, other_than=call_id)
    recent = [each for each in of_last_hour if each["createdAt"] > now() - _WINDOW]
    new_clients = own["newClients"] + sum(each.get("newClients", 0) for each in of_last_hour)
    days = {day for call in (own, *recent) for day in call["days"]}
    reasons = {
        # Tools say so themselves; this is for what they do not expect, such as an undo of what a program did.
        Reason.DONE_WORK: any(before and is_done_work_changed(before, after) for _, before, after in workouts),
        Reason.MANY_CHANGES: len(recent) + 1 > MAX_WRITES,
        Reason.MANY_CLIENT_DAYS: own["days"] and len(days) > MAX_CLIENT_DAYS,
        Reason.MANY_REMOVED: own["removed"] and own["removed"] + sum(each["removed"] for each in recent) > MAX_REMOVED,
        Reason.MANY_NEW_CLIENTS: own["newClients"] and new_clients > MAX_NEW_CLIENTS,
        Reason.LOAD_RAISED: _raises_load(tx, recent, own),
        Reason.OTHERS_VALUE: await _replaces_value_of_others(tx),
    }
    found = {reason for reason, holds in reasons.items() if holds}
    if found:
        await _spending.delete(outside, {"_id": call_id})
    return found


async def _list_last_hour(ctx: Context, *, other_than: ObjectId) -> list[StoredSpending]:
    """Return what the other calls of the caller's key or grant have changed in the last hour, oldest first."""
    where = {
        "credentialId": ctx.caller.credential_id,
        "createdAt": {"$gt": now() - _WINDOW_OF_CLIENTS},
        "_id": {"$ne": other_than},
    }
    return await _spending.find(ctx, where, sort=("createdAt",))


# --- what a call changes ---------------------------------------------------------------------------------------------


def _measure(workouts: Sequence[Version], raised: Sequence[RaisedLoad]) -> CallSpending:
    spending: CallSpending = {"days": [], "removed": 0, "newClients": 0, "loads": [], "dayLoads": []}
    for load in raised:
        of = _key(load.customer_id, load.exercise_id, load.unit)
        spending["loads"].append({"of": of, "before": load.before, "after": load.after})
    left = {item["_id"] for _, _, after in workouts if after is not None for item in after["items"]}
    for change, before, after in workouts:
        if before is not None and after is not None and not is_plan_changed(before, after):
            continue  # only what was done
        spending["days"] += [f"{change.client_id} {each['date']}" for each in (before, after) if each is not None]
        spending["removed"] += after is None or _is_replaced(before, after, left)
        if before is not None and after is not None:
            spending["loads"] += [
                {"of": _key(change.client_id, each.exercise_id, each.unit), "before": each.before, "after": each.after}
                for each in list_load_changes(before, after)
            ]
        for is_added, loads in enumerate(list_moved_loads(before, after)):
            spending["dayLoads"] += [
                {
                    "of": _key(change.client_id, each.exercise_id, each.unit),
                    "date": each.date,
                    "isAdded": bool(is_added),
                    "loads": each.loads,
                }
                for each in loads
            ]
    return {**spending, "days": sorted({*spending["days"]})}


async def _only_fills_empty_days(tx: Context, workouts: Sequence[Version]) -> bool:
    """Return whether workouts are only added, to days of clients that had none; check-ins do not count."""
    added: dict[ObjectId, set[str]] = {}
    for change, before, after in workouts:
        if before is not None or after is None or change.client_id is None:
            return False
        added.setdefault(change.client_id, set()).add(after["date"])
    ids = {each.change.id for each in workouts}
    for client_id, dates in added.items():
        there = await block_batches.read_days(tx, ClientCalendar(client_id), {"$in": sorted(dates)})
        if any(block["_id"] not in ids for block in regular_blocks(there)):
            return False
    return bool(added)


def _is_replaced(before: DocumentFields | None, after: DocumentFields, left: Set[ObjectId]) -> bool:
    """Return whether each item of a workout is removed, and not moved to another one (`left`), or is something else."""
    items = before["items"] if before is not None else []
    kept = {item["_id"]: item for item in after["items"]}
    return bool(items) and all(
        item["_id"] not in left
        or (item["_id"] in kept and item.get("exerciseIds") != kept[item["_id"]].get("exerciseIds"))
        for item in items
    )


def _key(customer_id: ObjectId | None, exercise_id: ObjectId, unit: str) -> str:
    return f"{customer_id} {exercise_id} {unit}"


# --- reasons ---------------------------------------------------------------------------------------------------------


def _raises_load(tx: Context, recent: Sequence[CallSpending], own: CallSpending) -> bool:
    """Return whether a load becomes too much more than it was before the first change of the last ten minutes."""
    most = convert_stored_load(MAX_RAISE_KG, unit="kg", target=tx.caller.company.load_unit)

    def is_too_much(of: str, original: float, after: float) -> bool:
        is_load = not of.endswith("percent")
        return (is_load and after - original > most) or (original > 0 and after > original * MAX_RATIO)

    if any(
        load["after"] > load["before"]
        and is_too_much(load["of"], find_original(recent, load["of"], load["before"]), load["after"])
        for load in own["loads"]
    ):
        return True
    for of, date in {(each["of"], each["date"]) for each in own["dayLoads"]}:
        removed, added = compare_day([*recent, own], of, date)
        if removed and added and is_too_much(of, max(removed), max(added)):
            return True
    return False


async def _replaces_value_of_others(tx: Context) -> bool:
    """Return whether the call replaces or removes a value that another assistant, a program or a person recorded."""
    values = [each for each in tx.changes.documents.values() if each.history.kind == "metric_value"]
    is_same = {each.id: len({*each.values.get("value", ())}) == 1 for each in values}
    for change in [each for each in values if each.action != "created" and not is_same[each.id]]:
        if not await history.is_written_with(tx, tx.caller.credential_id, change.id, change.from_version):
            return True
    return False


# --- what loads were before the first of several calls ---------------------------------------------------------------


def find_original(calls: Sequence[CallSpending], of: str, load: float) -> float:
    """Return what a load was before the first of these calls, the oldest first."""
    for index in reversed(range(len(calls))):
        earlier = [each["before"] for each in calls[index]["loads"] if each["of"] == of and each["after"] == load]
        for each in calls[index]["dayLoads"]:
            if each["of"] == of and each["isAdded"] and load in each["loads"]:
                removed, _ = compare_day(calls[: index + 1], of, each["date"])
                earlier += [max(removed)] if removed else []
        load = min(earlier, default=load)
    return load


def compare_day(calls: Sequence[CallSpending], of: str, date: str) -> tuple[list[float], list[float]]:
    """Return the loads that calls have removed from a day, as they were before the first, and those they have added.

    What was added and removed again is in neither.
    """
    removed: list[float] = []
    added: Counter[float] = Counter()
    for index, call in enumerate(calls):
        of_day = [each for each in call["dayLoads"] if (each["of"], each["date"]) == (of, date)]
        for each in sorted(of_day, key=lambda entry: entry["isAdded"]):
            if each["isAdded"]:
                added.update(each["loads"])
                continue
            for load in each["loads"]:
                known = load if added[load] else _before_changes(calls[:index], of, load)
                if added[known]:
                    added[known] -= 1
                else:
                    removed.append(known)
    return removed, list(added.elements())


def _before_changes(calls: Sequence[CallSpending], of: str, load: float) -> float:
    """Return what a load was before it was changed, without what was removed and added."""
    for call in reversed(calls):
        earlier = [each["before"] for each in call["loads"] if each["of"] == of and each["after"] == load]
        load = min(earlier, default=load)
    return load
