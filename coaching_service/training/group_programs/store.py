"""Groups with a program in the database."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import TEMPLATES, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.training.group_programs.models import GroupProgramContent, StoredGroupProgram

group_programs = Documents[StoredGroupProgram](
    "groupPrograms",
    (Index(("groupName",), unique=True), Index(("programId",))),
    history=History("group_program"),
    transfer=Portable(StoredGroupProgram, TEMPLATES, references={"programId": "programs"}),
)
_BY_NAME = group_programs.index_name("groupName")
_BY_PROGRAM = group_programs.index_name("programId")


async def find_all(ctx: Context) -> list[StoredGroupProgram]:
    """Return the groups with a program, by name."""
    return await group_programs.find(ctx, {}, sort=("groupName",), hint=_BY_NAME)


async def find_named(ctx: Context, names: Sequence[str]) -> list[StoredGroupProgram]:
    """Return the programs of groups by name; groups without a program are absent."""
    where = {"groupName": {"$in": list(names)}}
    return await group_programs.find(ctx, where, sort=("groupName",), hint=_BY_NAME)


async def save(ctx: Context, content: GroupProgramContent) -> None:
    """Store the program of a group, in place of another one."""
    await group_programs.upsert(ctx, {"groupName": content["groupName"]}, take(GroupProgramContent, content))


async def delete(ctx: Context, name: str) -> bool:
    """Delete the program of a group; returns whether it had one."""
    return await group_programs.delete(ctx, {"groupName": name}) is not None


async def delete_of_program(ctx: Context, program_id: ObjectId) -> None:
    """Delete the groups of a program that is deleted."""
    for group in await group_programs.find(ctx, {"programId": program_id}, fields=("_id",), hint=_BY_PROGRAM):
        await group_programs.delete(ctx, {"_id": group["_id"]})
