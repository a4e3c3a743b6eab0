"""Recurring check-ins of clients: blocks of their own on the calendar, four weeks ahead."""

from __future__ import annotations

from calendar import day_name
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict, cast

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import fields as core_fields
from coaching_service.core import mcp, validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database import declared
from coaching_service.core.database.across_companies import count_backlog
from coaching_service.core.database.context import Context, Services, transactional, version_conflict
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.dates import LAST_DATE, next_midnight
from coaching_service.core.errors import InvalidFields, NotFound, invalid_field, require_found
from coaching_service.core.events import EventType
from coaching_service.core.fields import argument_of, input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.core.mcp import CustomerArgument, Tools, optional
from coaching_service.core.metrics import Backlog, read_backlog
from coaching_service.library import forms, metric_sets
from coaching_service.people import availability, team
from coaching_service.people.account import CompanyResumed
from coaching_service.people.availability import Availability, AvailabilityChanged, includes, is_absence
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer
from coaching_service.progress.reminders import CHECK_INS_AT
from coaching_service.training.workout_text.finding import resolve_document
from coaching_service.training.workout_text.tools import check_names
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.models import BlockPlan
from coaching_service.training.workouts.blocks.service import ClientCalendar, has_nothing_done
from coaching_service.training.workouts.items.models import ItemForm, ItemInput, NewTaskFields, TaskFields

# --- Recurring check-ins as they are sent, stored and returned --------------------------------------------------------


_WEEKDAY = "The weekday, from 1 (Monday) to 7 (Sunday)"
_EVERY = "The number of days from one check-in to the next; the first one is on `startDate`"


class Recurrence(TypedDict):
    """When a check-in takes place, from `startDate` to `until`, both included: on a weekday, or every few days."""

    weekday: Annotated[
        int | None,
        validation.Integer(minimum=1, maximum=7),
        core_fields.Description(
            request=f"{_WEEKDAY}.",
            response=f"{_WEEKDAY}; null with `everyDays`.",
            argument="Every week on this day, 1 Monday to 7 Sunday.",
        ),
    ]
    everyDays: Annotated[
        int | None,
        validation.Integer(minimum=1, maximum=366),
        core_fields.Description(
            request=f"{_EVERY}.", response=f"{_EVERY}; null with `weekday`.", argument="Instead: every so many days."
        ),
    ]
    startDate: Annotated[
        str,
        validation.CalendarDate(),
        core_fields.Description(
            "The first date on which it can take place.", argument="First day. Default: the client's today."
        ),
    ]
    until: Annotated[
        str | None,
        validation.Date(),
        core_fields.Description(
            request="The last date on which it can take place. Default: no end.",
            response="The last date on which it can take place; null without an end.",
            argument="Last day. Default: no end.",
        ),
    ]


class _Content(TypedDict):
    formId: Annotated[
        ObjectId | None,
        core_fields.Description(
            request="The form to answer.", response="The form to answer; null for other check-ins."
        ),
    ]
    metricsSetId: Annotated[
        ObjectId | None,
        core_fields.Description(
            request="The metrics to record.", response="The metrics to record; null for other check-ins."
        ),
    ]
    taskFields: Annotated[
        TaskFields | None,
        fields.Nested(NewTaskFields),
        core_fields.Description(
            request="A task, such as a daily habit.", response="The task; null for other check-ins."
        ),
    ]


class NewCheckIn(_Content, Recurrence):
    """The content of a recurring check-in: one of a form, a metric set and a task.

    Either on a weekday, or every few days.
    """


_CONTENT = ("formId", "metricsSetId", "taskFields")
_RHYTHM = ("weekday", "everyDays")


class _Choices(validation.Input):
    @validates_schema(skip_on_field_errors=True)
    def validate_choices(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError unless there is one content and one rhythm, and the end is not before the start."""
        for name, messages in _find_wrong_choices(data, _CONTENT).items():
            raise ValidationError(messages, name)  # only the first


def _find_wrong_choices(data: Mapping[str, Any], content: Sequence[str]) -> dict[str, list[str]]:
    """Return what is wrong by field unless there is one content and one rhythm, and the end is not before the start."""
    errors: dict[str, list[str]] = {}
    for names in (content, _RHYTHM):
        given = [name for name in names if data.get(name) is not None]
        if not given and all(name in data for name in names):
            errors[names[0]] = [validation.Message(f"is required, or {' or '.join(names[1:])}", "REQUIRED")]
        for name in given[1:]:
            errors[name] = [validation.Message(f"must not be combined with {given[0]}", "NOT_ALLOWED")]
    first, last = data.get("startDate"), data.get("until")
    if first is not None and last is not None and last < first:
        errors["until"] = [validation.BEFORE_START]
    return errors


NEW_CHECK_IN = input_of(NewCheckIn, _Choices)


class _Changes(_Content):
    weekday: Annotated[
        int | None, validation.Integer(minimum=1, maximum=7), core_fields.Description(request=f"{_WEEKDAY}.")
    ]
    everyDays: Annotated[
        int | None,
        validation.Integer(minimum=1, maximum=366),
        core_fields.Description(request="The number of days from one check-in to the next, counted from `startDate`."),
    ]
    until: Annotated[
        str | None, validation.Date(), core_fields.Description(request="The last date on which it can take place.")
    ]


class _Named(TypedDict):
    customerId: ObjectId
    name: Annotated[
        str, validation.Text(), core_fields.Description("The name of the form or metric set, or the title of the task.")
    ]


class CheckIn(_Named, _Content, Recurrence, declared.Returned):
    """A recurring check-in of a client."""


class StoredCheckIn(_Named, _Content, Recurrence, declared.Stored):
    """A stored check-in of a client, named as its form, metric set or task when it was last scheduled.

    `scheduledUntil` is the last date for which blocks have been scheduled (None: none yet), and `dueAt` the
    time (UTC) at which the next date has to be scheduled (None: there is none). `absentDates` (missing for none) are
    its dates without a block because of an absence.
    """

    scheduledUntil: Annotated[str | None, validation.Date(), core_fields.Private]
    dueAt: Annotated[datetime | None, core_fields.Private]
    absentDates: NotRequired[Annotated[list[str], core_fields.Private]]


# --- Recurring check-ins in the database ------------------------------------------------------------------------------


def _complete_imported(check_in: dict[str, Any]) -> dict[str, Any]:
    """Return an imported check-in. Raises InvalidFields unless it has one recurrence and one content."""
    for names in (_RHYTHM, _CONTENT):
        if sum(check_in[name] is not None for name in names) != 1:
            raise invalid_field(names[0], f"or one of {', '.join(names[1:])} must be set, and only one")
    return check_in


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData | None:
    if action == "changed":
        return None
    event_type: EventType = "check_in.created" if action == "created" else "check_in.ended"
    return {"type": event_type, "data": {"checkInId": known["_id"]}}


check_ins = Documents[StoredCheckIn](
    "checkIns",
    (declared.Index(("customerId", "_id")),),
    private=core_fields.private_of(StoredCheckIn),
    client_field="customerId",
    history=declared.History("check_in", _event, contact=lambda known: [str([known[name] for name in _CONTENT])]),
    global_indexes=(declared.Index(("dueAt",)),),
    cross_company_reason="a job schedules the check-ins of all companies",
    transfer=declared.Portable(
        StoredCheckIn, declared.RECORDS, references={"customerId": "customers"}, complete=_complete_imported
    ),
)
FIELDS = (*core_fields.names_of(CheckIn), "scheduledUntil", "dueAt", "absentDates")


_CUSTOMER_FIELDS = (*customers.SCOPE_FIELDS, "timezone", "customerRoleData.isArchived")
# Check-ins are scheduled on this many days: the client's today and those after it.
DAYS_AHEAD = 28
_WEEK = 7


routes = Routes(
    "/coach/customers/{customerId}/check-ins",
    tag="Check-ins",
    locks="customer",
    path_descriptions={"checkInId": "The identifier of the recurring check-in."},
)


class SchedulePlan(NamedTuple):
    """What to schedule of a check-in now.

    `dates`: the dates that get a block. `scheduled_until`: the last date that is then taken care of; None if none is.
    `due_at`: when the next date has to be scheduled, UTC without a time zone; None if there is none.
    """

    dates: list[str]
    scheduled_until: str | None
    due_at: datetime | None


@routes.get("", access=coach(CUSTOMERS.VIEW), operation_id="listCheckIns")
async def list_of_client(ctx: Context, customer_id: ObjectId) -> list[CheckIn]:
    """List the recurring check-ins of a client, oldest first."""
    await customers.get_visible(ctx, customer_id)
    return [core_fields.take(CheckIn, check_in) for check_in in await _find_all(ctx, customer_id)]


async def _find_all(ctx: Context, customer_id: ObjectId) -> list[StoredCheckIn]:
    return await check_ins.find(ctx, {"customerId": customer_id}, sort=("_id",), fields=FIELDS)


@routes.get("/{checkInId}", access=coach(CUSTOMERS.VIEW), operation_id="getCheckIn")
async def get(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> CheckIn:
    """Read a recurring check-in of a client.

    One that has been ended is not found.
    """
    await customers.get_visible(ctx, customer_id)
    check_in = await check_ins.find_one(ctx, {"customerId": customer_id, "_id": check_in_id}, FIELDS)
    return core_fields.take(CheckIn, require_found(check_in, "check-in"))


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=NEW_CHECK_IN(),
    example={"formId": "66f0c0ffee0000000000abcd", "weekday": 7, "startDate": "2026-03-02"},
    operation_id="createCheckIn",
)
@transactional
async def create(ctx: Context, customer_id: ObjectId, body: NewCheckIn) -> CheckIn:
    """Add a recurring check-in.

    It is scheduled on the calendar for 28 days, from the client's today on, and then day by day, in workout blocks of
    its own with `checkInId`. Compliance, session counts and operations on the schedule ignore these.
    """
    # Nothing is scheduled for an archived client until the client is restored.
    customer = await customers.get_visible(ctx, customer_id, _CUSTOMER_FIELDS)
    name, item = await load_item(ctx, body)
    check_in_id, plan = ObjectId(), _plan_anew(ctx, customer, body)
    about = {"_id": check_in_id, "customerId": customer_id, "name": name}
    state = {"scheduledUntil": plan.scheduled_until, "dueAt": plan.due_at}
    stored = await check_ins.insert(ctx, {**body, **about, **state})
    if absent := await _schedule_dates(ctx, customer_id, check_in_id, name, item, plan.dates):
        await check_ins.set_derived(ctx, {"_id": check_in_id}, {"$set": {"absentDates": absent}})
    return core_fields.take(CheckIn, stored)


@routes.patch(
    "/{checkInId}",
    access=coach(CUSTOMERS.EDIT),
    body=validation.patch_of(input_of(_Changes), name="CheckInChange"),
    example={"weekday": 1, "version": 0},
    operation_id="updateCheckIn",
)
@transactional
async def update(
    ctx: Context, customer_id: ObjectId, check_in_id: ObjectId, body: core_fields.Change[_Changes]
) -> CheckIn:
    """Change a recurring check-in.

    Another content or rhythm takes the place of the one it has; `startDate` stays. Its blocks from the client's today
    on with nothing done are scheduled again; past and answered ones stay as they are.
    """
    customer = await customers.get_visible(ctx, customer_id, _CUSTOMER_FIELDS)
    where = {"customerId": customer_id, "_id": check_in_id}
    stored = require_found(await check_ins.find_one(ctx, where, FIELDS), "check-in")
    if body.get("version") not in (None, stored["version"]):
        raise version_conflict()
    sent = {name: value for name, value in body.items() if name != "version"}
    for names in (_CONTENT, _RHYTHM):
        if any(sent.get(name) is not None for name in names):
            sent = {**{name: None for name in names if stored.get(name) is not None}, **sent}
    new = cast("StoredCheckIn", {**stored, **sent})
    for name, messages in _find_wrong_choices(new, _CONTENT).items():
        raise InvalidFields(validation.field_errors(ValidationError({name: messages})))  # only the first
    if all(stored.get(name) == value for name, value in sent.items()):
        return core_fields.take(CheckIn, stored)
    name, item = await load_item(ctx, new)
    today, plan = ctx.caller.today(customer["timezone"]), _plan_anew(ctx, customer, new)
    await _remove_upcoming(ctx, customer_id, check_in_id, today)
    calendar = ClientCalendar(customer_id)
    answered = await batches.read_check_in_days(ctx, calendar, check_in_id, {"$gte": str(today)})
    taken = {block["date"] for block in answered}
    dates = [day for day in plan.dates if day not in taken]
    absent = await _schedule_dates(ctx, customer_id, check_in_id, name, item, dates)
    fields = {"name": name, "scheduledUntil": plan.scheduled_until, "dueAt": plan.due_at, "absentDates": absent}
    changed = await check_ins.update(ctx, where, {"$set": {**sent, **fields}}, version=stored["version"])
    return core_fields.take(CheckIn, require_found(changed, "check-in"))


def _plan_anew(ctx: Context, customer: Customer, recurrence: Recurrence) -> SchedulePlan:
    """Return what to schedule of a check-in from today on: nothing for an archived client until the next day."""
    today, timezone = ctx.caller.today(customer["timezone"]), customer["timezone"] or ctx.caller.company.timezone
    if customer["customerRoleData"]["isArchived"]:
        return SchedulePlan([], None, next_midnight(today, timezone))
    return plan_schedule(recurrence, None, today, timezone)


@transactional
async def schedule(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> None:
    """Schedule the dates of a check-in that are not scheduled yet, four weeks ahead.

    What has been scheduled is stored with the check-in in the same transaction, so that repeating adds nothing. For an
    archived client, or while the form or metric set is deleted, nothing is added and it is tried again the next day.
    """
    where = {"customerId": customer_id, "_id": check_in_id}
    check_in = await check_ins.find_one(ctx, where, FIELDS)
    if check_in is None:  # deleted meanwhile
        return
    try:
        customer = await customers.get_visible(ctx, customer_id, _CUSTOMER_FIELDS)
    except NotFound:  # the client is being erased
        await check_ins.set_derived(ctx, where, {"$set": {"dueAt": None}})
        return
    today, timezone = ctx.caller.today(customer["timezone"]), customer["timezone"] or ctx.caller.company.timezone
    item = None if customer["customerRoleData"]["isArchived"] else await _find_item(ctx, check_in)
    if item is None:
        await check_ins.set_derived(ctx, where, {"$set": {"dueAt": next_midnight(today, timezone)}})
        return
    plan = plan_schedule(check_in, check_in["scheduledUntil"], today, timezone)
    fields = {"name": item[0], "scheduledUntil": plan.scheduled_until, "dueAt": plan.due_at}
    await check_ins.set_derived(ctx, where, {"$set": fields})
    if absent := await _schedule_dates(ctx, customer_id, check_in_id, *item, plan.dates):
        earlier = [day for day in check_in.get("absentDates", ()) if day >= str(today)]
        await check_ins.set_derived(ctx, where, {"$set": {"absentDates": [*earlier, *absent]}})


@routes.delete("/{checkInId}", access=coach(CUSTOMERS.EDIT), operation_id="deleteCheckIn")
@transactional
async def delete(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> None:
    """End a recurring check-in.

    Its blocks from the client's today on with nothing done are removed; past and answered ones stay.
    """
    today = await customers.get_local_date(ctx, customer_id)
    require_found(await check_ins.delete(ctx, {"customerId": customer_id, "_id": check_in_id}), "check-in")
    await _remove_upcoming(ctx, customer_id, check_in_id, today)


async def unschedule_removed_check_ins(ctx: Context, event: DocumentsRestored) -> None:
    """Remove what has been scheduled for check-ins since they were added, when an undo removes them."""
    for document in event.of_kind("check_in"):
        if document.before is not None and document.after is None:
            customer_id, check_in_id = document.before["customerId"], document.before["_id"]
            today = await customers.get_local_date(ctx, customer_id)
            await _remove_upcoming(ctx, customer_id, check_in_id, today)


async def reschedule_check_ins(ctx: Context, event: AvailabilityChanged) -> None:
    """Remove the blocks of check-ins with nothing done from the days on which a client does not train any more.

    Those of days on which the client trains again are added, from the client's today on. An undo has restored blocks
    already, and removes none.
    """
    before = event.before if event.before is not None and is_absence(event.before) else None
    after = event.after if event.after is not None and is_absence(event.after) else None
    calendar, today = ClientCalendar(event.customer_id), await customers.get_local_date(ctx, event.customer_id)
    of_client = await _find_all(ctx, event.customer_id)
    absent = {each["_id"]: set(each.get("absentDates", ())) for each in of_client}
    if after is not None:
        days = {"$gte": after["from"]} | ({} if after["until"] is None else {"$lte": after["until"]})
        blocks = await batches.read_check_in_days(ctx, calendar, None, days)
        if event.is_undo:
            taken = {(block["checkInId"], block["date"]) for block in blocks}
            for each in of_client:
                absent[each["_id"]] |= {day for day in _dates_of(each, after, today) if (each["_id"], day) not in taken}
        else:
            removed = [block for block in blocks if has_nothing_done(block)]
            await batches.write(ctx, calendar, Batch(removed=[block["_id"] for block in removed]), [])
            for block in removed:
                if (check_in_id := block["checkInId"]) in absent:
                    absent[check_in_id].add(str(block["date"]))
    for each in of_client:
        dates = sorted(day for day in absent[each["_id"]] if day >= str(today))
        free = [] if before is None else [day for day in dates if includes(before, day)]
        if after is not None:
            free = [day for day in free if not includes(after, day)]
        if free and (item := await _find_item(ctx, each)) is not None:  # the block that each of these dates has not
            with_block = await batches.read_check_in_days(ctx, calendar, each["_id"], {"$in": free})
            missing = [day for day in free if day not in {block["date"] for block in with_block}]
            await _add_blocks(ctx, event.customer_id, each["_id"], *item, missing)
        left = [day for day in dates if day not in free]
        if left != each.get("absentDates", []):
            await check_ins.set_derived(ctx, {"_id": each["_id"]}, {"$set": {"absentDates": left}})


def _dates_of(check_in: StoredCheckIn, period: Availability, today: date) -> Iterator[str]:
    """Yield the dates in a period, from `today` on, for which a check-in has been scheduled."""
    furthest = str(today + timedelta(days=DAYS_AHEAD))
    last = min(check_in["scheduledUntil"] or "", period["until"] or furthest, furthest)
    for day in iterate_dates(check_in, max(today, date.fromisoformat(period["from"]))):
        if str(day) > last:
            return
        yield str(day)


async def load_item(ctx: Context, check_in: NewCheckIn | StoredCheckIn) -> tuple[str, ItemInput]:
    """Return the name of a check-in and the item that its blocks hold. Raises NotFound for the form or metric set."""
    if check_in["formId"] is not None:
        form = await forms.get(ctx, check_in["formId"])
        copy: ItemForm = {"formId": form["_id"], "name": form["name"], "questions": form["questions"]}
        return form["name"], {"type": "FORM", "form": copy}
    if check_in["metricsSetId"] is not None:
        metric_set = await metric_sets.get(ctx, check_in["metricsSetId"])
        return metric_set["name"], {"type": "METRICS", "metricsFields": {"metricsSetId": metric_set["_id"]}}
    if check_in["taskFields"] is not None:
        return check_in["taskFields"]["title"], {"type": "TASK", "taskFields": check_in["taskFields"]}
    raise ValueError("a check-in has a form, a metric set or a task")


async def _find_item(ctx: Context, check_in: StoredCheckIn) -> tuple[str, ItemInput] | None:
    """Return what `load_item` returns; None if the form or metric set has been deleted."""
    try:
        return await load_item(ctx, check_in)
    except NotFound:
        return None


async def _add_blocks(
    ctx: Context, customer_id: ObjectId, check_in_id: ObjectId, name: str, item: ItemInput, dates: list[str]
) -> None:
    """Add a block with the item of a check-in on each of the dates."""
    if not dates:
        return
    calendar = ClientCalendar(customer_id)
    plans: list[BlockPlan] = [
        {"name": name, "isRest": False, "items": [item], "date": day, "checkInId": check_in_id} for day in dates
    ]
    days = await batches.read_days(ctx, calendar, {"$in": dates})
    await batches.write(ctx, calendar, Batch(created=plans), days)


async def _schedule_dates(
    ctx: Context, customer_id: ObjectId, check_in_id: ObjectId, name: str, item: ItemInput, dates: list[str]
) -> list[str]:
    """Add a block of a check-in on each of the dates on which the client trains; returns the other dates."""
    if not dates:
        return []
    absences = (await availability.get_absences(ctx, [customer_id], dates[0], dates[-1]))[customer_id]
    await _add_blocks(ctx, customer_id, check_in_id, name, item, [day for day in dates if day not in absences])
    absent = [day for day in dates if day in absences]
    if absent:  # a change of the period at the same time has to see them
        await customers.lock_and_mark_figures(ctx, customer_id)
    return absent


async def _remove_upcoming(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId, today: date) -> None:
    """Remove the blocks of a check-in from `today` on that have nothing done."""
    calendar = ClientCalendar(customer_id)
    upcoming = await batches.read_check_in_days(ctx, calendar, check_in_id, {"$gte": str(today)})
    removed = [block["_id"] for block in upcoming if has_nothing_done(block)]
    await batches.write(ctx, calendar, Batch(removed=removed), [])


# --- On which dates a check-in takes place ---------------------------------------------------------------------------


def plan_schedule(recurrence: Recurrence, scheduled_until: str | None, today: date, timezone: str) -> SchedulePlan:
    """Return what to schedule on the client's local date `today` (in `timezone`, an IANA name).

    Dates that have passed, and those up to `scheduled_until`, are left out.
    """
    last = today + timedelta(days=DAYS_AHEAD - 1)
    first = today
    if scheduled_until is not None:
        first = max(first, min(date.fromisoformat(scheduled_until), LAST_DATE) + timedelta(days=1))
        last = max(last, first - timedelta(days=1))
    dates: list[str] = []
    for day in iterate_dates(recurrence, first):
        if day > last:
            opens = day - timedelta(days=DAYS_AHEAD)
            return SchedulePlan(dates, str(last), next_midnight(opens, timezone))
        dates.append(str(day))
    return SchedulePlan(dates, str(last), None)


def iterate_dates(recurrence: Recurrence, first: date) -> Iterator[date]:
    """Yield the dates of a check-in from `first` on, ascending."""
    start = date.fromisoformat(recurrence["startDate"]).toordinal()
    end = date.fromisoformat(recurrence["until"] or str(LAST_DATE)).toordinal()
    step = recurrence["everyDays"] or _WEEK
    if recurrence["weekday"] is not None:
        start += (recurrence["weekday"] - date.fromordinal(start).isoweekday()) % _WEEK
    steps_before = max(0, -((start - first.toordinal()) // step))
    for number in range(start + steps_before * step, end + 1, step):
        yield date.fromordinal(number)


# --- The background job that schedules recurring check-ins four weeks ahead, once a local day of each client ----------


SCHEDULE = "schedule_check_ins"
_BATCH = 50
_MAX_COUNT = 10_000
_PAUSE = timedelta(minutes=1)
# Of the check-ins of a company that is suspended.
_POSTPONEMENT = timedelta(hours=1)


async def schedule_batch(services: Services, _: Job) -> RunAgain:
    """Schedule at most 50 check-ins that are due, each in a transaction of its own.

    Those that fail wait, as `for_each_alone` says, and those of a company that is suspended or being erased for an
    hour. Runs again at once while check-ins are due, else in a minute.
    """
    stored = check_ins.across_companies(services)
    found = stored.find({"dueAt": {"$lte": now()}}, {"companyId": 1, "customerId": 1}, limit=_BATCH)
    due = await found.sort("dueAt", 1).to_list(None)
    by_company: dict[ObjectId, dict[ObjectId, ObjectId]] = {}
    for check_in in due:
        by_company.setdefault(check_in["companyId"], {})[check_in["_id"]] = check_in["customerId"]
    for company_id, clients in by_company.items():
        for check_in_id, wait in (await _schedule_of_company(services, company_id, clients)).items():
            where = {"companyId": company_id, "_id": check_in_id}
            await stored.update_many(where, {"$set": {"dueAt": now() + wait}})
    return RunAgain() if due else RunAgain(_PAUSE)


async def _schedule_of_company(
    services: Services, company_id: ObjectId, clients: Mapping[ObjectId, ObjectId]
) -> dict[ObjectId, timedelta]:
    """Schedule check-ins of one company, and return how long those that are not scheduled have to wait.

    `clients`: whose check-ins they are.
    """
    inactive = list[ObjectId]()

    async def schedule_some(ids: Sequence[ObjectId]) -> None:
        try:
            owner = await team.get_owner(services, company_id)
        except NotFound:  # the company is being erased
            owner = None
        if owner is None or owner.company.is_suspended:
            inactive.extend(ids)
            return
        for each in ids:
            ctx = Context(services, owner, operation=SCHEDULE, interface="system")
            await schedule(ctx, clients[each], each)

    failed = await for_each_alone(services, "check-ins", company_id, clients, schedule_some)
    return failed | dict.fromkeys(inactive, _POSTPONEMENT)


async def read_metrics(services: Services) -> None:
    """Read the check-ins that are due; they are not a number while the database does not respond."""

    async def count_due() -> Backlog:
        collection = check_ins.across_companies(services)
        return await count_backlog(collection, {"dueAt": {"$lte": now()}}, "dueAt", _MAX_COUNT, hint="dueAt")

    metrics = services.metrics
    await read_backlog(count_due(), metrics.check_ins_due, metrics.oldest_check_in_seconds, "check-ins")


async def continue_postponed(ctx: Context, _: CompanyResumed) -> None:
    """Have the check-ins of the company scheduled that have been postponed."""
    at = now()
    await check_ins.set_derived(ctx, {"dueAt": {"$lte": at + _POSTPONEMENT}}, {"$set": {"dueAt": at}})


# --- Recurring check-ins for assistants -------------------------------------------------------------------------------


tools = Tools()


class CheckInToSchedule(CustomerArgument):
    """What a client is asked for, and when."""

    form = validation.Text(**optional("A form to answer: its name or _id."))
    metrics = validation.Text(**optional("Instead: a metric set to record, its name or _id."))
    task = validation.Text(**optional("Instead: a task, such as a daily habit."))
    weekday = argument_of(Recurrence, "weekday")
    everyDays = argument_of(Recurrence, "everyDays")
    startDate = argument_of(Recurrence, "startDate", may_be_absent=True)
    until = argument_of(Recurrence, "until")

    @validates_schema(skip_on_field_errors=False)
    def validate_choices(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError unless there is one content and one rhythm, and the end is not before the start."""
        if errors := _find_wrong_choices(data, ("form", "metrics", "task")):
            raise ValidationError(errors)


@tools.tool(
    "Schedule a check-in",
    access=coach(CUSTOMERS.EDIT),
    takes=CheckInToSchedule(),
    writes=True,
    locks="customer",
    confirms=(mcp.Reason.MANY_DAYS, mcp.Reason.FAR_DATE),
    check=check_names,
)
async def schedule_check_in(
    ctx: Context,
    customer_id: ObjectId,
    form: str | None,
    metrics: str | None,
    task: str | None,
    weekday: int | None,
    every_days: int | None,
    start_date: str | None,
    until: str | None,
) -> mcp.Written:
    """Ask a client for a form, measurements or a task again and again, apart from workouts. list_check_ins reads the
    answers, undo ends it."""
    today = await customers.get_local_date(ctx, customer_id)
    start_date = start_date or await customers.resolve_today(ctx, customer_id)
    existing = await list_of_client(ctx, customer_id)
    new: NewCheckIn = {
        "formId": None if form is None else await resolve_document(ctx, "form", "form", form),
        "metricsSetId": None if metrics is None else await resolve_document(ctx, "metric set", "metrics", metrics),
        "taskFields": None if task is None else {"title": task, "description": None},
        "weekday": weekday,
        "everyDays": every_days,
        "startDate": start_date,
        "until": until,
    }
    check_in = await create(ctx, customer_id, new)
    customer = await customers.get_visible_reference(ctx, customer_id)
    same = [_describe(each) for each in existing if each["name"] == check_in["name"]]
    note = f" There was already {', '.join(same)}." if same else ""
    return mcp.Written(
        f"Scheduled {_describe(check_in)} for {mcp.typed(customer['name'])}. "
        f"The client is reminded on the day at {CHECK_INS_AT}.{note}",
        {"customerId": customer_id, "checkInId": check_in["_id"]},
        mcp.find_reasons(
            today=today,
            dates=[date for date in (check_in["startDate"], until) if date is not None],
            days=DAYS_AHEAD if until is None else mcp.count_span([check_in["startDate"], until]),
        ),
    )


def _describe(check_in: CheckIn) -> str:
    """Return a check-in in words, such as `«Weekly» every Sunday from 2026-03-02 on`."""
    weekday, days = check_in["weekday"], check_in["everyDays"]
    rhythm = f"every {days} days" if weekday is None else f"every {day_name[weekday - 1]}"
    until = f" until {check_in['until']}" if check_in["until"] else " on"
    return f"{mcp.typed(check_in['name'])} {'every day' if days == 1 else rhythm} from {check_in['startDate']}{until}"
