"""The list of clients and its bulk actions, adding a client, groups of clients, and finding what coaches look for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, cast

from marshmallow import fields

from coaching_service.core.auth import CUSTOMERS, EXERCISES, FORMS, METRICS, PROGRAMS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.declared import SearchedType
from coaching_service.core.errors import PermissionMissing, invalid_field
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.list_selection import Page
from coaching_service.core.validation import CalendarDate, Choice, Text
from coaching_service.lifecycle import search as feature
from coaching_service.people import searched_texts, team
from coaching_service.people.customers import batch, derived_figures, retention
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers import service as customers
from coaching_service.progress import check_ins, compliance
from coaching_service.progress.conversation import service as conversation
from coaching_service.training import group_programs
from coaching_service.training.assignments import service as assignments
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import document_options, quantity
from coaching_service.web.views.check_ins import RHYTHMS, CheckInChoice, CheckInForm, list_check_in_kinds, to_check_in
from coaching_service.web.views.customer_layout import customer_path, describe_present, week_path
from coaching_service.web.views.programs import list_options

pages = web_pages.Pages("/app")
_customers = pages.below("/customers")


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


# --- The list of clients, and adding one: with an invitation, the first program and a check-in, on one page -----------


_CLIENTS_PER_PAGE = 25
_DAYS = 7
_WORDS: Mapping[str, str] = {
    "done": "done",
    "part": "partly done",
    "missed": "missed",
    "planned": "planned",
    "rest": "rest",
    "away": "away or ill",
    "none": "nothing",
}

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
    shown: dict[str, Any] = {
        **{name: query[name] for name in ("archived", "page", "groups")},
        "size": _CLIENTS_PER_PAGE,
        "trainers": trainers,
    }
    if sort != "name" and not query["keywords"]:
        figure = cast("customer_models.SortFigure", sort.removeprefix("-"))
        return await derived_figures.list_customers_by(ctx, figure, descending=sort.startswith("-"), **shown)
    return await customers.list_customers(ctx, contains=query["keywords"], **shown)


def address_of(query: CustomerFilter) -> Callable[..., str]:
    """Return a function that returns the address of the list with some values of the filter changed."""
    return web_pages.list_url(_customers.prefix, query, sort="name")


@_customers.get("", access=coach(CUSTOMERS.VIEW), template="customers/list.html")
async def customers_page(ctx: Context, query: CustomerFilter) -> dict[str, Any]:
    """The clients in the coach's scope, by name."""
    page, groups, coaches = await gather_reads(
        ctx, find_customers(ctx, query), customers.list_groups(ctx), team.list_coaches(ctx)
    )
    today_of = {each["_id"]: ctx.caller.today(each["timezone"]) for each in page["docs"]}
    ids: list[ObjectId] = list(today_of)
    days_of, unread, portraits, absences = await gather_reads(
        ctx,
        compliance.get_recent_days(ctx, today_of, _DAYS),
        conversation.count_unread(ctx, ids),
        customers.find_portraits(ctx, ids),
        describe_present(ctx, today_of),
    )
    unread_of = {each["_id"]: each["count"] for each in unread}
    is_filtered = bool(query["keywords"] or query["groups"] or query["assignedTo"])
    archived_count = 0
    if not (page["totalDocs"] or is_filtered or query["archived"]):
        archived_count = (await customers.list_customers(ctx, archived=True, page=1, size=1))["totalDocs"]
    return {
        "page": page,
        "rows": [
            {
                "customer": each,
                "name": customers.full_name(each),
                "portrait": portraits.get(each["_id"]),
                "days": [
                    {"state": status or "none", "text": f"{at:%a} {at.day} {at:%b}: {_WORDS[status or 'none']}"}
                    for day, status in days_of[each["_id"]]
                    for at in [date.fromisoformat(day)]
                ],
                "unread": unread_of.get(each["_id"], 0),
                "absence": absences.get(each["_id"], ""),
            }
            for each in page["docs"]
        ],
        "sorts": list(_SORT_NAMES.items()),
        "groups": groups,
        "coaches": coaches,
        "coach_names": {coach["_id"]: coach["name"] for coach in coaches},
        "actions": [
            (name, f"{action.title}…")
            for name, action in ACTIONS.items()
            if action.missing_permission(ctx.caller.permissions) is None
            and action.for_archived in (None, query["archived"])
        ],
        "is_filtered": is_filtered,
        "archived_count": archived_count,
        "erasure_days": await retention.find_erasure_days(ctx, [each["_id"] for each in page["docs"]])
        if query["archived"]
        else {},
        "address": address_of(query),
    }


class _NewCustomer(customer_models.SentCustomer):
    """A client to create, with the program and the check-in to begin with; blank or None: not chosen."""

    programId: ObjectId | None
    programStart: Annotated[str | None, CalendarDate()]
    content: Annotated[str, fields.String(), Default("")]
    title: Annotated[str, Text(allow_blank=True), Default("")]
    rhythm: Annotated[str, Choice(*(value for value, _ in RHYTHMS)), Default("weekday-7")]


@_customers.get("/new", access=coach(CUSTOMERS.CREATE), template="customers/new.html")
async def new_customer_page(ctx: Context) -> dict[str, Any]:
    """The form for a new client."""
    groups, coaches = await gather_reads(ctx, customers.list_groups(ctx), team.list_coaches(ctx))
    trainers = [("", "Unassigned"), *document_options(coaches)]
    if ctx.caller.customers_scope == "assigned":
        trainers = [(str(ctx.caller.id), ctx.caller.name)]
    return {
        "groups": groups,
        "trainers": trainers,
        "programs": [("", "No program"), *await list_options(ctx)] if PROGRAMS.VIEW in ctx.caller.permissions else [],
        "check_in_kinds": [("", "No check-in"), *await list_check_in_kinds(ctx)],
        "rhythms": RHYTHMS,
    }


@_customers.post("/new", access=coach(CUSTOMERS.CREATE), locks="program", on=new_customer_page)
async def new_customer(ctx: Context, form: _NewCustomer) -> web_pages.Redirect:
    """Add a client; send an invitation, assign a program and add a check-in if requested."""
    send_invitation = form["sendInvitation"]
    details = cast("customer_models.CustomerDetails", take(customer_models.WrittenDetails, form))
    if ctx.caller.customers_scope == "assigned":
        details["assignedTo"] = ctx.caller.id
    customer = await batch.create_customer(ctx, details, send_invitation=send_invitation)
    notice = f"{customer['name']} added."
    if send_invitation and customer["email"]:
        notice += " Invitation sent."
    elif send_invitation:
        notice += " No invitation was sent because the client has no email address."
    location, program_id = customer_path(customer["_id"]), form["programId"]
    if (program_id or form["content"]) and CUSTOMERS.EDIT not in ctx.caller.permissions:
        raise PermissionMissing(CUSTOMERS.EDIT)
    start = form["programStart"] or str(ctx.caller.today())
    if program_id:
        if PROGRAMS.VIEW not in ctx.caller.permissions:
            raise PermissionMissing(PROGRAMS.VIEW)
        if form["programStart"] is None:
            raise invalid_field("programStart", "is required", code="REQUIRED")
        assignment = await assignments.assign(ctx, program_id, customer["_id"], start)
        location = week_path(customer["_id"], start)
        notice += f" {quantity(assignment['blocks'], 'workout')} scheduled."
    if form["content"]:
        choice: CheckInForm = {**take(CheckInChoice, form), "startDate": start, "until": None}
        check_in = await check_ins.create(ctx, customer["_id"], to_check_in(choice))
        notice += f" {check_in['name']} is scheduled four weeks ahead."
    return web_pages.Redirect(location, notice, customer_id=customer["_id"])


# --- The groups of clients, and the program that clients get when they join one ---------------------------------------


_groups = _customers.below("/groups")


class _Group(TypedDict):
    group: Annotated[str, group_programs.GroupName(allow_blank=True), Default("")]


class _Rule(TypedDict):
    programId: ObjectId
    startOn: Annotated[
        Literal["nextMonday", "joinDay", "date"], Choice(group_programs.NEXT_MONDAY, group_programs.JOIN_DAY, "date")
    ]
    startDate: Annotated[str | None, CalendarDate()]
    leave: Annotated[group_programs.Leaving, Choice("keep", "removeUpcoming"), Default("keep")]
    existing: Annotated[bool, Default(False)]


@_groups.get("", access=coach(CUSTOMERS.VIEW), template="customers/groups.html")
async def groups_page(ctx: Context) -> dict[str, Any]:
    """The groups of clients, each with its program."""
    in_use, ruled = await gather_reads(ctx, customers.list_groups(ctx), group_programs.list_all(ctx))
    counts = {group["name"]: group["count"] for group in in_use}
    rules = {rule["groupName"]: rule for rule in ruled}
    names = sorted({*counts, *rules}, key=str.casefold)
    path_of = web_pages.list_url(f"{_groups.prefix}/program", {})
    return {
        "groups": [(name, counts.get(name, 0), rules.get(name), path_of(group=name)) for name in names],
        "starts": {group_programs.NEXT_MONDAY: "on the Monday after", group_programs.JOIN_DAY: "on the day of joining"},
    }


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
    return {"group": query["group"], "rule": rule, "programs": list(options.items())}


@_groups.post(
    "/program", access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW), locks="program", on=group_program_page, idempotent=True
)
async def set_program_of_group(ctx: Context, query: _Group, form: _Rule) -> web_pages.Redirect:
    """Set the program of a group."""
    start = form["startDate"] if form["startOn"] == "date" else form["startOn"]
    if start is None:
        raise invalid_field("startDate", "is required", code="REQUIRED")
    enrolment = await group_programs.set_group_program(
        ctx,
        query["group"],
        {"programId": form["programId"], "startOn": start, "leave": form["leave"], "existing": form["existing"]},
    )
    given = f" {quantity(enrolment['enrolled'], 'client')} got it now." if form["existing"] else ""
    return web_pages.Redirect(_groups.prefix, f"{query['group']} has a program.{given}")


@_groups.post("/program/remove", access=coach(CUSTOMERS.EDIT), on=group_program_page, idempotent=True, deletes=True)
async def remove_program_of_group(ctx: Context, query: _Group) -> web_pages.Redirect:
    """Leave a group without a program."""
    await group_programs.remove_program(ctx, query["group"])
    return web_pages.Redirect(_groups.prefix, f"{query['group']} has no program any more. Clients who have it keep it.")


# --- Finding: a page that works without script, whose results the dialog of every page shows while one types ----------


_search = pages.below("/search")
_KINDS: Mapping[SearchedType, str] = {
    "customers": "Clients",
    "programs": "Programs",
    "exercises": "Exercises",
    "workouts": "Workouts",
    "comments": "Comments in logs",
    "messages": "Messages",
    "notes": "Notes",
    "answers": "Answers to forms",
}
_NEW_WORKOUT = "New workout"
_SHOWN, _OF_KIND = 30, 6


class FindQuery(TypedDict):
    """What to search for; empty: nothing."""

    q: Annotated[str, Text(max_length=feature.MAX_LENGTH, allow_blank=True), Default("")]


class Command(NamedTuple):
    """A place to go to: its name, other words for it, its path, the permission it needs, and its icon."""

    title: str
    words: str
    path: str
    permission: str
    icon: str


_COMMANDS = (
    Command("Today", "attention start", "/app/attention", CUSTOMERS.VIEW, "house"),
    Command("Clients", "people list", "/app/customers", CUSTOMERS.VIEW, "users"),
    Command("New client", "add", "/app/customers/new", CUSTOMERS.CREATE, "plus"),
    Command("Inbox", "messages forms", "/app/inbox", CUSTOMERS.VIEW, "inbox"),
    Command("Exercises", "library", "/app/exercises", EXERCISES.VIEW, "dumbbell"),
    Command("Programs", "library templates", "/app/programs", PROGRAMS.VIEW, "library"),
    Command("Business", "reports adherence load answers", "/app/reports", CUSTOMERS.VIEW, "chart-line"),
    Command("History", "changes undo", "/app/settings/history", CUSTOMERS.VIEW, "undo-2"),
)


@_search.get("", access=coach(CUSTOMERS.VIEW), template="find.html")
async def find_page(ctx: Context, query: FindQuery) -> dict[str, Any]:
    """A field to search for clients and what is written about them, the results, and places to go to."""
    text = query["q"].strip()
    folded = searched_texts.split_words(text)
    beginning = searched_texts.split_words(_NEW_WORKOUT)
    if [*folded[: len(beginning)]] == [*beginning]:
        commands = await _list_new_workouts(ctx, " ".join(folded[len(beginning) :]))
        return {"q": text, "groups": [], "commands": commands, "is_found": True}
    results = await feature.find(ctx, text, limit=_SHOWN)
    groups = [
        (label, found[:_OF_KIND])
        for kind, label in _KINDS.items()
        if (found := [result for result in results if result["type"] == kind])
    ]
    words = searched_texts.words_of(text)
    permitted = [each for each in _COMMANDS if each.permission in ctx.caller.permissions]
    if CUSTOMERS.EDIT in ctx.caller.permissions:
        permitted.insert(
            1, Command(_NEW_WORKOUT, "add", f"/app/search?q={_NEW_WORKOUT.replace(' ', '+')}+", "", "plus")
        )
    commands = [
        each
        for each in permitted
        if words is None or words.occur_in(searched_texts.split_words(f"{each.title} {each.words}"))
    ]
    return {"q": text, "groups": groups, "commands": commands, "is_found": bool(groups or commands)}


async def _list_new_workouts(ctx: Context, name: str) -> list[Command]:
    """Return where a workout is added, for the clients whose name has some words, or for the first ones by name."""
    if CUSTOMERS.EDIT not in ctx.caller.permissions:
        return []
    if name:
        found = await feature.find(ctx, name, ["customers"], limit=_SHOWN)
        clients = [each["customer"] for each in found if each["customer"] is not None and not each["isArchived"]]
    else:
        page = await customers.list_customers(ctx, archived=False, page=1, size=_OF_KIND)
        clients = [{"_id": each["_id"], "name": customers.full_name(each)} for each in page["docs"]]
    days = await customers.find_timezones(ctx, [each["_id"] for each in clients])
    return [
        Command(
            f"{_NEW_WORKOUT} for {each['name']}",
            "",
            f"{week_path(each['_id'], today)}#name-{today}",
            CUSTOMERS.EDIT,
            "plus",
        )
        for each in clients
        for today in [str(ctx.caller.today(days.get(each["_id"])))]
    ]
