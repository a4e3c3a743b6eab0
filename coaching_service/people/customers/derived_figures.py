"""Figures stored with clients for the lists: until when they are valid, and which are due to be computed again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, Literal, cast, get_args
from zlib import crc32

from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database.across_companies import count_backlog
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Filter, PipelineStage, now
from coaching_service.core.dates import next_midnight
from coaching_service.core.errors import NotFound, require_found
from coaching_service.core.idempotency import ResponseReplayed
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.list_selection import CursorPage, ListPart
from coaching_service.core.metrics import Backlog, read_backlog
from coaching_service.people import team
from coaching_service.people.account import LoadUnitChanged
from coaching_service.people.customers import _group_totals, attention_events, counters, figures_store, service, store
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers.store import customers
from coaching_service.people.team import CoachRemoved

RateOrder = Literal["percentage", "name"]
RateDays = Literal[7, 30, 90]
MOST_COUNTED = 1_000
MOST_DUE = 10_000
SPREAD_SECONDS = 3 * 3600
# The time since when, or from which on, figures are due.
_LANE_FIELD: dict[customer_models.FigureLane, str] = {"changes": "figuresChangedAt", "daily": "figuresUntil"}
# The index of changes has only the clients that have changed, so it is read completely to find their companies.
_FINDING_INDEX: dict[customer_models.FigureLane, str] = {"changes": store.CHANGED_INDEX, "daily": store.DUE_INDEX}
_COMPANY_INDEX: dict[customer_models.FigureLane, str] = {"changes": store.CHANGED_INDEX, "daily": store.BY_ID}
_MARK = ("figuresUntil", "figuresChangedAt", "scheduleChanges")


async def list_rates(
    ctx: Context, days: RateDays, *, below: int | None, sort: RateOrder, limit: int, after: str | None
) -> CursorPage[customer_models.CustomerRate]:
    """Return part of the active clients in the coach's scope with their stored compliance rates of `days` days.

    `sort`: by `percentage`, ascending with None last, or by `name`. `below`: only clients whose rate (0 to 100) is
    below it. Raises InvalidFields if `after` is not a cursor of this list with the same filters.
    """
    where, _ = service.build_list_filter(ctx, archived=False, groups=None, trainers=None)
    filters = {"period": days, "below": below, "sort": sort}
    order = store.ORDER if sort == "name" else (store.rate_field(days), *store.ORDER)
    list_part = ListPart(ctx, "compliance", filters, order, size=limit, after=after)
    if sort == "name":
        clients = await figures_store.find_by_name(
            ctx, where | list_part.condition(), limit=limit + 1, days=days, below=below
        )
    else:
        parts = list_part.conditions_with_nulls_last()
        clients = await figures_store.find_by_rate(ctx, where, parts, days, below=below, limit=limit + 1)
    return list_part.by_cursor(clients, lambda customer: _present_rate(customer, days))


def _present_rate(customer: customer_models.Customer, days: RateDays) -> customer_models.CustomerRate:
    rates = cast("dict[str, Any]", customer["customerRoleData"])
    return {"_id": customer["_id"], "name": service.full_name(customer), "rate": rates[f"complianceRate{days}d"]}


async def list_clients_by_name(
    ctx: Context, list_name: str, filters: Mapping[str, object], *, limit: int, after: str | None
) -> CursorPage[customer_models.Customer]:
    """Return part of the active clients in the coach's scope by name, for a company-wide list with these filters.

    Each has `_id`, name, surname and time zone. Raises InvalidFields if `after` is not a cursor of this list with the
    same filters.
    """
    where, _ = service.build_list_filter(ctx, archived=False, groups=None, trainers=None)
    list_part = ListPart(ctx, list_name, filters, store.ORDER, size=limit, after=after)
    clients = await figures_store.find_by_name(ctx, where | list_part.condition(), limit=limit + 1)
    return list_part.by_cursor(clients, lambda entry: entry)


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

    Reasons of areas that the caller may not see do not exist here: not in the filter, the score or the entries.

    For any of `reasons`, in any of `groups`, of any of `trainers` (None among them: clients without a trainer). Each
    has the fields of the attention list. Raises InvalidFields if `after` is not a cursor of this list with the same
    filters.
    """
    where = _attention_filter(ctx, reasons, groups, trainers)
    filters = {"reason": sorted(set(reasons)), "groups": groups, "assignedTo": trainers, "inactive": inactive_since}
    list_part = ListPart(ctx, "attention", filters, store.BY_ATTENTION, size=limit, after=after)
    hidden, condition = attention_events.list_hidden(ctx), list_part.condition()
    if inactive_since is None:
        clients = await figures_store.find_by_attention(ctx, where, condition, hidden=hidden, limit=limit + 1)
    else:
        clients = await figures_store.find_inactive(
            ctx, where, condition, inactive_since, hidden=hidden, limit=limit + 1
        )
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
    shown = set(reasons).difference(attention_events.list_hidden(ctx))
    return {store.REASON: {"$in": sorted(shown)}} if reasons else {}


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
    where = _attention_filter(ctx, reasons, groups, trainers)
    if inactive_since is not None:
        return await figures_store.count_inactive(ctx, where, inactive_since, MOST_COUNTED)
    return await figures_store.count_by_attention(ctx, where, MOST_COUNTED, hidden=attention_events.list_hidden(ctx))


async def count_attention_values(
    ctx: Context,
    *,
    reasons: Sequence[customer_models.ReasonType] = (),
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
) -> customer_models.AttentionCounts:
    """Return how many active clients in the coach's scope that need attention have each reason, trainer and group.

    The filters are as in `list_attention`; each value is counted with the filters of the others. Of more than
    MOST_COUNTED clients only the most urgent ones are counted.
    """
    conditions: dict[str, Filter] = {
        "reasons": _reason_filter(ctx, reasons),
        "groups": {store.GROUPS: {"$in": groups}} if groups else {},
        "trainers": {store.TRAINER: {"$in": trainers}} if trainers else {},
    }
    hidden = attention_events.list_hidden(ctx)
    counts = await figures_store.count_attention_values(
        ctx, _attention_filter(ctx), conditions, MOST_COUNTED, hidden=hidden
    )
    return cast("customer_models.AttentionCounts", counts)


async def read_for_attention(ctx: Context, customer_id: ObjectId) -> customer_models.Customer:
    """Return the fields of the attention list of a client, with the reasons that the caller may see.

    Raises NotFound, Forbidden as customers.get_visible.
    """
    await service.get_visible(ctx, customer_id)
    found = await figures_store.read_for_attention(ctx, customer_id, attention_events.list_hidden(ctx))
    return require_found(found[0] if found else None, "customer")


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


mark_due = figures_store.mark_figures_due


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
    await collection.update_many({"companyId": company_id, "_id": {"$in": ids}}, figures_store.mark())
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
COUNT_GROUPS = _group_totals.COUNT
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
            await figures_store.update_after_archiving(ctx, changed, archived=archived)


async def count_groups(services: Services, job: Job) -> RunAgain | None:
    """Count the clients in the groups of some companies after `last`, by identifier, for about a second."""
    last, end = job.arguments.get("last"), time.monotonic() + _STEP_SECONDS
    while (company_id := await _group_totals.find_company_after(services, last)) is not None:
        await counters.correct_groups(services, company_id)
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
