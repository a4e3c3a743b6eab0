"""Groups with a program in the database."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import TEMPLATES, Portable
from coaching_service.core.database.recording import History
from coaching_service.training.group_programs.models import StoredGroupProgram

group_programs = Documents[StoredGroupProgram](
    "groupPrograms",
    (Index(("groupName",), unique=True), Index(("programId",))),
    history=History("group_program"),
    transfer=Portable(StoredGroupProgram, TEMPLATES, references={"programId": "programs"}),
)
BY_NAME = group_programs.index_name("groupName")
BY_PROGRAM = group_programs.index_name("programId")


async def find_named(ctx: Context, names: Sequence[str]) -> list[StoredGroupProgram]:
    """Return the programs of groups by name; groups without a program are absent."""
    where = {"groupName": {"$in": list(names)}}
    return await group_programs.find(ctx, where, sort=("groupName",), hint=BY_NAME)
