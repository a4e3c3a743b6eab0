"""Periods of availability in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any, cast

from coaching_service.core.database import declared
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.dates import add_years
from coaching_service.core.errors import invalid_field
from coaching_service.core.events import EventType
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import AbsenceDate
from coaching_service.people.availability.absences import LIMITED
from coaching_service.people.availability.models import Availability, StoredAvailability

_EVENT_TYPES: dict[declared.Action, EventType] = {
    "created": "availability.created",
    "changed": "availability.updated",
    "deleted": "availability.deleted",
}


def _event(action: declared.Action, known: Mapping[str, Any], paths: Collection[str]) -> declared.EventData | None:
    if action == "changed" and set(paths) == {"isResumed"}:
        return None
    data = {"availabilityId": known["_id"], **{name: known[name] for name in ("kind", "from", "until")}}
    return {"type": _EVENT_TYPES[action], "data": data}


def _complete_imported(period: dict[str, Any]) -> dict[str, Any]:
    """Return an imported period. Raises what `require_period` raises, unless it is open, for however long."""
    if period["until"] is not None:
        require_period(period["from"], period["until"])
    return period


def require_period(first: str, last: str | None) -> None:
    """Raise InvalidFields if a period ends before it begins, or is too long; one without an end is, until today."""
    if last is not None and last < first:
        raise invalid_field("until", "must not be before from", code="BEFORE_START")
    _, latest = AbsenceDate.bounds()
    longest = add_years(date.fromisoformat(first), AbsenceDate.years)
    if (last or str(now().date())) > min(str(longest), latest):
        message = (
            f"must be at most {AbsenceDate.years} years after from, and at most {AbsenceDate.years} years from today"
        )
        raise invalid_field("until" if last else "from", message, code="DATE_OUT_OF_RANGE")


periods = Documents[Availability](
    "availability",
    (declared.Index(("customerId", "from")),),
    private=private_of(StoredAvailability),
    client_field="customerId",
    history=declared.History(
        "availability",
        _event,
        event_fields=("kind", "from", "until"),
        contact=lambda period: [period["note"]] if period["note"] else [],
    ),
    transfer=declared.Portable(
        Availability,
        declared.RECORDS,
        computed=("isResumed",),
        references={"customerId": "customers"},
        complete=_complete_imported,
    ),
)
_BY_START = periods.index_name("customerId", "from")


def _not_before(day: str) -> Filter:
    return {"$or": [{"until": None}, {"until": {"$gte": day}}]}


async def find_between(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str | None
) -> list[Availability]:
    """Return the periods of clients with a day from `first` to `last` (None: no end), by client, in order."""
    begun: Filter = {} if last is None else {"from": {"$lte": last}}
    where = {"customerId": {"$in": list(customer_ids)}, **begun, **_not_before(first)}
    return await periods.find(ctx, where, sort=("customerId", "from"), hint=_BY_START)


async def find_next(ctx: Context, customer_id: ObjectId, day: str) -> Availability | None:
    """Return the first period of a client that has not ended before a day, or None."""
    where = {"customerId": customer_id, **_not_before(day)}
    first = await periods.find(ctx, where, sort=("from",), limit=1, hint=_BY_START)
    return first[0] if first else None


async def find_last_absence(ctx: Context, customer_id: ObjectId, before: str) -> StoredAvailability | None:
    """Return the latest period of a client that began before a day and in which the client does not train, or None."""
    where: Filter = {"customerId": customer_id, "from": {"$lt": before}, "kind": {"$ne": LIMITED}}
    last = await periods.find(ctx, where, sort=("-from",), limit=1, hint=_BY_START, including=("isResumed",))
    return cast("StoredAvailability", last[0]) if last else None
