"""Clients by their derived figures: compliance rates and why they need attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from coaching_service.core.database.backlogs import count_backlog
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Filter, PipelineStage, now
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Backlog
from coaching_service.people.customers.locks_store import mark
from coaching_service.people.customers.models import Attention, Customer, FigureLane, FigureMark
from coaching_service.people.customers.store import (
    ARCHIVED,
    ATTENTION_FIELDS,
    BY_ATTENTION,
    BY_ID,
    BY_LAST_TRAINED,
    BY_ORDER,
    BY_RATE,
    BY_TRAINER,
    CHANGED_INDEX,
    DUE_INDEX,
    GROUPS,
    LAST_TRAINED,
    ORDER,
    REASON,
    REASONS,
    SCORE,
    SCORE_INDEX,
    SCORE_INDEX_OF,
    TRAINER,
    UNAVAILABLE,
    UNAVAILABLE_INDEX,
    customers,
    rate_field,
)

# What clients that need attention are counted by: the field of each value, and the array that has it.
ATTENTION_VALUES = {"reasons": (REASON, REASONS), "trainers": (TRAINER, None), "groups": (GROUPS, GROUPS)}

# Listed after all others: no reason adds to the score.
_ONLY_UNAVAILABLE: Filter = {SCORE: 0, REASON: UNAVAILABLE}

# The time since when, or from which on, figures are due.
LANE_FIELD: dict[FigureLane, str] = {"changes": "figuresChangedAt", "daily": "figuresUntil"}
# The index of changes has only the clients that have changed, so it is read completely to find their companies.
_FINDING_INDEX: dict[FigureLane, str] = {"changes": CHANGED_INDEX, "daily": DUE_INDEX}
_MARK = ("figuresUntil", "figuresChangedAt", "scheduleChanges")
_COMPANY_INDEX: dict[FigureLane, str] = {"changes": CHANGED_INDEX, "daily": BY_ID}


async def find_by_rate(
    ctx: Context, where: Filter, conditions: Sequence[Filter], days: int, *, below: int | None, limit: int
) -> list[Customer]:
    """Return at most `limit` clients of `where`, lowest compliance rate of the last `days` days first, null last.

    `conditions` are the parts to read one after the other, by `Position.conditions_with_nulls_last`. `below`: only
    rates below it. Each client has name, surname, the rate and the sort fields.
    """
    rate, hint = rate_field(days), BY_TRAINER if TRAINER in where else BY_RATE[days]
    clients: list[Customer] = []
    for condition in conditions:
        part = where | condition
        if below is not None:
            if condition[rate] is None:
                break
            part[rate] = {**condition[rate], "$lt": below}
        if len(clients) < limit:
            fields = ("name", "surname", rate, *ORDER)
            clients += await customers.find(
                ctx, part, sort=(rate, *ORDER), limit=limit - len(clients), fields=fields, hint=hint
            )
    return clients


async def find_by_name(
    ctx: Context, where: Filter, *, limit: int, days: int | None = None, below: int | None = None
) -> list[Customer]:
    """Return at most `limit` clients of `where`, in list order.

    Each has name, surname, time zone, the sort fields and, with `days`, the compliance rate of the last `days` days;
    `below`: only rates below it.
    """
    hint = BY_TRAINER if TRAINER in where else BY_ORDER
    fields: tuple[str, ...] = ("name", "surname", "timezone", *ORDER)
    if days is not None:
        fields = (*fields, rate_field(days))
        if below is not None:
            where = where | {rate_field(days): {"$lt": below}}
            hint = hint if TRAINER in where else BY_RATE[days]  # it also has the fields of the order
    return await customers.find(ctx, where, sort=ORDER, limit=limit, fields=fields, hint=hint)


async def find_by_attention(ctx: Context, where: Filter, condition: Filter, *, limit: int) -> list[Customer]:
    """Return at most `limit` clients of `where` that need attention, highest score first, then unavailable ones.

    `condition` is the condition of a cursor. Each client has the fields of the attention list.
    """
    score = {SCORE: {"$gt": 0} | condition.get(SCORE, {})}
    clients = await customers.find(
        ctx, where | condition | score, sort=BY_ATTENTION, limit=limit, fields=ATTENTION_FIELDS, hint=_score_hint(where)
    )
    if len(clients) < limit:
        clients += await customers.find(
            ctx,
            {"$and": [where, condition, _ONLY_UNAVAILABLE]},
            sort=("_id",),
            limit=limit - len(clients),
            fields=ATTENTION_FIELDS,
            hint=UNAVAILABLE_INDEX,
        )
    return clients


async def find_inactive(ctx: Context, where: Filter, condition: Filter, since: date, *, limit: int) -> list[Customer]:
    """Return at most `limit` clients of `where` without a session after a date, or created before it without any.

    Highest score first; `condition` is the condition of a cursor. Each client has the fields of the attention list.
    """
    created = datetime(since.year, since.month, since.day, tzinfo=UTC) + timedelta(days=1)
    never: Filter = {LAST_TRAINED: None, "createdAt": {"$lt": created}}
    idle: Filter = {"$or": [{LAST_TRAINED: {"$lte": str(since)}}, never]}
    if condition and condition[SCORE]["$lte"] is not None:
        condition = {"$or": [condition, {SCORE: None}]}  # not computed yet: they are the last
    return await customers.find(
        ctx,
        {"$and": [where, condition, idle]},
        sort=BY_ATTENTION,
        limit=limit,
        fields=ATTENTION_FIELDS,
        hint=BY_LAST_TRAINED,
    )


async def count_by_attention(ctx: Context, where: Filter, limit: int) -> int:
    """Return how many clients of `where` need attention or are unavailable, counting no further than `limit`."""
    count = await customers.count(ctx, where | {SCORE: {"$gt": 0}}, limit=limit, hint=_score_hint(where))
    if count < limit:
        unavailable: Filter = {"$and": [where, _ONLY_UNAVAILABLE]}
        count += await customers.count(ctx, unavailable, limit=limit - count, hint=UNAVAILABLE_INDEX)
    return count


async def count_attention_values(
    ctx: Context, where: Filter, conditions: Mapping[str, Filter], limit: int
) -> dict[str, dict[Any, int]]:
    """Return how many clients of `where` that need attention or are unavailable have each reason, trainer and group.

    `conditions` are filters by the names of ATTENTION_VALUES: each value is counted with the conditions of the others.
    Only the `limit` most urgent clients are counted, and as many unavailable ones.
    """
    unavailable: Filter = {"$and": [where, _ONLY_UNAVAILABLE]}
    facets = {
        name: [
            {
                "$match": {
                    key: value for other, each in conditions.items() if other != name for key, value in each.items()
                }
            },
            *([{"$unwind": f"${array}"}] if array else []),
            {"$group": {"_id": f"${field}", "count": {"$sum": 1}}},
        ]
        for name, (field, array) in ATTENTION_VALUES.items()
    }
    stages: list[PipelineStage] = [{"$sort": {SCORE: -1, "_id": 1}}, {"$limit": limit}, {"$facet": facets}]
    counts: dict[str, Counter[Any]] = {name: Counter() for name in ATTENTION_VALUES}
    for part, hint in ((where | {SCORE: {"$gt": 0}}, _score_hint(where)), (unavailable, UNAVAILABLE_INDEX)):
        [counted] = await customers.aggregate(ctx, part, *stages, hint=hint)
        for name, counter in counts.items():
            counter.update({each["_id"]: each["count"] for each in counted[name]})
    return {name: dict(counter) for name, counter in counts.items()}


def _score_hint(where: Filter) -> str:
    return next((index for field, index in SCORE_INDEX_OF.items() if field in where), SCORE_INDEX)


async def find_states(ctx: Context, ids: Sequence[ObjectId], *stages: PipelineStage) -> list[Any]:
    """Return fields that figures are computed from of the clients `ids`, with what `stages` add.

    `createdAt`, `attention`, `erasureRequestedAt`, and `isArchived`.
    """
    project = {"$project": {"createdAt": 1, "attention": 1, "erasureRequestedAt": 1, "isArchived": f"${ARCHIVED}"}}
    return await customers.aggregate(ctx, {"_id": {"$in": list(ids)}}, project, *stages, hint=BY_ID)


async def set_figures(
    ctx: Context,
    figures: Mapping[ObjectId, Mapping[str, object]],
    valid_until: Mapping[ObjectId, datetime],
    attention: Mapping[ObjectId, Attention],
    marks: Mapping[ObjectId, FigureMark] | None,
) -> None:
    """Set the derived figures of clients, until when they are valid, and why they need attention, where it is given.

    With `marks`, only of clients whose figures have neither been marked nor stored since these were read.
    """
    changes: list[tuple[Filter, Document]] = []
    for customer_id, values in figures.items():
        fields = {f"customerRoleData.{name}": value for name, value in values.items()}
        if customer_id in attention:
            fields["attention"] = attention[customer_id]
        where = {"_id": customer_id} if marks is None else {"_id": customer_id, **marks[customer_id]}
        new = {**fields, "figuresUntil": valid_until[customer_id]}
        changes.append((where, {"$set": new, "$unset": {"figuresChangedAt": ""}}))
    await customers.set_derived_each(ctx, changes)


async def find_marks(ctx: Context, ids: Sequence[ObjectId]) -> list[Customer]:
    """Return `_id` and the fields of the marks of clients."""
    return await customers.find(ctx, {"_id": {"$in": list(ids)}}, fields=_MARK, hint=BY_ID)


def _due(lane: FigureLane) -> Filter:
    return {ARCHIVED: False, LANE_FIELD[lane]: {"$lte": now()}}


async def find_due_companies(services: Services, lane: FigureLane, limit: int) -> list[ObjectId]:
    """Return the companies of active clients whose figures are due, longest due first.

    Due by a change: of all clients; due by the day: of the `limit` clients that are due for longest.
    """
    field = LANE_FIELD[lane]
    longest: list[PipelineStage] = [{"$sort": {field: 1}}, {"$limit": limit}] if lane == "daily" else []
    stages: list[PipelineStage] = [
        {"$match": _due(lane)},
        *longest,
        {"$group": {"_id": "$companyId", "since": {"$min": f"${field}"}}},
        {"$sort": {"since": 1}},
    ]
    cursor = customers.across_companies(services).aggregate(stages, hint=_FINDING_INDEX[lane])
    return [company["_id"] async for company in cursor]


async def count_due(services: Services, lane: FigureLane, limit: int) -> Backlog:
    """Count the active clients of all companies whose figures are due, at most `limit`, and since when they are."""
    collection = customers.across_companies(services)
    return await count_backlog(collection, _due(lane), LANE_FIELD[lane], limit, hint=_FINDING_INDEX[lane])


async def list_due(
    services: Services, company_id: ObjectId, lane: FigureLane, last: ObjectId | None, limit: int
) -> list[Customer]:
    """Return the company's next `limit` active clients after the client `last` whose figures are due, by identifier.

    Each has only `_id`, `timezone` and the fields of its mark.
    """
    where = {"companyId": company_id, **_due(lane)} | ({} if last is None else {"_id": {"$gt": last}})
    fields = dict.fromkeys(("timezone", *_MARK), 1)
    cursor = customers.across_companies(services).find(where, fields, limit=limit, hint=_COMPANY_INDEX[lane])
    due: list[Any] = await cursor.sort("_id", 1).to_list(None)
    return due


async def mark_figures_due_after(
    services: Services, company_id: ObjectId, last: ObjectId | None, limit: int
) -> ObjectId | None:
    """Make the derived figures of the next `limit` clients of a company after `last` invalid, by identifier.

    Returns the identifier of the last of them; None if there are none.
    """
    where: Filter = {"companyId": company_id} | ({} if last is None else {"_id": {"$gt": last}})
    collection = customers.across_companies(services)
    cursor = collection.find(where, {"_id": 1}, limit=limit, hint=BY_ID).sort("_id", 1)
    ids: list[ObjectId] = [client["_id"] async for client in cursor]
    if not ids:
        return None
    await collection.update_many({"companyId": company_id, "_id": {"$in": ids}}, mark())
    return ids[-1]


async def postpone_figures(
    services: Services, company_id: ObjectId, lane: FigureLane, ids: Sequence[ObjectId], delay: timedelta
) -> None:
    """Leave the figures of a company's clients as they are for a while, so that others are computed first."""
    where = {"companyId": company_id, "_id": {"$in": list(ids)}, **_due(lane)}
    await customers.across_companies(services).update_many(where, {"$set": {LANE_FIELD[lane]: now() + delay}})
