"""Which groups have a program, and giving it to clients who join."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Forbidden, InvalidFields, NotFound, invalid_field
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import bulk
from coaching_service.people.customers.models import Customer, CustomersCreated, GroupsChanged
from coaching_service.training.assignments import service as assignments
from coaching_service.training.group_programs import store
from coaching_service.training.group_programs.models import (
    JOIN_DAY,
    NEXT_MONDAY,
    GroupProgram,
    GroupProgramChange,
    GroupProgramContent,
    StoredGroupProgram,
)
from coaching_service.training.programs import service as programs
from coaching_service.training.programs.models import DatedProgram, ProgramDeleted

_MEMBERS_AT_ONCE = 200


@dataclass
class _Programs:
    """The programs to give to clients, each read once for a day on which it begins.

    None: it is archived, or it has got so long that it would leave the calendar.
    """

    dated: dict[tuple[ObjectId, str], DatedProgram | None] = field(default_factory=dict)

    async def get(self, ctx: Context, program_id: ObjectId, start: str) -> DatedProgram | None:
        """Return a program with dates, or None for one that is not given."""
        key = program_id, start
        if key not in self.dated:
            is_archived = (await programs.get(ctx, program_id))["isArchived"]
            with suppress(InvalidFields):
                self.dated[key] = None if is_archived else await programs.get_dated(ctx, program_id, start)
        return self.dated.setdefault(key, None)


async def list_all(ctx: Context) -> list[GroupProgram]:
    """Return the groups with a program, by name."""
    return await _present(ctx, await store.group_programs.find(ctx, {}, sort=("groupName",), hint=store.BY_NAME))


async def get(ctx: Context, name: str) -> GroupProgram:
    """Return the program of a group. Raises NotFound if it has none."""
    if not (groups := await _present(ctx, await store.find_named(ctx, [name]))):
        raise NotFound("group program")
    return groups[0]


async def _present(ctx: Context, groups: Sequence[StoredGroupProgram]) -> list[GroupProgram]:
    names = await programs.get_names(ctx, [group["programId"] for group in groups])
    return [
        {**take(GroupProgramContent, group), "programName": names[group["programId"]]}
        for group in groups
        if group["programId"] in names
    ]


async def have_program(ctx: Context, names: Sequence[str]) -> bool:
    """Return whether any of some groups has a program."""
    return bool(await store.find_named(ctx, names))


async def set_program(ctx: Context, name: str, change: GroupProgramChange) -> int:
    """Give clients who join a group a program, and with `existing` those who are in it now, as one batch.

    Returns how many clients got it. Raises NotFound for the program, InvalidFields if it would leave the calendar, and
    Forbidden if a client of the group is outside of the coach's scope.
    """
    await _require_in_scope(ctx, name)
    ctx = replace(ctx, batch_id=ObjectId())
    await _save(ctx, {**take(GroupProgramContent, {**change, "groupName": name})})
    if not change["existing"]:
        return 0
    enrolled = 0
    given = _Programs()
    async for ids in bulk.iterate_matching(ctx, {"archived": False, "groups": [name]}, _MEMBERS_AT_ONCE):
        for customer_id in ids:
            enrolled += await _enrol_member(ctx, name, customer_id, given)
    return enrolled


async def _require_in_scope(ctx: Context, group: str) -> None:
    if await bulk.has_members_beyond_scope(ctx, group):
        raise Forbidden("Clients of this group are assigned to other coaches")


@transactional
async def _save(ctx: Context, content: GroupProgramContent) -> None:
    try:
        await programs.get_dated(ctx, content["programId"], start_of(content["startOn"], ctx.caller.today()))
    except InvalidFields:
        raise invalid_field(
            "startOn", "is so late that the program leaves the calendar", code="DATE_OUT_OF_RANGE"
        ) from None
    await store.group_programs.upsert(ctx, {"groupName": content["groupName"]}, content)


@transactional
async def _enrol_member(ctx: Context, name: str, customer_id: ObjectId, given: _Programs) -> bool:
    clients = await bulk.load_active(ctx, [customer_id])
    groups = await store.find_named(ctx, [name])
    return any([await _enrol(ctx, group, client, given) for client in clients.values() for group in groups])


@transactional
async def remove_program(ctx: Context, name: str) -> None:
    """Give clients who join a group no program any more; those who have it keep it. Raises NotFound, Forbidden."""
    await _require_in_scope(ctx, name)
    if await store.group_programs.delete(ctx, {"groupName": name}) is None:
        raise NotFound("group program")


async def enrol_all(ctx: Context, joined: dict[ObjectId, list[str]]) -> None:
    """Give clients who have joined groups the programs of these, in the caller's transaction."""
    groups = await store.find_named(ctx, list({name for names in joined.values() for name in names}))
    if not groups:
        return
    clients, given = await bulk.load_identities(ctx, list(joined)), _Programs()
    for customer_id, client in clients.items():
        for group in groups:
            if group["groupName"] in joined[customer_id] and not client["customerRoleData"]["isArchived"]:
                await _enrol(ctx, group, client, given)


async def _enrol(ctx: Context, group: StoredGroupProgram, client: Customer, given: _Programs) -> bool:
    """Give a client the program of a group, unless it is archived, over, or running for the client already."""
    customer_id, program_id = client["_id"], group["programId"]
    today = _today(ctx, client)
    dated = await given.get(ctx, program_id, start_of(group["startOn"], today))
    if dated is None or all(str(block["date"]) < str(today) for block in dated.blocks):
        return False
    if await assignments.is_running(ctx, customer_id, program_id, str(today)):
        return False
    await assignments.add_to_calendar(ctx, dated, customer_id, first=str(today), group=group["groupName"])
    return True


async def leave_all(ctx: Context, left: dict[ObjectId, list[str]]) -> None:
    """End the programs of groups for clients who have left them, where the group says so, in the caller's transaction.

    What of them is still to come is removed. A program that another group of the client has too goes on.
    """
    groups = await store.find_named(ctx, list({name for names in left.values() for name in names}))
    ended = {group["groupName"] for group in groups if group["leave"] == "removeUpcoming"}
    leaving = {customer_id: ended.intersection(names) for customer_id, names in left.items()}
    clients = await bulk.load_identities(ctx, [customer_id for customer_id, names in leaving.items() if names])
    staying = {each: set(client["customerRoleData"]["groups"]) - set(left[each]) for each, client in clients.items()}
    others = await store.find_named(ctx, list(set().union(*staying.values())))
    for customer_id, client in clients.items():
        of_client = {
            each["programId"]: each["groupName"] for each in others if each["groupName"] in staying[customer_id]
        }
        today = str(_today(ctx, client))
        await assignments.end_of_groups(ctx, customer_id, leaving[customer_id], today, of_client)


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
        await leave_all(ctx, left)
    if joined:
        await enrol_all(ctx, joined)


async def forget_program(ctx: Context, event: ProgramDeleted) -> None:
    """Leave the groups of a deleted program without one."""
    where = {"programId": event.program_id}
    for group in await store.group_programs.find(ctx, where, fields=("_id",), hint=store.BY_PROGRAM):
        await store.group_programs.delete(ctx, {"_id": group["_id"]})
