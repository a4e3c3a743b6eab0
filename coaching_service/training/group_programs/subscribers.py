"""Reactions of groups with a program: clients join and leave them, and programs are deleted."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.people.customers.events import CustomersCreated, GroupsChanged
from coaching_service.training.group_programs import service, store
from coaching_service.training.programs.events import ProgramDeleted


async def follow_new_customers(ctx: Context, event: CustomersCreated) -> None:
    """Give new clients the programs of their groups."""
    groups = {each.customer["_id"]: each.customer["customerRoleData"]["groups"] for each in event.created}
    await service.enrol_all(ctx, {client: names for client, names in groups.items() if names})


async def follow_groups(ctx: Context, event: GroupsChanged) -> None:
    """Assign the programs of groups that clients have joined, and end the programs of groups that they have left."""
    left = {each.customer_id: sorted(each.left) for each in event.changes if each.left}
    joined = {each.customer_id: sorted(each.joined) for each in event.changes if each.joined}
    if left:
        await service.leave_all(ctx, left)
    if joined:
        await service.enrol_all(ctx, joined)


async def forget_program(ctx: Context, event: ProgramDeleted) -> None:
    """Leave the groups of a deleted program without one."""
    where = {"programId": event.program_id}
    for group in await store.group_programs.find(ctx, where, fields=("_id",), hint=store.BY_PROGRAM):
        await store.group_programs.delete(ctx, {"_id": group["_id"]})
