"""Which groups have a program, and giving it to clients who join."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from typing import Annotated, Any, Literal, TypedDict

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import Conflict, Forbidden, InvalidFields, NotFound, invalid_field, require_found
from coaching_service.core.fields import Default, Description, Label, take
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer, CustomerGroup, CustomersCreated, GroupsChanged
from coaching_service.training import programs
from coaching_service.training.assignments import service as assignments
from coaching_service.training.programs import DatedProgram, ProgramDeleted

# --- Groups with a program as they are sent, stored and read ----------------------------------------------------------


NEXT_MONDAY, JOIN_DAY = "nextMonday", "joinDay"
Leaving = Literal["keep", "removeUpcoming"]


class GroupName(validation.Text):
    """The name of a group of clients."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=100, metadata={"pattern": r"^.{1,100}$", "example": "Morning"}, **options)


class StartOn(validation.Text):
    """`nextMonday`, `joinDay` or a date."""

    default_error_messages = {
        "choice": validation.Message(f"must be {NEXT_MONDAY}, {JOIN_DAY} or a date (YYYY-MM-DD)", "INVALID_CHOICE")
    }

    def __init__(self, **options: Any) -> None:
        pattern = rf"^({NEXT_MONDAY}|{JOIN_DAY}|\d{{4}}-\d{{2}}-\d{{2}})$"
        super().__init__(max_length=10, metadata={"pattern": pattern} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        if text in (NEXT_MONDAY, JOIN_DAY):
            return text
        if not text[:1].isdigit():
            raise self.make_error("choice")
        day: str = validation.CalendarDate().deserialize(text)
        return day


class _GroupProgram(TypedDict):
    """The program of a group, and when it begins for a client who joins."""

    programId: Annotated[ObjectId, Label("Program")]
    startOn: Annotated[
        str,
        StartOn(),
        Description(
            "When the program begins for a client who joins: on the Monday after, on the same day, or on a date. What "
            "is before the day on which the client joins is left out."
        ),
        Label("Begins"),
    ]
    leave: Annotated[
        Leaving,
        validation.Choice("keep", "removeUpcoming"),
        Default("keep"),
        Description(
            "What happens to the workouts of the program that are still to come when a client leaves the group: with "
            "`removeUpcoming`, those with nothing done are removed, and the program is ended for the client."
        ),
        Label("When a client leaves"),
    ]


class GroupProgramChange(_GroupProgram):
    """The program that clients get when they join a group."""

    existing: Annotated[
        bool,
        validation.Boolean(),
        Default(False),
        Description("Whether clients who are in the group now get it too, as if they joined now."),
    ]


class GroupProgramContent(_GroupProgram):
    """A group with its program."""

    groupName: Annotated[str, GroupName(), Description("The name of the group.")]


class StoredGroupProgram(GroupProgramContent, declared.Stored):
    """A stored group program."""


class GroupChange(TypedDict):
    """The new name of a group."""

    name: Annotated[str, GroupName(), Description("The new name.")]
    merge: Annotated[
        bool,
        validation.Boolean(),
        Default(False),
        Description("Whether the clients join a group of this name that exists; it keeps its program. Default: false."),
    ]


class GroupProgram(GroupProgramContent):
    """The program that clients get when they join a group."""

    programName: Annotated[str, Description("The name of the program.")]


class Enrolment(TypedDict):
    """How many clients got the program."""

    enrolled: Annotated[int, Description("The number of clients in the group who got the program now.")]


# --- Groups with a program in the database ----------------------------------------------------------------------------


group_programs = Documents[StoredGroupProgram](
    "groupPrograms",
    (declared.Index(("groupName",), unique=True), declared.Index(("programId",))),
    history=declared.History("group_program"),
    transfer=declared.Portable(StoredGroupProgram, declared.TEMPLATES, references={"programId": "programs"}),
)
BY_NAME = group_programs.index_name("groupName")
BY_PROGRAM = group_programs.index_name("programId")


async def find_named(ctx: Context, names: Sequence[str]) -> list[StoredGroupProgram]:
    """Return the programs of groups by name; groups without a program are absent."""
    where = {"groupName": {"$in": list(names)}}
    return await group_programs.find(ctx, where, sort=("groupName",), hint=BY_NAME)


_MEMBERS_AT_ONCE = 200
_PATH, _ABOUT = "/coach/customers/groups/{name}", {"name": "The name of a group, percent-encoded."}
routes = Routes(f"{_PATH}/program", tag="Programs", path_descriptions=_ABOUT)
group_routes = Routes(_PATH, tag="Customers", path_descriptions=_ABOUT)
_NAME = {"name": GroupName()}


# The programs to give to clients, each read once for a day on which it begins. None: it is archived, or it has got so
# long that it would leave the calendar.
_Given = dict[tuple[ObjectId, str], DatedProgram | None]


async def list_all(ctx: Context) -> list[GroupProgram]:
    """Return the groups with a program, by name."""
    return await _present(ctx, await group_programs.find(ctx, {}, sort=("groupName",), hint=BY_NAME))


@routes.get(
    "",
    access=coach(CUSTOMERS.VIEW, PROGRAMS.VIEW),
    errors=(NotFound,),
    path_fields=_NAME,
    operation_id="getGroupProgram",
)
async def get(ctx: Context, name: str) -> GroupProgram:
    """Return the program that clients get when they join a group."""
    if not (groups := await _present(ctx, await find_named(ctx, [name]))):
        raise NotFound("group program")
    return groups[0]


async def _present(ctx: Context, groups: Sequence[StoredGroupProgram]) -> list[GroupProgram]:
    names = await programs.get_names(ctx, [group["programId"] for group in groups])
    return [
        {**take(GroupProgramContent, group), "programName": names[group["programId"]]}
        for group in groups
        if group["programId"] in names
    ]


@routes.put(
    "",
    access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW),
    locks="program",
    errors=(NotFound,),
    example={"programId": "66f0c0ffee0000000000abcd", "startOn": "nextMonday", "leave": "removeUpcoming"},
    path_fields=_NAME,
)
async def set_group_program(ctx: Context, name: str, body: GroupProgramChange) -> Enrolment:
    """Set the program that clients get when they join a group.

    A client for whom the program runs already does not get it again, and an archived client does not get it.
    """
    await _require_in_scope(ctx, name)
    ctx = replace(ctx, batch_id=ObjectId())
    await _save(ctx, {**take(GroupProgramContent, {**body, "groupName": name})})
    if not body["existing"]:
        return {"enrolled": 0}
    enrolled = 0
    given = _Given()
    async for ids in bulk.iterate_matching(ctx, {"archived": False, "groups": [name]}, _MEMBERS_AT_ONCE):
        for customer_id in ids:
            enrolled += await _enrol_member(ctx, name, customer_id, given)
    return {"enrolled": enrolled}


async def _require_in_scope(ctx: Context, group: str) -> None:
    if await bulk.has_members_beyond_scope(ctx, group):
        raise Forbidden(
            "This group includes clients of other coaches, or clients who have turned off assistants or applications"
        )


@transactional
async def _save(ctx: Context, content: GroupProgramContent) -> None:
    try:
        await programs.get_dated(ctx, content["programId"], start_of(content["startOn"], ctx.caller.today()))
    except InvalidFields:
        raise invalid_field(
            "startOn", "is so late that the program leaves the calendar", code="DATE_OUT_OF_RANGE"
        ) from None
    await group_programs.upsert(ctx, {"groupName": content["groupName"]}, content)


@transactional
async def _enrol_member(ctx: Context, name: str, customer_id: ObjectId, given: _Given) -> bool:
    clients = await bulk.load_active(ctx, [customer_id])
    groups = await find_named(ctx, [name])
    return any([await _enrol(ctx, group, client, given) for client in clients.values() for group in groups])


@group_routes.patch(
    "",
    access=coach(CUSTOMERS.EDIT),
    request_class="bulk",
    errors=(NotFound, Conflict),
    example={"name": "Evening"},
    path_fields=_NAME,
    operation_id="updateCustomerGroup",
)
async def rename(ctx: Context, name: str, body: GroupChange) -> CustomerGroup:
    """Rename a group of clients.

    Archived ones too; the program of the group, and those that clients have by it, stay as they are. The clients are
    changed a few hundred at a time: repeat a request that was cut off with `merge`.
    """
    group, name = name, body["name"]
    sizes = {each["name"]: each["count"] for each in await customers.list_groups(ctx)}
    programs_of = {each["groupName"] for each in await find_named(ctx, [group, name])}
    for each in {group, name}:
        await _require_in_scope(ctx, each)
    if group not in sizes.keys() | programs_of:
        raise NotFound("group")
    if name == group:
        return {"name": name, "count": sizes.get(name, 0)}
    if name in sizes.keys() | programs_of and not body["merge"]:
        raise Conflict("There is a group of this name; send merge: true to put both together", code="GROUP_EXISTS")
    ctx = replace(ctx, batch_id=ObjectId())
    for archived in (False, True):
        async for ids in bulk.iterate_matching(ctx, {"archived": archived, "groups": [group]}, _MEMBERS_AT_ONCE):
            await _rename_members(ctx, ids, group, name)
    await _rename_program(ctx, group, name)
    sizes = {each["name"]: each["count"] for each in await customers.list_groups(ctx)}
    return {"name": name, "count": sizes.get(name, 0)}


@transactional
async def _rename_members(ctx: Context, ids: list[ObjectId], group: str, name: str) -> None:
    await assignments.rename_group(ctx, await bulk.rename_group(ctx, ids, group, name), group, name)


@transactional
async def _rename_program(ctx: Context, group: str, name: str) -> None:
    by_name = {each["groupName"]: each for each in await find_named(ctx, [group, name])}
    if group in by_name:
        await group_programs.delete(ctx, {"groupName": group})
        if name not in by_name:
            content = take(GroupProgramContent, by_name[group])
            await group_programs.upsert(ctx, {"groupName": name}, {**content, "groupName": name})


@routes.delete(
    "", access=coach(CUSTOMERS.EDIT), errors=(NotFound,), path_fields=_NAME, operation_id="deleteGroupProgram"
)
@transactional
async def remove_program(ctx: Context, name: str) -> None:
    """Give clients who join a group no program any more.

    Clients who have it keep it.
    """
    await _require_in_scope(ctx, name)
    require_found(await group_programs.delete(ctx, {"groupName": name}), "group program")


async def enrol_all(ctx: Context, joined: dict[ObjectId, list[str]]) -> None:
    """Give clients who have joined groups the programs of these, in the caller's transaction."""
    groups = await find_named(ctx, list({name for names in joined.values() for name in names}))
    if not groups:
        return
    clients, given = await bulk.load_identities(ctx, list(joined)), _Given()
    for customer_id, client in clients.items():
        for group in groups:
            if group["groupName"] in joined[customer_id] and not client["customerRoleData"]["isArchived"]:
                await _enrol(ctx, group, client, given)


async def _enrol(ctx: Context, group: StoredGroupProgram, client: Customer, given: _Given) -> bool:
    """Give a client the program of a group, unless it is archived, over, or running for the client already."""
    customer_id, program_id = client["_id"], group["programId"]
    today = _today(ctx, client)
    key = program_id, start_of(group["startOn"], today)
    if key not in given:
        is_archived = (await programs.get(ctx, program_id))["isArchived"]
        with suppress(InvalidFields):
            given[key] = None if is_archived else await programs.get_dated(ctx, *key)
    dated = given.setdefault(key, None)
    if dated is None or all(str(block["date"]) < str(today) for block in dated.blocks):
        return False
    if await assignments.is_running(ctx, customer_id, program_id, str(today)):
        return False
    await assignments.add_to_calendar(ctx, dated, customer_id, first=str(today), group=group["groupName"])
    return True


def _today(ctx: Context, client: Customer) -> date:
    return ctx.caller.today(client["timezone"])


def start_of(start_on: str, today: date) -> str:
    """Return the date on which a program begins for a client who joins a group today."""
    if start_on == JOIN_DAY:
        return str(today)
    if start_on == NEXT_MONDAY:
        return str(today + timedelta(days=8 - today.isoweekday()))
    return start_on


# --- Reactions of groups with a program: clients join and leave them, and programs are deleted ------------------------


async def enrol_new_customers(ctx: Context, event: CustomersCreated) -> None:
    """Give new clients the programs of their groups."""
    groups = {each.customer["_id"]: each.customer["customerRoleData"]["groups"] for each in event.created}
    await enrol_all(ctx, {client: names for client, names in groups.items() if names})


async def assign_programs_of_groups(ctx: Context, event: GroupsChanged) -> None:
    """Assign the programs of groups that clients have joined, and end the programs of groups that they have left."""
    left = {each.customer_id: sorted(each.left) for each in event.changes if each.left}
    joined = {each.customer_id: sorted(each.joined) for each in event.changes if each.joined}
    if left:
        # What is still to come is removed where the group says so, unless another group of the client has the program.
        groups = await find_named(ctx, list({name for names in left.values() for name in names}))
        ended = {group["groupName"] for group in groups if group["leave"] == "removeUpcoming"}
        leaving = {customer_id: ended.intersection(names) for customer_id, names in left.items()}
        clients = await bulk.load_identities(ctx, [customer_id for customer_id, names in leaving.items() if names])
        staying = {
            each: set(client["customerRoleData"]["groups"]) - set(left[each]) for each, client in clients.items()
        }
        others = await find_named(ctx, list(set().union(*staying.values())))
        for customer_id, client in clients.items():
            of_client = {
                each["programId"]: each["groupName"] for each in others if each["groupName"] in staying[customer_id]
            }
            today = str(_today(ctx, client))
            await assignments.end_of_groups(ctx, customer_id, leaving[customer_id], today, of_client)
    if joined:
        await enrol_all(ctx, joined)


async def forget_program(ctx: Context, event: ProgramDeleted) -> None:
    """Leave the groups of a deleted program without one."""
    where = {"programId": event.program_id}
    for group in await group_programs.find(ctx, where, fields=("_id",), hint=BY_PROGRAM):
        await group_programs.delete(ctx, {"_id": group["_id"]})
