"""When clients cannot train as planned: what coaches and clients enter, and what the figures of clients follow from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NotRequired, TypedDict, cast

from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.errors import Conflict, Forbidden, NotFound
from coaching_service.core.external_identity import find_differences
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.results import typed
from coaching_service.people.availability import models as availability_models
from coaching_service.people.availability import store
from coaching_service.people.availability.absences import Absences, includes
from coaching_service.people.availability.store import periods
from coaching_service.people.customers import activity_dates
from coaching_service.people.customers import service as customers

# How long after the end of an absence what was planned in it may still be moved or removed.
RETURN_DAYS = 14


async def list_availability(ctx: Context, customer_id: ObjectId) -> list[availability_models.Availability]:
    """Return the periods of a client, in order.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    found = periods.find(ctx, {"customerId": customer_id}, sort=("from",))
    _, listed = await gather_reads(ctx, customers.get_visible(ctx, customer_id), found)
    return cast("list[availability_models.Availability]", listed)


# --- For other features ----------------------------------------------------------------------------------------------


async def get_periods(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str | None
) -> dict[ObjectId, list[availability_models.Availability]]:
    """Return, for each of some clients, the periods with a day from `first` to `last` (None: no end), in order.

    One query for any number of clients; access is not checked.
    """
    found: dict[ObjectId, list[availability_models.Availability]] = {customer_id: [] for customer_id in customer_ids}
    if found:
        for period in await store.find_between(ctx, list(found), first, last):
            found[period["customerId"]].append(period)
    return found


async def get_absences(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str | None
) -> dict[ObjectId, Absences]:
    """Return, for each of some clients, on which days from `first` to `last` (None: no end) they do not train.

    One query for any number of clients; access is not checked.
    """
    found = await get_periods(ctx, customer_ids, first, last)
    return {customer_id: Absences(of_client) for customer_id, of_client in found.items()}


async def is_available(ctx: Context, customer_id: ObjectId, day: date) -> bool:
    """Return whether a client trains on a day: it is in no period of `away`, `injured` or `ill`.

    Access is not checked.
    """
    return day not in (await get_absences(ctx, [customer_id], str(day), str(day)))[customer_id]


async def find_present_or_next(
    ctx: Context, customer_id: ObjectId, today: date
) -> availability_models.Availability | None:
    """Return the period that has today, else the next one, of a client whose access has been checked; else None."""
    return await store.find_next(ctx, customer_id, str(today))


async def find_absence_before(
    ctx: Context, customer_id: ObjectId, back: str
) -> availability_models.Availability | None:
    """Return the absence from which a client returns on the day `back`: the latest one that began before.

    None without one, if what was planned then has been moved or removed already, and if it has ended more than
    RETURN_DAYS before. Access is not checked.
    """
    absence = await store.find_last_absence(ctx, customer_id, back)
    if absence is None or absence.get("isResumed"):
        return None
    if absence["until"] is not None:
        days = date.fromisoformat(back) - date.fromisoformat(absence["until"])
        if days.days > RETURN_DAYS:
            return None
    return take(availability_models.Availability, absence)


async def describe_absences(ctx: Context, today_of: Mapping[ObjectId, date]) -> dict[ObjectId, str]:
    """Return the absence of each client who does not train today, such as `Ill until 2026-03-08: Flu.`

    `today_of`: the clients with today's date where they are. Access is not checked.
    """
    first, last = min(today_of.values()), max(today_of.values())
    absences = await get_absences(ctx, list(today_of), str(first), str(last))
    present = {client: absences[client].find(today) for client, today in today_of.items()}
    return {client: describe(period) for client, period in present.items() if period is not None}


def describe(period: availability_models.Availability) -> str:
    """Return a period in words, such as `Ill until 2026-03-08: Flu.`"""
    end = "without an end yet" if period["until"] is None else f"until {period['until']}"
    return f"{period['kind'].capitalize()} {end}" + (f": {period['note']}" if period["note"] else "")


# --- Changing --------------------------------------------------------------------------------------------------------


@transactional
async def create(
    ctx: Context, customer_id: ObjectId, new: availability_models.NewAvailability
) -> availability_models.Availability:
    """Add a period of a client.

    Raises what `require_period` raises, Conflict if it overlaps another one, and what `list_availability` raises.
    """
    await activity_dates.lock_active(ctx, customer_id)
    store.require_period(new["from"], new["until"])
    await _require_free(ctx, customer_id, new["from"], new["until"])
    author = None if ctx.caller.is_coach else "client"
    period = await periods.insert(ctx, {**new, "customerId": customer_id, "createdBy": author})
    await ctx.publish(availability_models.AvailabilityChanged(customer_id, None, period))
    return period


@transactional
async def put(
    ctx: Context, customer_id: ObjectId, new: availability_models.NewAvailability
) -> tuple[availability_models.Availability | None, availability_models.Availability]:
    """Add a period of a client, or change the one that it corrects; returns that one before, and the period.

    It corrects a period that begins on the same day, or overlaps it and is of the same kind; one without an end does
    not correct what is to come. A note stays unless there is a new one. Raises what `update` raises, Conflict if it
    overlaps another period.
    """
    await activity_dates.lock_active(ctx, customer_id)
    overlapping = await store.find_between(ctx, [customer_id], new["from"], new["until"])
    if len(overlapping) != 1 or not _corrects(new, overlapping[0]):
        return None, await create(ctx, customer_id, new)
    [before] = overlapping
    fields = {name: value for name, value in new.items() if name != "note" or value is not None}
    if not (differences := find_differences(before, fields)):
        return before, before
    return before, await update(
        ctx, customer_id, before["_id"], cast("availability_models.AvailabilityChange", differences)
    )


def _corrects(new: availability_models.NewAvailability, period: availability_models.Availability) -> bool:
    """Return whether a period that overlaps another one is meant to change it."""
    if new["from"] == period["from"]:
        return True
    return new["kind"] == period["kind"] and (new["until"] is not None or includes(period, new["from"]))


@transactional
async def update(
    ctx: Context, customer_id: ObjectId, period_id: ObjectId, change: availability_models.AvailabilityChange
) -> availability_models.Availability:
    """Change a period of a client and return it.

    Raises NotFound if the client has no such period, Forbidden if the caller is a client and a coach has entered it,
    Conflict if it has changed since `change["version"]`, and what `create` raises.
    """
    await activity_dates.lock_active(ctx, customer_id)
    before = await _get_own(ctx, customer_id, period_id)
    fields = cast(
        "availability_models.AvailabilityChange", {name: value for name, value in change.items() if name != "version"}
    )
    first, last = fields.get("from", before["from"]), fields.get("until", before["until"])
    if has_moved := (first, last) != (before["from"], before["until"]):
        store.require_period(first, last)
    await _require_free(ctx, customer_id, first, last, period_id)
    return await _set_fields(
        ctx, before, {**fields, "isResumed": False} if has_moved else fields, change.get("version")
    )


@transactional
async def end(
    ctx: Context, absence: availability_models.Availability, last: str, *, is_resumed: bool
) -> availability_models.Availability:
    """End an absence of a client, who is locked, with the day `last`, unless it has ended before, and return it.

    `is_resumed`: what was planned in it is moved or removed, and must not be again.
    """
    fields: dict[str, object] = {}
    if not has_ended(absence, last):
        fields["until"] = last
    if is_resumed:
        fields["isResumed"] = True
    return await _set_fields(ctx, absence, fields) if fields else absence


def has_ended(absence: availability_models.Availability, last: str) -> bool:
    """Return whether an absence ends with the day `last` or before."""
    return absence["until"] is not None and absence["until"] <= last


async def _set_fields(
    ctx: Context, before: availability_models.Availability, fields: Mapping[str, object], version: int | None = None
) -> availability_models.Availability:
    where = {"customerId": before["customerId"], "_id": before["_id"]}
    after = await periods.rewrite(ctx, where, lambda _: fields, version=version)
    if after is None:
        raise NotFound("availability")
    await ctx.publish(availability_models.AvailabilityChanged(before["customerId"], before, after))
    return after


@transactional
async def delete(ctx: Context, customer_id: ObjectId, period_id: ObjectId) -> None:
    """Delete a period of a client. Raises NotFound and Forbidden as `update`."""
    await activity_dates.lock_active(ctx, customer_id)
    before = await _get_own(ctx, customer_id, period_id)
    await periods.delete(ctx, {"customerId": customer_id, "_id": period_id})
    await ctx.publish(availability_models.AvailabilityChanged(customer_id, before, None))


async def _get_own(ctx: Context, customer_id: ObjectId, period_id: ObjectId) -> availability_models.Availability:
    """Return a period that the caller may change. Raises NotFound, Forbidden."""
    period = await periods.find_one(ctx, {"customerId": customer_id, "_id": period_id})
    if period is None:
        raise NotFound("availability")
    if not ctx.caller.is_coach and period["createdBy"] != "client":
        raise Forbidden("Only its author may change or delete a period of availability", code="NOT_THE_AUTHOR")
    return period


async def _require_free(
    ctx: Context, customer_id: ObjectId, first: str, last: str | None, but: ObjectId | None = None
) -> None:
    """Raise Conflict if another period of a client, who is locked, has a day from `first` to `last`."""
    for period in await store.find_between(ctx, [customer_id], first, last):
        if period["_id"] != but:
            raise overlap(period)


def overlap(period: availability_models.Availability) -> Conflict:
    """Return the error of a period that has days of another one."""
    end = f"to {period['until']}" if period["until"] else "on"
    message = f"The client is {period['kind']} from {period['from']} {end} already: periods must not overlap"
    return Conflict(message, code="AVAILABILITY_OVERLAP")


async def publish_restored_periods(ctx: Context, event: DocumentsRestored) -> None:
    """Have what depends on periods follow when an undo restores them, which has locked the clients.

    Raises Conflict if a restored period overlaps one that was added since.
    """
    for document in event.of_kind("availability"):
        before, after = (
            cast("availability_models.Availability | None", document.before),
            cast("availability_models.Availability | None", document.after),
        )
        period = after or before
        if period is None:
            continue
        if after is not None:
            await _require_free(ctx, after["customerId"], after["from"], after["until"], after["_id"])
        await ctx.publish(availability_models.AvailabilityChanged(period["customerId"], before, after, is_undo=True))


# --- Periods of availability as assistants read them ------------------------------------------------------------------


# `from` is a keyword of Python, so this type has the functional form.
_First = TypedDict("_First", {"from": str})


class AvailabilityText(_First):
    """A period in which a client cannot train as planned, as assistants read it."""

    _id: ObjectId
    kind: availability_models.AvailabilityKind
    until: NotRequired[str]
    note: NotRequired[str]


def write_period(period: availability_models.Availability) -> str:
    """Return a period in words, such as `ill 2026-03-02 to 2026-03-08 «Flu.»`."""
    end = "on, without an end yet" if period["until"] is None else f"to {period['until']}"
    return f"{period['kind']} {period['from']} {end}" + (f" {typed(period['note'])}" if period["note"] else "")
