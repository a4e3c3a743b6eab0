"""When clients cannot train as planned: what coaches and clients enter, and what the figures of clients follow from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from coaching_service.core import fields as core_fields
from coaching_service.core.auth import CUSTOMERS, coach, customer
from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.declared import RECORDS, Action, EventData, History, Index, Portable, Stored
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.dates import add_years
from coaching_service.core.errors import Conflict, Forbidden, NotFound, invalid_field
from coaching_service.core.events import DomainEvent, EventType
from coaching_service.core.external_identity import find_differences
from coaching_service.core.fields import input_of, private_of, take
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import typed
from coaching_service.core.validation import AbsenceDate, Text, patch_of
from coaching_service.people.customers import service as customers

# --- Periods as they are sent, stored and returned --------------------------------------------------------------------


AvailabilityKind = Literal["away", "injured", "ill", "limited"]


class _Reason(TypedDict):
    kind: Annotated[
        AvailabilityKind,
        core_fields.Description(
            "`away`, `injured` and `ill`: the client does not train, so nothing counts as missed. `limited`: shown, "
            "with no effect."
        ),
        core_fields.Label("Kind"),
    ]


# `from` is a keyword of Python, so this type has the functional form.
AvailabilityDates = TypedDict(
    "AvailabilityDates",
    {
        "from": Annotated[
            str, AbsenceDate(), core_fields.Description("The first day."), core_fields.Label("First day")
        ],
        "until": Annotated[
            str | None,
            AbsenceDate(),
            core_fields.Default(None),
            core_fields.Description(
                request="The last day. Default: no end yet.", response="The last day; null: no end yet."
            ),
            core_fields.Label("Last day"),
        ],
    },
)


class NewAvailability(_Reason, AvailabilityDates):
    """A period in which a client cannot train as planned."""

    note: Annotated[
        str | None,
        Text(max_length=500),
        core_fields.Default(None),
        core_fields.Description("What the client and the coaches should know about it."),
        core_fields.Label("Note"),
    ]


class _Owner(TypedDict):
    customerId: ObjectId
    createdBy: Annotated[
        Literal["client"] | None,
        core_fields.Description("`client`: the client has entered it, and may change it; null: a coach."),
    ]


class Availability(NewAvailability, _Owner, Stored):
    """A period in which a client cannot train as planned."""


class StoredAvailability(Availability):
    """A period with what is not returned.

    `isResumed`: the client has returned from it, and what was planned has been moved or removed.
    """

    isResumed: NotRequired[Annotated[bool, core_fields.Private]]


AvailabilityChange: TypeAlias = core_fields.Change[NewAvailability]


# --- Events about the availability of clients, for the features that build on it --------------------------------------


@dataclass(frozen=True)
class AvailabilityChanged(DomainEvent):
    """A period of a client was added (`before` is None), changed, or deleted (`after` is None).

    `is_undo`: by an undo, which has restored what the change had changed.
    """

    customer_id: ObjectId
    before: Availability | None
    after: Availability | None
    is_undo: bool = False


# --- On which days clients do not train, free of the database ---------------------------------------------------------


LIMITED = "limited"


class Absences:
    """The days of one client's periods of `away`, `injured` and `ill`."""

    def __init__(self, periods: Iterable[Availability]) -> None:
        self.periods: Sequence[Availability] = [period for period in periods if is_absence(period)]

    def find(self, day: str | date) -> Availability | None:
        """Return the period that has a day (`YYYY-MM-DD`), or None."""
        return next((period for period in self.periods if includes(period, str(day))), None)

    def kind_on(self, day: str) -> AvailabilityKind | None:
        """Return why the client does not train on a day (`YYYY-MM-DD`); None if the client does."""
        period = self.find(day)
        return None if period is None else period["kind"]

    def has_any(self, first: date, last: date) -> bool:
        """Return whether the client does not train on a day from `first` to `last`."""
        return any(
            period["from"] <= str(last) and (period["until"] is None or str(first) <= period["until"])
            for period in self.periods
        )

    def __contains__(self, day: object) -> bool:
        return self.find(str(day)) is not None

    def __bool__(self) -> bool:
        return bool(self.periods)


def is_absence(period: Availability) -> bool:
    """Return whether the client does not train in a period."""
    return period["kind"] != LIMITED


def includes(period: Availability, day: str) -> bool:
    """Return whether a period has a day (`YYYY-MM-DD`)."""
    return period["from"] <= day and (period["until"] is None or day <= period["until"])


# --- Periods in the database ------------------------------------------------------------------------------------------


_EVENT_TYPES: dict[Action, EventType] = {
    "created": "availability.created",
    "changed": "availability.updated",
    "deleted": "availability.deleted",
}


def _event_of(action: Action, known: Mapping[str, Any], paths: Collection[str]) -> EventData | None:
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
    (Index(("customerId", "from")),),
    private=private_of(StoredAvailability),
    client_field="customerId",
    history=History(
        "availability",
        _event_of,
        event_fields=("kind", "from", "until"),
        contact=lambda period: [period["note"]] if period["note"] else [],
    ),
    transfer=Portable(
        Availability,
        RECORDS,
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


# --- For other features ----------------------------------------------------------------------------------------------


# How long after the end of an absence what was planned in it may still be moved or removed.
RETURN_DAYS = 14


async def get_periods(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str | None
) -> dict[ObjectId, list[Availability]]:
    """Return, for each of some clients, the periods with a day from `first` to `last` (None: no end), in order.

    One query for any number of clients; access is not checked.
    """
    found: dict[ObjectId, list[Availability]] = {customer_id: [] for customer_id in customer_ids}
    if found:
        for period in await find_between(ctx, list(found), first, last):
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


async def find_present_or_next(ctx: Context, customer_id: ObjectId, today: date) -> Availability | None:
    """Return the period that has today, else the next one, of a client whose access has been checked; else None."""
    where = {"customerId": customer_id, **_not_before(str(today))}
    first = await periods.find(ctx, where, sort=("from",), limit=1, hint=_BY_START)
    return first[0] if first else None


async def find_absence_before(ctx: Context, customer_id: ObjectId, back: str) -> Availability | None:
    """Return the absence from which a client returns on the day `back`: the latest one that began before.

    None without one, if what was planned then has been moved or removed already, and if it has ended more than
    RETURN_DAYS before. Access is not checked.
    """
    where: Filter = {"customerId": customer_id, "from": {"$lt": back}, "kind": {"$ne": LIMITED}}
    last = await periods.find(ctx, where, sort=("-from",), limit=1, hint=_BY_START, including=("isResumed",))
    absence = cast("StoredAvailability", last[0]) if last else None
    if absence is None or absence.get("isResumed"):
        return None
    days = date.fromisoformat(back) - date.fromisoformat(absence["until"] or back)
    return take(Availability, absence) if days.days <= RETURN_DAYS else None


async def describe_absences(ctx: Context, today_of: Mapping[ObjectId, date]) -> dict[ObjectId, str]:
    """Return the absence of each client who does not train today, such as `Ill until 2026-03-08: Flu.`

    `today_of`: the clients with today's date where they are. Access is not checked.
    """
    first, last = min(today_of.values()), max(today_of.values())
    absences = await get_absences(ctx, list(today_of), str(first), str(last))
    present = {client: absences[client].find(today) for client, today in today_of.items()}
    return {client: describe(period) for client, period in present.items() if period is not None}


def describe(period: Availability) -> str:
    """Return a period in words, such as `Ill until 2026-03-08: Flu.`"""
    end = "without an end yet" if period["until"] is None else f"until {period['until']}"
    return f"{period['kind'].capitalize()} {end}" + (f": {period['note']}" if period["note"] else "")


# --- Changing --------------------------------------------------------------------------------------------------------


@transactional
async def put(ctx: Context, customer_id: ObjectId, new: NewAvailability) -> tuple[Availability | None, Availability]:
    """Add a period of a client, or change the one that it corrects; returns that one before, and the period.

    It corrects a period that begins on the same day, or overlaps it and is of the same kind; one without an end does
    not correct what is to come. A note stays unless there is a new one. Raises what `update_availability` raises,
    Conflict if it overlaps another period.
    """
    await customers.lock_active(ctx, customer_id)
    overlapping = await find_between(ctx, [customer_id], new["from"], new["until"])
    before = overlapping[0] if len(overlapping) == 1 else None
    if before is None or not (
        new["from"] == before["from"]
        or (new["kind"] == before["kind"] and (new["until"] is not None or includes(before, new["from"])))
    ):
        return None, await create_availability(ctx, customer_id, new)
    fields = {name: value for name, value in new.items() if name != "note" or value is not None}
    if not (differences := find_differences(before, fields)):
        return before, before
    return before, await update_availability(ctx, customer_id, before["_id"], cast("AvailabilityChange", differences))


@transactional
async def end(ctx: Context, absence: Availability, last: str, *, is_resumed: bool) -> Availability:
    """End an absence of a client, who is locked, with the day `last`, unless it has ended before, and return it.

    `is_resumed`: what was planned in it is moved or removed, and must not be again.
    """
    fields: dict[str, object] = {}
    if not has_ended(absence, last):
        fields["until"] = last
    if is_resumed:
        fields["isResumed"] = True
    return await _set_fields(ctx, absence, fields) if fields else absence


def has_ended(absence: Availability, last: str) -> bool:
    """Return whether an absence ends with the day `last` or before."""
    return absence["until"] is not None and absence["until"] <= last


async def _set_fields(
    ctx: Context, before: Availability, fields: Mapping[str, object], version: int | None = None
) -> Availability:
    where = {"customerId": before["customerId"], "_id": before["_id"]}
    after = await periods.rewrite(ctx, where, lambda _: fields, version=version)
    if after is None:
        raise NotFound("availability")
    await ctx.publish(AvailabilityChanged(before["customerId"], before, after))
    return after


async def _get_own(ctx: Context, customer_id: ObjectId, period_id: ObjectId) -> Availability:
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
    for period in await find_between(ctx, [customer_id], first, last):
        if period["_id"] != but:
            raise overlap(period)


def overlap(period: Availability) -> Conflict:
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
            cast("Availability | None", document.before),
            cast("Availability | None", document.after),
        )
        period = after or before
        if period is None:
            continue
        if after is not None:
            await _require_free(ctx, after["customerId"], after["from"], after["until"], after["_id"])
        await ctx.publish(AvailabilityChanged(period["customerId"], before, after, is_undo=True))


# --- Periods of availability as assistants read them ------------------------------------------------------------------


# `from` is a keyword of Python, so this type has the functional form.
_First = TypedDict("_First", {"from": str})


class AvailabilityText(_First):
    """A period in which a client cannot train as planned, as assistants read it."""

    _id: ObjectId
    kind: AvailabilityKind
    until: NotRequired[str]
    note: NotRequired[str]


def write_period(period: Availability) -> str:
    """Return a period in words, such as `ill 2026-03-02 to 2026-03-08 «Flu.»`."""
    end = "on, without an end yet" if period["until"] is None else f"to {period['until']}"
    return f"{period['kind']} {period['from']} {end}" + (f" {typed(period['note'])}" if period["note"] else "")


# --- REST -------------------------------------------------------------------------------------------------------------


_PATH = {"availabilityId": "The identifier of the period."}
routes = Routes(
    "/coach/customers/{customerId}/availability", tag="Availability", path_descriptions=_PATH, locks="customer"
)
own_routes = Routes("/customer/availability", tag="The client's own", path_descriptions=_PATH)

_CHANGE = patch_of(input_of(NewAvailability), name="AvailabilityChange")
_NEW = {"kind": "ill", "from": "2026-03-02", "until": "2026-03-08", "note": "Flu."}
_OWN_NEW = {"kind": "away", "from": "2026-07-06", "until": "2026-07-12", "note": "No gym there."}


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_availability(ctx: Context, customer_id: ObjectId) -> list[Availability]:
    """List the periods in which a client cannot train as planned, in order."""
    # Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    found = periods.find(ctx, {"customerId": customer_id}, sort=("from",))
    _, listed = await gather_reads(ctx, customers.get_visible(ctx, customer_id), found)
    return cast("list[Availability]", listed)


@routes.post("", access=coach(CUSTOMERS.EDIT), errors=(Conflict,), example=_NEW)
@transactional
async def create_availability(ctx: Context, customer_id: ObjectId, body: NewAvailability) -> Availability:
    """Add a period in which a client cannot train as planned.

    Days of `away`, `injured` and `ill` are no workout days: they neither count nor are missed, and recurring check-ins
    leave them out. 409 `AVAILABILITY_OVERLAP` if another period of the client has one of the days.
    """
    # Raises what `require_period` raises, Conflict if it overlaps another one, and what `list_availability` raises.
    await customers.lock_active(ctx, customer_id)
    require_period(body["from"], body["until"])
    await _require_free(ctx, customer_id, body["from"], body["until"])
    author = None if ctx.caller.is_coach else "client"
    period = await periods.insert(ctx, {**body, "customerId": customer_id, "createdBy": author})
    await ctx.publish(AvailabilityChanged(customer_id, None, period))
    return period


@routes.patch(
    "/{availabilityId}", access=coach(CUSTOMERS.EDIT), body=_CHANGE, example={"until": "2026-05-06", "version": 0}
)
@transactional
async def update_availability(
    ctx: Context, customer_id: ObjectId, availability_id: ObjectId, body: AvailabilityChange
) -> Availability:
    """Change a period in which a client cannot train as planned.

    Check-ins of days that are no longer part of it come back, from the client's today on.
    """
    # Raises NotFound if the client has no such period, Forbidden if the caller is a client and a coach has entered it,
    # Conflict if it has changed since `body["version"]`, and what `create_availability` raises.
    await customers.lock_active(ctx, customer_id)
    before = await _get_own(ctx, customer_id, availability_id)
    fields = cast("AvailabilityChange", {name: value for name, value in body.items() if name != "version"})
    first, last = fields.get("from", before["from"]), fields.get("until", before["until"])
    if has_moved := (first, last) != (before["from"], before["until"]):
        require_period(first, last)
    await _require_free(ctx, customer_id, first, last, availability_id)
    return await _set_fields(ctx, before, {**fields, "isResumed": False} if has_moved else fields, body.get("version"))


@routes.delete("/{availabilityId}", access=coach(CUSTOMERS.EDIT))
@transactional
async def delete_availability(ctx: Context, customer_id: ObjectId, availability_id: ObjectId) -> None:
    """Delete a period in which a client cannot train as planned.

    Its check-ins come back, from the client's today on.
    """
    await customers.lock_active(ctx, customer_id)
    before = await _get_own(ctx, customer_id, availability_id)
    await periods.delete(ctx, {"customerId": customer_id, "_id": availability_id})
    await ctx.publish(AvailabilityChanged(customer_id, before, None))


@own_routes.get("", access=customer())
async def list_own_availability(ctx: Context) -> list[Availability]:
    """List the periods in which I cannot train as planned, in order."""
    return await list_availability(ctx, ctx.caller.id)


@own_routes.post("", access=customer(), errors=(Conflict,), example=_OWN_NEW)
async def create_own_availability(ctx: Context, body: NewAvailability) -> Availability:
    """Add a period in which I cannot train as planned.

    My coaches see it. 409 `AVAILABILITY_OVERLAP` if another period has one of the days.
    """
    return await create_availability(ctx, ctx.caller.id, body)


@own_routes.patch(
    "/{availabilityId}",
    access=customer(),
    body=_CHANGE,
    errors=(Forbidden,),
    example={"until": "2026-06-03", "version": 0},
)
async def update_own_availability(ctx: Context, availability_id: ObjectId, body: AvailabilityChange) -> Availability:
    """Change a period in which I cannot train as planned.

    403 `NOT_THE_AUTHOR` if a coach has entered it.
    """
    return await update_availability(ctx, ctx.caller.id, availability_id, body)


@own_routes.delete("/{availabilityId}", access=customer(), errors=(Forbidden,))
async def delete_own_availability(ctx: Context, availability_id: ObjectId) -> None:
    """Delete a period in which I cannot train as planned.

    403 `NOT_THE_AUTHOR` if a coach has entered it.
    """
    await delete_availability(ctx, ctx.caller.id, availability_id)
