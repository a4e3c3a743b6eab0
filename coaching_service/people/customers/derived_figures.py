"""Figures stored with clients for the lists: until when they are valid, and which are due to be computed again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, cast, get_args
from zlib import crc32

from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database.across_companies import count_backlog
from coaching_service.core.database.context import Context, Services, gather_reads
from coaching_service.core.database.documents import Document, Filter, PipelineStage, now
from coaching_service.core.dates import next_midnight
from coaching_service.core.errors import NotFound, require_found
from coaching_service.core.idempotency import ResponseReplayed
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.list_selection import CursorPage, ListPart, Page, page_document, skip_of
from coaching_service.core.metrics import Backlog, read_backlog
from coaching_service.people import team
from coaching_service.people.account import LoadUnitChanged
from coaching_service.people.customers import counters, service, store
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers.store import customers
from coaching_service.people.team import CoachRemoved

RateOrder = Literal["percentage", "name"]
RateDays = Literal[7, 30, 90]
MOST_COUNTED = 1_000
MOST_DUE = 10_000
SPREAD_SECONDS = 3 * 3600
# What clients that need attention are counted by: the field of each value, and the array that has it.
ATTENTION_VALUES = {
    "reasons": (store.REASON, store.REASONS),
    "trainers": (store.TRAINER, None),
    "groups": (store.GROUPS, store.GROUPS),
}
# The figures by which lists are sorted: the field, the least value it can have, and the index.
_FIGURES: Mapping[customer_models.SortFigure, tuple[str, object, str]] = {
    "compliance": (store.rate_field(30), 0, store.BY_RATE[30]),
    "lastTrained": (store.LAST_TRAINED, "", store.BY_LAST_TRAINED),
    "unread": (store.UNREAD, 1, store.UNREAD_INDEX),
}
# Listed after all others: no reason adds to the score.
_ONLY_UNAVAILABLE: Filter = {store.SCORE: 0, store.REASON: store.UNAVAILABLE}
# The time since when, or from which on, figures are due.
_LANE_FIELD: dict[customer_models.FigureLane, str] = {"changes": "figuresChangedAt", "daily": "figuresUntil"}
# The index of changes has only the clients that have changed, so it is read completely to find their companies.
_FINDING_INDEX: dict[customer_models.FigureLane, str] = {"changes": store.CHANGED_INDEX, "daily": store.DUE_INDEX}
_COMPANY_INDEX: dict[customer_models.FigureLane, str] = {"changes": store.CHANGED_INDEX, "daily": store.BY_ID}
_MARK = ("figuresUntil", "figuresChangedAt", "scheduleChanges")


async def list_customers_by(
    ctx: Context,
    figure: customer_models.SortFigure,
    *,
    descending: bool,
    archived: bool,
    page: int,
    size: int,
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
) -> Page[customer_models.CustomerProfile]:
    """Return one page of the clients in the coach's scope by a stored figure, then by name.

    Those without it are last. Clients in any of `groups`, of any of `trainers` as in `list_customers`.
    """
    where, unfiltered = service.build_list_filter(ctx, archived, groups, trainers)
    skip, (field, least, index) = skip_of(page, size), _FIGURES[figure]
    hint = store.BY_GROUP if store.GROUPS in where else store.BY_TRAINER if store.TRAINER in where else index
    counted = counters.read(ctx, archived=archived) if unfiltered else store.count_filtered(ctx, where, hint)
    if descending:
        order = store.BY_UNREAD if figure == "unread" else tuple(f"-{name}" for name in (field, *store.ORDER))
        clients = customers.find(ctx, where, sort=order, skip=skip, limit=size, hint=hint)
        stored, total = await gather_reads(ctx, clients, counted)
    else:
        having, order = where | {field: {"$gte": least}}, (field, *store.ORDER)
        stored, total, known = await gather_reads(
            ctx,
            customers.find(ctx, having, sort=order, skip=skip, limit=size, hint=hint),
            counted,
            customers.count(ctx, having, limit=skip + size, hint=hint),
        )
        if (missing := size - len(stored)) > 0:
            lacking, skip = where | {field: None}, max(0, skip - known)
            stored += await customers.find(ctx, lacking, sort=order, skip=skip, limit=missing, hint=hint)
    return page_document([service.to_response(ctx, customer) for customer in stored], total, page, size)


async def list_rates(
    ctx: Context, days: RateDays, *, below: int | None, sort: RateOrder, limit: int, after: str | None
) -> CursorPage[customer_models.CustomerRate]:
    """Return part of the active clients in the coach's scope with their stored compliance rates of `days` days.

    `sort`: by `percentage`, ascending with None last, or by `name`. `below`: only clients whose rate (0 to 100) is
    below it. Raises InvalidFields if `after` is not a cursor of this list with the same filters.
    """
    where, _ = service.build_list_filter(ctx, archived=False, groups=None, trainers=None)
    filters, rate = {"period": days, "below": below, "sort": sort}, store.rate_field(days)
    order = store.ORDER if sort == "name" else (rate, *store.ORDER)
    list_part = ListPart(ctx, "compliance", filters, order, size=limit, after=after)
    if sort == "name":
        parts = [list_part.condition() | ({} if below is None else {rate: {"$lt": below}})]
        # The index of the rate also has the fields of the order.
        hint = store.BY_ORDER if below is None else store.BY_RATE[days]
    else:
        parts, hint = list_part.conditions_with_nulls_last(), store.BY_RATE[days]
        if below is not None:
            parts = [{**part, rate: {**part[rate], "$lt": below}} for part in parts if part[rate] is not None]
    clients: list[customer_models.Customer] = []
    for part in parts:
        if (missing := limit + 1 - len(clients)) > 0:
            index, fields = (
                store.BY_TRAINER if store.TRAINER in where else hint,
                ("name", "surname", rate, *store.ORDER),
            )
            clients += await customers.find(ctx, where | part, sort=order, limit=missing, fields=fields, hint=index)

    def present(customer: customer_models.Customer) -> customer_models.CustomerRate:
        rates = cast("dict[str, Any]", customer["customerRoleData"])
        return {"_id": customer["_id"], "name": service.full_name(customer), "rate": rates[f"complianceRate{days}d"]}

    return list_part.by_cursor(clients, present)


async def list_clients_by_name(
    ctx: Context, list_name: str, filters: Mapping[str, object], *, limit: int, after: str | None
) -> CursorPage[customer_models.Customer]:
    """Return part of the active clients in the coach's scope by name, for a company-wide list with these filters.

    Each has `_id`, name, surname and time zone. Raises InvalidFields if `after` is not a cursor of this list with the
    same filters.
    """
    where, _ = service.build_list_filter(ctx, archived=False, groups=None, trainers=None)
    list_part = ListPart(ctx, list_name, filters, store.ORDER, size=limit, after=after)
    fields, hint = ("name", "surname", "timezone", *store.ORDER), _name_hint(where)
    where |= list_part.condition()
    clients = await customers.find(ctx, where, sort=store.ORDER, limit=limit + 1, fields=fields, hint=hint)
    return list_part.by_cursor(clients, lambda entry: entry)


def _name_hint(where: Filter) -> str:
    return store.BY_TRAINER if store.TRAINER in where else store.BY_ORDER


# --- Clients that need attention --------------------------------------------------------------------------------------
# Reasons of areas that the caller may not see do not exist here: not in the filter, the score or the entries.


async def list_attention(
    ctx: Context,
    *,
    reasons: Sequence[customer_models.ReasonType] = (),
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
    inactive_since: date | None = None,
    limit: int,
    after: str | None = None,
) -> CursorPage[customer_models.Customer]:
    """Return part of the active clients in the coach's scope that need attention, highest score first.

    `inactive_since`: instead those without a session after this date (new clients: created before it).

    For any of `reasons`, in any of `groups`, of any of `trainers` (None among them: clients without a trainer). Each
    has the fields of the attention list. Raises InvalidFields if `after` is not a cursor of this list with the same
    filters.
    """
    where = _attention_filter(ctx, reasons, groups, trainers)
    filters = {"reason": sorted(set(reasons)), "groups": groups, "assignedTo": trainers, "inactive": inactive_since}
    list_part = ListPart(ctx, "attention", filters, store.BY_ATTENTION, size=limit, after=after)
    hidden, condition, wanted = customer_models.list_hidden_reasons(ctx), list_part.condition(), limit + 1
    first: list[PipelineStage] = [
        {"$sort": {store.SCORE: -1, "_id": 1}},
        {"$limit": wanted},
        {"$project": dict.fromkeys(store.ATTENTION_FIELDS, 1)},
    ]
    if inactive_since is not None:
        if store.SCORE in condition:  # else the cursor is at those without a score
            condition = {"$or": [condition, {store.SCORE: None}]}  # not computed yet: they are the last
        stages, idle = [*_hide(hidden), {"$match": condition}, *first], _idle(where, inactive_since)
        clients = await customers.aggregate(ctx, idle, *stages, hint=store.BY_LAST_TRAINED)
    elif hidden:
        needing, stages, hint = _without_hidden(where, hidden)
        clients = await customers.aggregate(ctx, needing, *stages, {"$match": condition}, *first, hint=hint)
    else:
        score, fields = {store.SCORE: {"$gt": 0} | condition.get(store.SCORE, {})}, store.ATTENTION_FIELDS
        order, hint = store.BY_ATTENTION, _score_hint(where)
        clients = await customers.find(
            ctx, where | condition | score, sort=order, limit=wanted, fields=fields, hint=hint
        )
        if (missing := wanted - len(clients)) > 0:
            others, hint = {"$and": [where, condition, _ONLY_UNAVAILABLE]}, store.UNAVAILABLE_INDEX
            clients += await customers.find(ctx, others, sort=("_id",), limit=missing, fields=fields, hint=hint)
    return list_part.by_cursor(clients, lambda entry: entry)


def _attention_filter(
    ctx: Context,
    reasons: Sequence[customer_models.ReasonType] = (),
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
) -> Filter:
    where, _ = service.build_list_filter(ctx, archived=False, groups=groups, trainers=trainers)
    return where | _reason_filter(ctx, reasons)


def _reason_filter(ctx: Context, reasons: Sequence[customer_models.ReasonType]) -> Filter:
    shown = set(reasons).difference(customer_models.list_hidden_reasons(ctx))
    return {store.REASON: {"$in": sorted(shown)}} if reasons else {}


def _hide(hidden: Sequence[customer_models.ReasonType]) -> list[PipelineStage]:
    """Return the stages that leave `hidden` reasons out of the reasons and the score of clients."""
    shown = {"$filter": {"input": f"${store.REASONS}", "cond": {"$not": {"$in": ["$$this.type", list(hidden)]}}}}
    of_reason = customer_models.WEIGHTS
    weights = [{"$cond": [{"$in": [each, f"${store.REASON}"]}, of_reason[each], 0]} for each in hidden]
    has_reasons = {"$isArray": f"${store.REASONS}"}  # none are computed yet of a new client
    limited = {"score": {"$subtract": [f"${store.SCORE}", {"$sum": weights}]}, "reasons": shown}
    merged = {"$mergeObjects": ["$attention", limited]}
    return [{"$set": {"attention": {"$cond": [has_reasons, merged, "$$REMOVE"]}}}] if hidden else []


def _without_hidden(
    where: Filter, hidden: Sequence[customer_models.ReasonType]
) -> tuple[Filter, list[PipelineStage], str]:
    """Return which clients to read, the stages that leave those whose shown reasons need attention, and the index."""
    needing: Filter = {"$or": [{store.SCORE: {"$gt": 0}}, _ONLY_UNAVAILABLE]}
    return {"$and": [where, needing]}, [*_hide(hidden), {"$match": needing}], _name_hint(where)


def _idle(where: Filter, since: date) -> Filter:
    created = datetime(since.year, since.month, since.day, tzinfo=UTC) + timedelta(days=1)
    never: Filter = {store.LAST_TRAINED: None, "createdAt": {"$lt": created}}
    return {"$and": [where, {"$or": [{store.LAST_TRAINED: {"$lte": str(since)}}, never]}]}


def _score_hint(where: Filter) -> str:
    return next((index for field, index in store.SCORE_INDEX_OF.items() if field in where), store.SCORE_INDEX)


async def count_attention(
    ctx: Context,
    *,
    reasons: Sequence[customer_models.ReasonType] = (),
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
    inactive_since: date | None = None,
) -> int:
    """Return how many active clients in the coach's scope need attention, counting no further than MOST_COUNTED.

    The filters are as in `list_attention`.
    """
    where, limit = _attention_filter(ctx, reasons, groups, trainers), MOST_COUNTED
    if inactive_since is not None:
        return await customers.count(ctx, _idle(where, inactive_since), limit=limit, hint=store.BY_LAST_TRAINED)
    if hidden := customer_models.list_hidden_reasons(ctx):
        needing, stages, hint = _without_hidden(where, hidden)
        counted = await customers.aggregate(ctx, needing, *stages, {"$limit": limit}, {"$count": "count"}, hint=hint)
        return counted[0]["count"] if counted else 0
    count = await customers.count(ctx, where | {store.SCORE: {"$gt": 0}}, limit=limit, hint=_score_hint(where))
    if count < limit:
        unavailable: Filter = {"$and": [where, _ONLY_UNAVAILABLE]}
        count += await customers.count(ctx, unavailable, limit=limit - count, hint=store.UNAVAILABLE_INDEX)
    return count


async def count_attention_values(
    ctx: Context,
    *,
    reasons: Sequence[customer_models.ReasonType] = (),
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
) -> customer_models.AttentionCounts:
    """Return how many active clients in the coach's scope that need attention have each reason, trainer and group.

    The filters are as in `list_attention`; each value is counted with the filters of the others. Of more than
    MOST_COUNTED clients only the most urgent ones are counted, and as many unavailable ones.
    """
    conditions: dict[str, Filter] = {
        "reasons": _reason_filter(ctx, reasons),
        "groups": {store.GROUPS: {"$in": groups}} if groups else {},
        "trainers": {store.TRAINER: {"$in": trainers}} if trainers else {},
    }
    where, hidden = _attention_filter(ctx), customer_models.list_hidden_reasons(ctx)
    facets: Document = {}
    for name, (field, array) in ATTENTION_VALUES.items():
        of_others = {key: value for other, each in conditions.items() if other != name for key, value in each.items()}
        unwound = [{"$unwind": f"${array}"}] if array else []
        facets[name] = [{"$match": of_others}, *unwound, {"$group": {"_id": f"${field}", "count": {"$sum": 1}}}]
    stages: list[PipelineStage] = [
        {"$sort": {store.SCORE: -1, "_id": 1}},
        {"$limit": MOST_COUNTED},
        {"$facet": facets},
    ]
    parts: list[tuple[Filter, list[PipelineStage], str]] = [
        (where | {store.SCORE: {"$gt": 0}}, stages, _score_hint(where)),
        ({"$and": [where, _ONLY_UNAVAILABLE]}, stages, store.UNAVAILABLE_INDEX),
    ]
    if hidden:
        needing, hiding, by_name = _without_hidden(where, hidden)
        parts = [(needing, [*hiding, *stages], by_name)]
    counts: dict[str, Counter[Any]] = {name: Counter() for name in ATTENTION_VALUES}
    for part, of_part, hint in parts:
        [counted] = await customers.aggregate(ctx, part, *of_part, hint=hint)
        for name, counter in counts.items():
            counter.update({each["_id"]: each["count"] for each in counted[name]})
    return cast("customer_models.AttentionCounts", {name: dict(counter) for name, counter in counts.items()})


async def read_for_attention(ctx: Context, customer_id: ObjectId) -> customer_models.Customer:
    """Return the fields of the attention list of a client, with the reasons that the caller may see.

    Raises NotFound, Forbidden as customers.get_visible.
    """
    await service.get_visible(ctx, customer_id)
    shown: PipelineStage = {"$project": dict.fromkeys(store.ATTENTION_FIELDS, 1)}
    stages = [shown, *_hide(customer_models.list_hidden_reasons(ctx))]
    found = await customers.aggregate(ctx, {"_id": customer_id}, *stages, hint=store.BY_ID)
    client: customer_models.Customer | None = found[0] if found else None
    return require_found(client, "customer")


# --- Figures that are due ---------------------------------------------------------------------------------------------


async def read_states(ctx: Context, ids: Sequence[ObjectId], *stages: PipelineStage) -> list[Any]:
    """Return fields that figures are computed from of the clients `ids`, with what `stages` add.

    `createdAt`, `attention`, `erasureRequestedAt`, and `isArchived`.
    """
    fields = {"createdAt": 1, "attention": 1, "erasureRequestedAt": 1, "isArchived": f"${store.ARCHIVED}"}
    return await customers.aggregate(ctx, {"_id": {"$in": list(ids)}}, {"$project": fields}, *stages, hint=store.BY_ID)


async def store_figures(
    ctx: Context,
    figures: Mapping[ObjectId, Mapping[str, object]],
    valid_until: Mapping[ObjectId, datetime],
    attention: Mapping[ObjectId, customer_models.Attention] | None = None,
    *,
    marks: Mapping[ObjectId, customer_models.FigureMark] | None = None,
) -> None:
    """Store figures (fields of customerRoleData) of clients, and until when they are valid (UTC), by client.

    `attention`: why they need attention; without it, what is stored stays. `marks`: those that were read before the
    figures were computed; the figures of clients that have others now are not stored.
    """
    changes: list[tuple[Filter, Document]] = []
    for customer_id, values in figures.items():
        fields = {f"customerRoleData.{name}": value for name, value in values.items()}
        if attention and customer_id in attention:
            fields["attention"] = attention[customer_id]
        where = {"_id": customer_id} if marks is None else {"_id": customer_id, **marks[customer_id]}
        new = {**fields, "figuresUntil": valid_until[customer_id]}
        changes.append((where, {"$set": new, "$unset": {"figuresChangedAt": ""}}))
    await customers.set_derived_each(ctx, changes)


mark_due = store.mark_figures_due


async def mark_all_due(services: Services, company_id: ObjectId, last: ObjectId | None, limit: int) -> ObjectId | None:
    """Make the derived figures of the next `limit` clients of a company after `last` invalid, by identifier.

    Returns the identifier of the last of them; None if there are none.
    """
    where: Filter = {"companyId": company_id} | ({} if last is None else {"_id": {"$gt": last}})
    collection = customers.across_companies(services)
    cursor = collection.find(where, {"_id": 1}, limit=limit, hint=store.BY_ID).sort("_id", 1)
    ids: list[ObjectId] = [client["_id"] async for client in cursor]
    if not ids:
        return None
    await collection.update_many({"companyId": company_id, "_id": {"$in": ids}}, store.mark())
    return ids[-1]


def _due(lane: customer_models.FigureLane) -> Filter:
    return {store.ARCHIVED: False, _LANE_FIELD[lane]: {"$lte": now()}}


async def find_due_companies(services: Services, lane: customer_models.FigureLane, limit: int) -> list[ObjectId]:
    """Return the companies of active clients whose figures are due, longest due first.

    Due by a change: of all clients; due by the day: of the `limit` clients that are due for longest.
    """
    field = _LANE_FIELD[lane]
    longest: list[PipelineStage] = [{"$sort": {field: 1}}, {"$limit": limit}] if lane == "daily" else []
    stages: list[PipelineStage] = [
        {"$match": _due(lane)},
        *longest,
        {"$group": {"_id": "$companyId", "since": {"$min": f"${field}"}}},
        {"$sort": {"since": 1}},
    ]
    cursor = customers.across_companies(services).aggregate(stages, hint=_FINDING_INDEX[lane])
    return [company["_id"] async for company in cursor]


async def count_due(services: Services, lane: customer_models.FigureLane) -> Backlog:
    """Count the active clients of all companies whose figures are due, at most MOST_DUE, and since when they are."""
    collection = customers.across_companies(services)
    return await count_backlog(collection, _due(lane), _LANE_FIELD[lane], MOST_DUE, hint=_FINDING_INDEX[lane])


async def list_due(
    services: Services, company_id: ObjectId, lane: customer_models.FigureLane, last: ObjectId | None, limit: int
) -> list[customer_models.Customer]:
    """Return the company's next `limit` active clients after the client `last` whose figures are due, by identifier.

    Each has only `_id`, `timezone` and the fields of its mark.
    """
    where = {"companyId": company_id, **_due(lane)} | ({} if last is None else {"_id": {"$gt": last}})
    fields = dict.fromkeys(("timezone", *_MARK), 1)
    cursor = customers.across_companies(services).find(where, fields, limit=limit, hint=_COMPANY_INDEX[lane])
    due: list[Any] = await cursor.sort("_id", 1).to_list(None)
    return due


async def read_metrics(services: Services) -> None:
    """Read the figures that are due, by lane; they are not a number while the database does not respond."""
    metrics = services.metrics
    for lane in get_args(customer_models.FigureLane):
        count, seconds = metrics.figures_due.labels(lane), metrics.oldest_figures_seconds.labels(lane)
        await read_backlog(count_due(services, lane), count, seconds, f"figures, {lane}")


def mark_of(client: customer_models.Customer) -> customer_models.FigureMark:
    """Return the mark of a client that `list_due` returned."""
    return {
        "figuresUntil": client.get("figuresUntil"),
        "figuresChangedAt": client.get("figuresChangedAt"),
        "scheduleChanges": client.get("scheduleChanges"),
    }


async def find_unchanged(ctx: Context, marks: Mapping[ObjectId, customer_models.FigureMark]) -> list[ObjectId]:
    """Return the clients whose figures have neither been marked nor stored since `marks` were read."""
    found = await customers.find(ctx, {"_id": {"$in": list(marks)}}, fields=_MARK, hint=store.BY_ID)
    return [each["_id"] for each in found if mark_of(each) == marks[each["_id"]]]


async def postpone(
    services: Services,
    company_id: ObjectId,
    lane: customer_models.FigureLane,
    ids: Sequence[ObjectId],
    delay: timedelta,
) -> None:
    """Leave the figures of a company's clients as they are for a while, so that others are computed first."""
    where = {"companyId": company_id, "_id": {"$in": list(ids)}, **_due(lane)}
    await customers.across_companies(services).update_many(where, {"$set": {_LANE_FIELD[lane]: now() + delay}})


def next_renewal(company_id: ObjectId, today: date, timezone: str) -> datetime:
    """Return the time (UTC) from which the figures of a client, computed on the local date `today`, are due again.

    It is in the first hours of the client's next day, the same for all clients of a company in a time zone, and
    another one for each company, so that the companies of a time zone are not due at the same moment.
    """
    return next_midnight(today, timezone) + timedelta(seconds=crc32(company_id.binary) % SPREAD_SECONDS)


# --- Reactions of clients to the events of other features -------------------------------------------------------------


UNASSIGN = "unassign_clients"
# A request that read the coach just before the removal may still assign clients: a second pass unassigns those.
_SECOND_PASS = timedelta(minutes=2)
_STEP_SECONDS = 1.0


async def require_customer_in_scope(ctx: Context, event: ResponseReplayed) -> None:
    """Raise Forbidden if a stored response is about a client outside the employee's scope."""
    if ctx.caller.customers_scope == "assigned":
        with suppress(NotFound):  # the response is about another kind of document, or the client is deleted
            await service.get_visible(ctx, event.about)


async def set_load_unit_of_all(ctx: Context, event: LoadUnitChanged) -> None:
    """Store with all clients that loads are in another unit: writes of requests that began before are refused."""
    await store.customers.set_derived(ctx, {}, {"$set": {"loadsIn": event.load_unit}})


async def count_restored_customers(ctx: Context, event: DocumentsRestored) -> None:
    """Count clients again whom an undo has archived, restored from the archive, or put into other groups.

    The reasons of those it has archived are cleared, and the figures of those it has restored are due.
    """
    both = [
        (cast("customer_models.Customer", each.before), cast("customer_models.Customer", each.after))
        for each in event.of_kind("customer")
        if each.before is not None and each.after is not None
    ]
    if both:
        roles = [[each["customerRoleData"] for each in clients] for clients in zip(*both, strict=True)]
        await counters.count_changed(ctx, *roles)
        for archived in (True, False):
            changed = [
                before["_id"]
                for before, after in both
                if before["customerRoleData"]["isArchived"] is not archived
                and after["customerRoleData"]["isArchived"] is archived
            ]
            await store.update_after_archiving(ctx, changed, archived=archived)


async def count_groups(services: Services, job: Job) -> RunAgain | None:
    """Count the clients in the groups of some companies after `last`, by identifier, for about a second."""
    last, end = job.arguments.get("last"), time.monotonic() + _STEP_SECONDS
    while (company_id := await counters.find_company_after(services, last)) is not None:
        await counters.GROUP_NUMBERS.correct(services, company_id)
        last = company_id
        if time.monotonic() > end:
            return RunAgain(progress={"last": last})
    return None


async def unassign_customers_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Leave the clients of a removed coach without a trainer, and queue a second pass."""
    ctx.changes.prevent_undo()  # the coach cannot be restored
    await store.unassign(ctx, event.coach_id)
    arguments = {"companyId": ctx.company_id, "coachId": event.coach_id}
    await queue.enqueue(ctx, UNASSIGN, arguments, after=_SECOND_PASS)


async def repeat_unassignment(services: Services, job: Job) -> None:
    """Run the second pass for the coach `coachId` of `companyId`."""
    with suppress(NotFound):  # the company has been deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        await store.unassign(Context(services, owner, operation=UNASSIGN, interface="system"), job.arguments["coachId"])
