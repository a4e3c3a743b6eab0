"""Clients by their derived figures: compliance rates and why they need attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter, PipelineStage, now
from coaching_service.core.ids import ObjectId
from coaching_service.people import account
from coaching_service.people.customers import attention_events, store
from coaching_service.people.customers.attention_events import WEIGHTS
from coaching_service.people.customers.models import Customer, ReasonType

# What clients that need attention are counted by: the field of each value, and the array that has it.
ATTENTION_VALUES = {
    "reasons": (store.REASON, store.REASONS),
    "trainers": (store.TRAINER, None),
    "groups": (store.GROUPS, store.GROUPS),
}

# Listed after all others: no reason adds to the score.
_ONLY_UNAVAILABLE: Filter = {store.SCORE: 0, store.REASON: store.UNAVAILABLE}


async def find_by_rate(
    ctx: Context, where: Filter, conditions: Sequence[Filter], days: int, *, below: int | None, limit: int
) -> list[Customer]:
    """Return at most `limit` clients of `where`, lowest compliance rate of the last `days` days first, null last.

    `conditions` are the parts to read one after the other, by `Position.conditions_with_nulls_last`. `below`: only
    rates below it. Each client has name, surname, the rate and the sort fields.
    """
    rate, hint = store.rate_field(days), store.BY_TRAINER if store.TRAINER in where else store.BY_RATE[days]
    clients: list[Customer] = []
    for condition in conditions:
        part = where | condition
        if below is not None:
            if condition[rate] is None:
                break
            part[rate] = {**condition[rate], "$lt": below}
        if len(clients) < limit:
            fields = ("name", "surname", rate, *store.ORDER)
            clients += await store.customers.find(
                ctx, part, sort=(rate, *store.ORDER), limit=limit - len(clients), fields=fields, hint=hint
            )
    return clients


async def find_by_name(
    ctx: Context, where: Filter, *, limit: int, days: int | None = None, below: int | None = None
) -> list[Customer]:
    """Return at most `limit` clients of `where`, in list order.

    Each has name, surname, time zone, the sort fields and, with `days`, the compliance rate of the last `days` days;
    `below`: only rates below it.
    """
    hint = store.BY_TRAINER if store.TRAINER in where else store.BY_ORDER
    fields: tuple[str, ...] = ("name", "surname", "timezone", *store.ORDER)
    if days is not None:
        fields = (*fields, store.rate_field(days))
        if below is not None:
            where = where | {store.rate_field(days): {"$lt": below}}
            hint = hint if store.TRAINER in where else store.BY_RATE[days]  # it also has the fields of the order
    return await store.customers.find(ctx, where, sort=store.ORDER, limit=limit, fields=fields, hint=hint)


def _hide(hidden: Sequence[ReasonType]) -> list[PipelineStage]:
    """Return the stages that leave `hidden` reasons out of the reasons and the score of clients."""
    shown = {"$filter": {"input": f"${store.REASONS}", "cond": {"$not": {"$in": ["$$this.type", list(hidden)]}}}}
    weights = [{"$cond": [{"$in": [each, f"${store.REASON}"]}, WEIGHTS[each], 0]} for each in hidden]
    has_reasons = {"$isArray": f"${store.REASONS}"}  # none are computed yet of a new client
    limited = {"score": {"$subtract": [f"${store.SCORE}", {"$sum": weights}]}, "reasons": shown}
    merged = {"$mergeObjects": ["$attention", limited]}
    return [{"$set": {"attention": {"$cond": [has_reasons, merged, "$$REMOVE"]}}}] if hidden else []


async def read_for_attention(ctx: Context, customer_id: ObjectId, hidden: Sequence[ReasonType]) -> list[Customer]:
    """Return a client, if there is one, with the fields of the attention list without `hidden` reasons."""
    fields = dict.fromkeys(store.ATTENTION_FIELDS, 1)
    return await store.customers.aggregate(
        ctx, {"_id": customer_id}, {"$project": fields}, *_hide(hidden), hint=store.BY_ID
    )


def _without_hidden(where: Filter, hidden: Sequence[ReasonType]) -> tuple[Filter, list[PipelineStage], str]:
    """Return which clients to read, the stages that leave those whose shown reasons need attention, and the index."""
    needing: Filter = {"$or": [{store.SCORE: {"$gt": 0}}, _ONLY_UNAVAILABLE]}
    hint = store.BY_TRAINER if store.TRAINER in where else store.BY_ORDER
    return {"$and": [where, needing]}, [*_hide(hidden), {"$match": needing}], hint


async def find_by_attention(
    ctx: Context, where: Filter, condition: Filter, *, hidden: Sequence[ReasonType], limit: int
) -> list[Customer]:
    """Return at most `limit` clients of `where` that need attention, highest score first, then unavailable ones.

    `condition` is the condition of a cursor. `hidden` reasons do not count. Each client has the fields of the attention
    list.
    """
    if hidden:
        needing, stages, hint = _without_hidden(where, hidden)
        page: list[PipelineStage] = [{"$match": condition}, *_first_by_score(limit)]
        return await store.customers.aggregate(ctx, needing, *stages, *page, hint=hint)
    score = {store.SCORE: {"$gt": 0} | condition.get(store.SCORE, {})}
    clients = await store.customers.find(
        ctx,
        where | condition | score,
        sort=store.BY_ATTENTION,
        limit=limit,
        fields=store.ATTENTION_FIELDS,
        hint=_score_hint(where),
    )
    if len(clients) < limit:
        clients += await store.customers.find(
            ctx,
            {"$and": [where, condition, _ONLY_UNAVAILABLE]},
            sort=("_id",),
            limit=limit - len(clients),
            fields=store.ATTENTION_FIELDS,
            hint=store.UNAVAILABLE_INDEX,
        )
    return clients


def _first_by_score(limit: int) -> list[PipelineStage]:
    return [
        {"$sort": {store.SCORE: -1, "_id": 1}},
        {"$limit": limit},
        {"$project": dict.fromkeys(store.ATTENTION_FIELDS, 1)},
    ]


async def find_inactive(
    ctx: Context, where: Filter, condition: Filter, since: date, *, hidden: Sequence[ReasonType], limit: int
) -> list[Customer]:
    """Return at most `limit` clients of `where` without a session after a date, or created before it without any.

    Highest score first; `condition` is the condition of a cursor. `hidden` reasons do not count. Each client has the
    fields of the attention list.
    """
    if store.SCORE in condition:  # else the cursor is at those without a score
        condition = {"$or": [condition, {store.SCORE: None}]}  # not computed yet: they are the last
    stages: list[PipelineStage] = [*_hide(hidden), {"$match": condition}, *_first_by_score(limit)]
    return await store.customers.aggregate(ctx, _idle(where, since), *stages, hint=store.BY_LAST_TRAINED)


async def count_inactive(ctx: Context, where: Filter, since: date, limit: int) -> int:
    """Return how many clients `find_inactive` finds, counting no further than `limit`."""
    return await store.customers.count(ctx, _idle(where, since), limit=limit, hint=store.BY_LAST_TRAINED)


def _idle(where: Filter, since: date) -> Filter:
    created = datetime(since.year, since.month, since.day, tzinfo=UTC) + timedelta(days=1)
    never: Filter = {store.LAST_TRAINED: None, "createdAt": {"$lt": created}}
    return {"$and": [where, {"$or": [{store.LAST_TRAINED: {"$lte": str(since)}}, never]}]}


async def count_by_attention(ctx: Context, where: Filter, limit: int, *, hidden: Sequence[ReasonType]) -> int:
    """Return how many clients of `where` need attention or are unavailable, counting no further than `limit`.

    `hidden` reasons do not count.
    """
    if hidden:
        needing, stages, hint = _without_hidden(where, hidden)
        counted = await store.customers.aggregate(
            ctx, needing, *stages, {"$limit": limit}, {"$count": "count"}, hint=hint
        )
        return counted[0]["count"] if counted else 0
    count = await store.customers.count(ctx, where | {store.SCORE: {"$gt": 0}}, limit=limit, hint=_score_hint(where))
    if count < limit:
        unavailable: Filter = {"$and": [where, _ONLY_UNAVAILABLE]}
        count += await store.customers.count(ctx, unavailable, limit=limit - count, hint=store.UNAVAILABLE_INDEX)
    return count


async def count_attention_values(
    ctx: Context, where: Filter, conditions: Mapping[str, Filter], limit: int, *, hidden: Sequence[ReasonType]
) -> dict[str, dict[Any, int]]:
    """Return how many clients of `where` that need attention or are unavailable have each reason, trainer and group.

    `hidden` reasons do not count. `conditions` are filters by the names of ATTENTION_VALUES: each value is counted with
    the conditions of the others. Only the `limit` most urgent clients are counted, and as many unavailable ones.
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
    stages: list[PipelineStage] = [{"$sort": {store.SCORE: -1, "_id": 1}}, {"$limit": limit}, {"$facet": facets}]
    counts: dict[str, Counter[Any]] = {name: Counter() for name in ATTENTION_VALUES}
    parts = [
        (where | {store.SCORE: {"$gt": 0}}, stages, _score_hint(where)),
        (unavailable, stages, store.UNAVAILABLE_INDEX),
    ]
    if hidden:
        needing, hiding, by_name = _without_hidden(where, hidden)
        parts = [(needing, [*hiding, *stages], by_name)]
    for part, of_part, hint in parts:
        [counted] = await store.customers.aggregate(ctx, part, *of_part, hint=hint)
        for name, counter in counts.items():
            counter.update({each["_id"]: each["count"] for each in counted[name]})
    return {name: dict(counter) for name, counter in counts.items()}


def _score_hint(where: Filter) -> str:
    return next((index for field, index in store.SCORE_INDEX_OF.items() if field in where), store.SCORE_INDEX)


# --- Locks of clients in the database, with the derived fields that the same write sets -------------------------------


_LOCKED = (store.TRAINER, store.CONSENT, store.LAST_WORKOUT, "loadsIn")  # what is read with a lock


async def lock_and_mark_figures(ctx: Context, customer_id: ObjectId, *, trainer: ObjectId | None = None) -> bool:
    """Write to the client, so that concurrent transactions conflict; returns whether there is such a client.

    With `trainer`, only one who is assigned to this coach. Once in a transaction is enough. The same write marks the
    client's figures as due, as `mark_figures_due` does.
    """
    if (locked := locked_clients(ctx).get(customer_id)) is not None:
        return trainer is None or locked["customerRoleData"]["assignedTo"] == trainer
    where = {"_id": customer_id} if trainer is None else {"_id": customer_id, store.TRAINER: trainer}
    return await write_and_lock(ctx, where, {})


async def lock_all(ctx: Context, ids: Sequence[ObjectId]) -> list[Customer]:
    """Lock several clients that the transaction has not locked yet; returns existing ones, each with the trainer."""
    where: Filter = {"_id": {"$in": list(ids)}}
    await store.customers.set_derived(ctx, where, mark())
    locked = await store.customers.find(ctx, where, fields=_LOCKED, hint=store.BY_ID)
    for customer in locked:
        _remember_lock(ctx, customer)
    return locked


async def write_and_lock(ctx: Context, where: Filter, operators: Document) -> bool:
    """Write to the client of `where`, if there is one, as `lock` does, together with derived fields.

    Raises Conflict if the client's loads have been converted to another unit since the request began.
    """
    locked = await store.customers.set_derived_and_read(ctx, where, operators | mark(), _LOCKED)
    if locked is None:
        return False
    _remember_lock(ctx, locked)
    return True


def _remember_lock(ctx: Context, locked: Customer) -> None:
    if locked.get("loadsIn", ctx.caller.company.load_unit) != ctx.caller.company.load_unit:
        raise account.load_unit_changed()
    locked_clients(ctx)[locked["_id"]] = locked


def locked_clients(ctx: Context) -> dict[ObjectId, Mapping[str, Any]]:
    """Return the clients that the transaction has locked, each with its trainer and the last scheduled date."""
    return ctx.recorder.locked if ctx.recorder is not None else {}


async def mark_figures_due(ctx: Context, ids: Sequence[ObjectId]) -> None:
    """Make the derived figures of clients invalid from now on; the lock of a client has done so."""
    if others := set(ids) - locked_clients(ctx).keys():
        await store.customers.set_derived(ctx, {"_id": {"$in": list(others)}}, mark())


async def update_after_archiving(ctx: Context, ids: Sequence[ObjectId], *, archived: bool) -> None:
    """Store since when clients are archived, and clear their reasons; of those who are restored, figures are due.

    What is being computed of them at the moment is not stored.
    """
    if not ids:
        return
    since = {"$set": {"archivedAt": now()}} if archived else {}
    forgotten = {"erasureDueAt": ""} if archived else {"archivedAt": "", "erasureDueAt": ""}
    await store.customers.set_derived(ctx, {"_id": {"$in": list(ids)}}, {**since, "$unset": forgotten})
    if archived:
        for client in await store.customers.find(
            ctx, {"_id": {"$in": list(ids)}}, fields=(store.REASONS,), hint=store.BY_ID
        ):
            if "attention" in client:
                attention_events.report(ctx, client["_id"], client["attention"]["reasons"], [])
    await store.customers.set_derived(
        ctx, {"_id": {"$in": list(ids)}, store.SCORE: {"$gte": 0}}, {"$set": {store.SCORE: 0, store.REASONS: []}}
    )
    await mark_figures_due(ctx, ids)


def mark() -> Document:
    """Return the update that makes the derived figures of clients invalid from now on.

    It counts the marks: figures that are computed in the meantime are not stored. The time of an earlier mark stays: a
    changed one would make MongoDB compute the keys of all indexes of clients.
    """
    return {"$min": {"figuresChangedAt": now()}, "$inc": {"scheduleChanges": 1}}
