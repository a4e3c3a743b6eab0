"""The list of clients and its bulk actions, adding a client, and groups of clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, TypedDict, cast
from urllib.parse import urlencode

from marshmallow import fields

from coaching_service.core.auth import CUSTOMERS, FORMS, METRICS, PROGRAMS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import PermissionMissing, invalid_field
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.list_selection import Page
from coaching_service.core.validation import CalendarDate, Choice, Text
from coaching_service.people import team
from coaching_service.people.customers import batch, retention, service
from coaching_service.people.customers import models as customer_models
from coaching_service.progress import check_ins, compliance
from coaching_service.progress.conversation import service as conversation
from coaching_service.training import group_programs
from coaching_service.training.assignments import service as assignments
from coaching_service.training.group_programs import JOIN_DAY, NEXT_MONDAY, GroupName, Leaving
from coaching_service.training.workouts.reports.blocks import Status
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import document_options, quantity
from coaching_service.web.views.check_ins import RHYTHMS, CheckInChoice, list_check_in_kinds, to_check_in
from coaching_service.web.views.customer_layout import customer_path, describe_present, week_path
from coaching_service.web.views.programs import list_options

pages = web_pages.Pages("/app/customers")


# --- The bulk actions on clients --------------------------------------------------------------------------------------


# The fields of the form that are arguments of the operation, by the field of the action.
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "": {},
    "groupNames": {"groups": "groupNames"},
    "coachId": {"coachId": "coachId"},
    "programId": {"programId": "programId", "startDate": "startDate", "onConflict": "onConflict"},
    "metricsSetId": {"metricsSetId": "metricsSetId"},
    "text": {"text": "text"},
    "content": {"content": "content", "rhythm": "rhythm", "startDate": "startDate"},
}


@dataclass(frozen=True)
class Action:
    """A bulk action: its labels, its operationId, the permission and the input it requires.

    `field`: the form field of its input, if any. `view_permission`: required to choose that input. `warning`: shown
    before data is deleted. `for_archived`: offered only for archived, or only for active, clients. `new_groups_label`:
    the label of the field for new groups; empty if only existing groups can be chosen. `page`: its own page.
    """

    title: str
    button: str
    operation: str
    permission: str = CUSTOMERS.EDIT
    field: str = ""
    view_permission: str = CUSTOMERS.VIEW
    warning: str = ""
    for_archived: bool | None = None
    new_groups_label: str = "New groups, one per line"
    page: str = ""

    def read_arguments(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the operation from the form. Raises InvalidFields for one that is empty."""
        arguments = _ARGUMENTS[self.field]
        for in_form in arguments.values():
            if not form[in_form]:
                raise invalid_field(in_form, "is required", code="REQUIRED")
        return {name: form[in_form] for name, in_form in arguments.items()}

    def missing_permission(self, permissions: frozenset[str]) -> str | None:
        """Return a permission that is required and not among `permissions`, or None."""
        required = (self.permission, self.view_permission)
        return next((permission for permission in required if permission not in permissions), None)


ACTIONS = {
    "groups-add": Action("Add to groups", "Add to groups", "bulkAddGroups", field="groupNames"),
    "groups-remove": Action(
        "Remove from groups", "Remove from groups", "bulkRemoveGroups", field="groupNames", new_groups_label=""
    ),
    "assign-trainer": Action("Assign a trainer", "Assign", "bulkAssignTrainer", field="coachId"),
    "assign-program": Action(
        "Assign a program", "Assign program", "bulkAssignProgram", field="programId", view_permission=PROGRAMS.VIEW
    ),
    "schedules": Action("Change the schedule", "Continue", "bulkAdjustSchedule", page="/app/customers/bulk/schedules"),
    "assign-metrics-set": Action(
        "Assign a metric set",
        "Assign metric set",
        "bulkAssignMetricsSet",
        METRICS.EDIT,
        field="metricsSetId",
        view_permission=METRICS.VIEW,
    ),
    "message": Action("Send a message", "Send message", "bulkSendMessage", field="text"),
    "check-in": Action("Add a check-in", "Add check-in", "bulkCreateCheckIns", field="content", for_archived=False),
    "form-remind": Action(
        "Remind of overdue forms", "Remind", "bulkRemindOfForms", view_permission=FORMS.VIEW, for_archived=False
    ),
    "archive": Action("Archive", "Archive", "bulkArchiveCustomers", for_archived=False),
    "unarchive": Action("Restore", "Restore", "bulkUnarchiveCustomers", for_archived=True),
    "delete": Action(
        "Delete permanently",
        "Delete permanently",
        "bulkDeleteCustomers",
        CUSTOMERS.DELETE,
        warning="Their calendars, logs, metrics, photos, videos, plans, absences, messages, notes and records are "
        "erased. This cannot be undone.",
    ),
}


def list_actions(permissions: frozenset[str], *, archived: bool) -> list[tuple[str, str]]:
    """Return name and label of the actions for archived or active clients that `permissions` allow."""
    return [
        (name, f"{action.title}…")
        for name, action in ACTIONS.items()
        if action.missing_permission(permissions) is None and action.for_archived in (None, archived)
    ]


# --- The list of clients, and adding one: with an invitation, the first program and a check-in, on one page -----------


_CLIENTS_PER_PAGE = 25


# The orders of the list: by a stored figure, with a minus the highest first; a search is always by name.
_SORT_NAMES = {
    "name": "Name",
    "lastTrained": "Last trained, longest ago first",
    "-lastTrained": "Last trained, latest first",
    "compliance": "30-day compliance, lowest first",
    "-compliance": "30-day compliance, highest first",
    "-unread": "Unread messages, most first",
}


class CustomerFilter(web_pages.Search):
    """The filters of the client list, as sent in the query."""

    groups: web_pages.FilterValues
    assignedTo: web_pages.FilterValues
    archived: Annotated[bool, Default(False)]
    sort: Annotated[str, Choice(*_SORT_NAMES), Default("name")]


def parse_trainer_ids(values: list[str]) -> list[ObjectId | None]:
    """Parse the trainers of a filter: None for `none` (clients without a trainer).

    A malformed identifier becomes a new one, which matches no client.
    """
    return [None if value == customer_models.NO_TRAINER else parse_id(value) or ObjectId() for value in values]


async def find_customers(ctx: Context, query: CustomerFilter) -> Page[customer_models.CustomerProfile]:
    """Find the page of the list that a query asks for."""
    sort, trainers = query["sort"], parse_trainer_ids(query["assignedTo"])
    if sort != "name" and not query["keywords"]:
        return await service.list_customers_by(
            ctx,
            cast("customer_models.SortFigure", sort.removeprefix("-")),
            descending=sort.startswith("-"),
            archived=query["archived"],
            page=query["page"],
            size=_CLIENTS_PER_PAGE,
            groups=query["groups"],
            trainers=trainers,
        )
    return await service.list_customers(
        ctx,
        archived=query["archived"],
        page=query["page"],
        size=_CLIENTS_PER_PAGE,
        contains=query["keywords"],
        groups=query["groups"],
        trainers=trainers,
    )


def address_of(query: CustomerFilter) -> Callable[..., str]:
    """Return a function that returns the address of the list with some values of the filter changed."""
    return web_pages.list_url(pages.prefix, query, sort="name")


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customers/list.html")
async def customers_page(ctx: Context, query: CustomerFilter) -> dict[str, Any]:
    """The clients in the coach's scope, by name."""
    page, groups, coaches = await gather_reads(
        ctx, find_customers(ctx, query), service.list_groups(ctx), team.list_coaches(ctx)
    )
    is_filtered = bool(query["keywords"] or query["groups"] or query["assignedTo"])
    archived_count = 0
    if not (page["totalDocs"] or is_filtered or query["archived"]):
        archived_count = (await service.list_customers(ctx, archived=True, page=1, size=1))["totalDocs"]
    return {
        "page": page,
        "rows": await describe_rows(ctx, page["docs"]),
        "sorts": list(_SORT_NAMES.items()),
        "groups": groups,
        "coaches": coaches,
        "coach_names": {coach["_id"]: coach["name"] for coach in coaches},
        "query": query,
        "actions": list_actions(ctx.caller.permissions, archived=query["archived"]),
        "is_filtered": is_filtered,
        "archived_count": archived_count,
        "erasure_days": await retention.find_erasure_days(ctx, [each["_id"] for each in page["docs"]])
        if query["archived"]
        else {},
        "address": address_of(query),
    }


_DAYS = 7
DayState = Status | Literal["none"]
_WORDS: Mapping[DayState, str] = {
    "done": "done",
    "part": "partly done",
    "missed": "missed",
    "planned": "planned",
    "rest": "rest",
    "away": "away or ill",
    "none": "nothing",
}


class DayDot(TypedDict):
    """A day of a client, and the day in words such as `Mon 2 Mar: done`."""

    state: DayState
    text: str


class CustomerRow(TypedDict):
    """A client of the list.

    `portrait` is the address of a thumbnail, `absence` a present period of availability in words, or empty.
    """

    customer: customer_models.CustomerProfile
    name: str
    portrait: str | None
    days: list[DayDot]
    unread: int
    absence: str


async def describe_rows(ctx: Context, listed: Sequence[customer_models.CustomerProfile]) -> list[CustomerRow]:
    """Describe clients, in a few queries for any number of them."""
    today_of = {each["_id"]: ctx.caller.today(each["timezone"]) for each in listed}
    ids: list[ObjectId] = list(today_of)
    days_of, unread, portraits, absences = await gather_reads(
        ctx,
        compliance.get_recent_days(ctx, today_of, _DAYS),
        conversation.count_unread(ctx, ids),
        service.find_portraits(ctx, ids),
        describe_present(ctx, today_of),
    )
    unread_of = {each["_id"]: each["count"] for each in unread}
    return [
        {
            "customer": each,
            "name": " ".join(filter(None, (each["name"], each["surname"]))),
            "portrait": portraits.get(each["_id"]),
            "days": [_describe_day(day, status) for day, status in days_of[each["_id"]]],
            "unread": unread_of.get(each["_id"], 0),
            "absence": absences.get(each["_id"], ""),
        }
        for each in listed
    ]


def _describe_day(day: str, status: Status | None) -> DayDot:
    at, state = date.fromisoformat(day), status or "none"
    return {"state": state, "text": f"{at:%a} {at.day} {at:%b}: {_WORDS[state]}"}


class _Beginning(TypedDict):
    """The program and the check-in of a new client as the form sent them; blank or None: not chosen."""

    programId: ObjectId | None
    programStart: Annotated[str | None, CalendarDate()]
    content: Annotated[str, fields.String(), Default("")]
    title: Annotated[str, Text(allow_blank=True), Default("")]
    rhythm: Annotated[str, Choice(*(value for value, _ in RHYTHMS)), Default("weekday-7")]


class _NewCustomer(customer_models.SentCustomer, _Beginning):
    """A client to create, with the program and the check-in to begin with, if any."""


@pages.get("/new", access=coach(CUSTOMERS.CREATE), template="customers/new.html")
async def new_customer_page(ctx: Context) -> dict[str, Any]:
    """The form for a new client."""
    groups, coaches = await gather_reads(ctx, service.list_groups(ctx), team.list_coaches(ctx))
    trainers = [("", "Unassigned"), *document_options(coaches)]
    if _sees_assigned_only(ctx):
        trainers = [(str(ctx.caller.id), ctx.caller.name)]
    return {
        "groups": groups,
        "trainers": trainers,
        "programs": await _list_programs(ctx),
        "check_in_kinds": [("", "No check-in"), *await list_check_in_kinds(ctx)],
        "rhythms": RHYTHMS,
        "today": ctx.caller.today(),
    }


async def _list_programs(ctx: Context) -> list[tuple[str, str]]:
    if PROGRAMS.VIEW not in ctx.caller.permissions:
        return []
    return [("", "No program"), *await list_options(ctx)]


def _sees_assigned_only(ctx: Context) -> bool:
    return ctx.caller.customers_scope == "assigned"


@pages.post("/new", access=coach(CUSTOMERS.CREATE), locks="program", on=new_customer_page)
async def new_customer(ctx: Context, form: _NewCustomer) -> web_pages.Redirect:
    """Add a client; send an invitation, assign a program and add a check-in if requested."""
    send_invitation = form["sendInvitation"]
    details = cast("customer_models.CustomerDetails", take(customer_models.WrittenDetails, form))
    if _sees_assigned_only(ctx):
        details["assignedTo"] = ctx.caller.id
    customer = await batch.create_customer(ctx, details, send_invitation=send_invitation)
    notice = f"{customer['name']} added."
    if send_invitation and customer["email"]:
        notice += " Invitation sent."
    elif send_invitation:
        notice += " No invitation was sent because the client has no email address."
    location, added = await _begin(ctx, customer["_id"], take(_Beginning, form))
    return web_pages.Redirect(location, notice + added, customer_id=customer["_id"])


async def _begin(ctx: Context, customer_id: ObjectId, beginning: _Beginning) -> tuple[str, str]:
    """Assign the program and add the check-in to begin with; return where they are seen, and what was added."""
    location, added, program_id = customer_path(customer_id), "", beginning["programId"]
    if not program_id and not beginning["content"]:
        return location, added
    if CUSTOMERS.EDIT not in ctx.caller.permissions:
        raise PermissionMissing(CUSTOMERS.EDIT)
    start = beginning["programStart"] or str(ctx.caller.today())
    if program_id:
        if PROGRAMS.VIEW not in ctx.caller.permissions:
            raise PermissionMissing(PROGRAMS.VIEW)
        if beginning["programStart"] is None:
            raise invalid_field("programStart", "is required", code="REQUIRED")
        assignment = await assignments.assign(ctx, program_id, customer_id, start)
        location, added = week_path(customer_id, start), f" {quantity(assignment['blocks'], 'workout')} scheduled."
    if beginning["content"]:
        check_in = await check_ins.create(
            ctx, customer_id, to_check_in({**take(CheckInChoice, beginning), "startDate": start, "until": None})
        )
        added += f" {check_in['name']} is scheduled four weeks ahead."
    return location, added


# --- The groups of clients, and the program that clients get when they join one ---------------------------------------


_groups = pages.below("/groups")


class _Group(TypedDict):
    group: Annotated[str, GroupName(allow_blank=True), Default("")]


class _Rule(TypedDict):
    programId: ObjectId
    startOn: Annotated[Literal["nextMonday", "joinDay", "date"], Choice(NEXT_MONDAY, JOIN_DAY, "date")]
    startDate: Annotated[str | None, CalendarDate()]
    leave: Annotated[Leaving, Choice("keep", "removeUpcoming"), Default("keep")]
    existing: Annotated[bool, Default(False)]


def group_path(name: str) -> str:
    """Return the path of the page of a group's program."""
    return f"{_groups.prefix}/program?{urlencode({'group': name})}"


@_groups.get("", access=coach(CUSTOMERS.VIEW), template="customers/groups.html")
async def groups_page(ctx: Context) -> dict[str, Any]:
    """The groups of clients, each with its program."""
    in_use, ruled = await gather_reads(ctx, service.list_groups(ctx), group_programs.list_all(ctx))
    counts = {group["name"]: group["count"] for group in in_use}
    rules = {rule["groupName"]: rule for rule in ruled}
    names = sorted({*counts, *rules}, key=str.casefold)
    return {
        "groups": [(name, counts.get(name, 0), rules.get(name), group_path(name)) for name in names],
        "starts": _STARTS,
    }


_STARTS = {NEXT_MONDAY: "on the Monday after", JOIN_DAY: "on the day of joining"}


@_groups.get("/program", access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW), template="customers/group_program.html")
async def group_program_page(ctx: Context, query: _Group) -> dict[str, Any] | web_pages.Redirect:
    """The program that clients get when they join a group."""
    if not query["group"]:
        return web_pages.Redirect(_groups.prefix)
    listed, ruled = await gather_reads(ctx, list_options(ctx), group_programs.list_all(ctx))
    rule = next((rule for rule in ruled if rule["groupName"] == query["group"]), None)
    options = dict(listed)
    if rule is not None:
        options.setdefault(str(rule["programId"]), rule["programName"])
    return {"group": query["group"], "rule": rule, "programs": list(options.items()), "today": ctx.caller.today()}


@_groups.post(
    "/program", access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW), locks="program", on=group_program_page, idempotent=True
)
async def set_program_of_group(ctx: Context, query: _Group, form: _Rule) -> web_pages.Redirect:
    """Set the program of a group."""
    start = form["startDate"] if form["startOn"] == "date" else form["startOn"]
    if start is None:
        raise invalid_field("startDate", "is required", code="REQUIRED")
    enrolled = await group_programs.set_program(
        ctx,
        query["group"],
        {"programId": form["programId"], "startOn": start, "leave": form["leave"], "existing": form["existing"]},
    )
    given = f" {quantity(enrolled, 'client')} got it now." if form["existing"] else ""
    return web_pages.Redirect(_groups.prefix, f"{query['group']} has a program.{given}")


@_groups.post("/program/remove", access=coach(CUSTOMERS.EDIT), on=group_program_page, idempotent=True, deletes=True)
async def remove_program_of_group(ctx: Context, query: _Group) -> web_pages.Redirect:
    """Leave a group without a program."""
    await group_programs.remove_program(ctx, query["group"])
    return web_pages.Redirect(_groups.prefix, f"{query['group']} has no program any more. Clients who have it keep it.")
