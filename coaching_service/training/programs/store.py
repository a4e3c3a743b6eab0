"""Programs in the database; their blocks are stored with all others, by training/workouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.portable import LIBRARY, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.events import EventType
from coaching_service.core.external_identity import BY_EXTERNAL_ID, IDENTITY_CHECKS
from coaching_service.core.field_schemas import checks_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import BY_UPDATE, UPDATED, ListPart
from coaching_service.core.text import keyword_filter, normalize, search_fields_of
from coaching_service.training.programs.models import ProgramFields, ProgramInput, StoredProgram

_EVENT_TYPES: dict[Action, EventType] = {
    "created": "program.created",
    "changed": "program.updated",
    "deleted": "program.deleted",
}


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData:
    return {"type": _EVENT_TYPES[action], "data": {"programId": known["_id"]}}


programs = Documents[StoredProgram](
    "programs",
    (
        Index(("isArchived", "sortName", "_id")),
        Index(("isArchived", "suf")),
        Index(("_id",)),
        BY_EXTERNAL_ID,
        Index(("isArchived", *BY_UPDATE)),
    ),
    private=("companyId", "sortName", "search", "suf", "scheduleChanges"),
    history=History("program", _event),
    transfer=Portable(
        StoredProgram,
        LIBRARY,
        checks={**IDENTITY_CHECKS, **checks_of(ProgramInput)},
        complete=lambda program: {**program, **search_fields(program)},
    ),
)
ORDER, PRIVATE_ORDER = ("sortName", "_id"), ("sortName",)
_BY_NAME = programs.index_name("isArchived", *ORDER)
_BY_SUFFIX = programs.index_name("isArchived", "suf")
BY_ID = programs.index_name("_id")
_BY_EXTERNAL_ID = programs.index_name("externalId")
_BY_UPDATE = programs.index_name("isArchived", *BY_UPDATE)


async def find_page(
    ctx: Context, where: Filter, list_part: ListPart, *, keywords: str
) -> tuple[list[StoredProgram], int]:
    """Return the programs of `where` for one part of the list with their sort fields, and their total number."""
    if "\0" in keywords:
        return [], 0
    condition = where | (keyword_filter(keywords) if keywords else {})
    hint = _list_index(where, list_part, keywords)
    return await list_part.read(ctx, programs, condition, hint=hint)


def _list_index(where: Filter, list_part: ListPart, keywords: str) -> str:
    """Return the index that serves a list of programs: one that has few of them, if there is one."""
    for field, index in (("externalId", _BY_EXTERNAL_ID), ("_id", BY_ID), (UPDATED, _BY_UPDATE)):
        if field in where:
            return index
    if keywords:
        return _BY_SUFFIX
    return _BY_NAME if list_part.sort == ORDER else _BY_UPDATE


async def find_id_by_external_id(ctx: Context, external_id: str) -> ObjectId | None:
    """Return the identifier of the program with this identifier in another system, or None."""
    where = {"externalId": external_id}
    matching = await programs.find(ctx, where, limit=1, fields=("_id",), hint=_BY_EXTERNAL_ID)
    return matching[0]["_id"] if matching else None


async def rewrite(
    ctx: Context, program_id: ObjectId, changed_fields: Callable[[StoredProgram], ProgramFields], version: int | None
) -> StoredProgram | None:
    """Set the fields that `changed_fields` returns for the stored program. Returns None if there is no such program."""

    def mutate(stored: StoredProgram) -> Mapping[str, Any]:
        fields = changed_fields(stored)
        return {**fields, **search_fields({**stored, **fields})} if fields else fields

    return await programs.rewrite(ctx, {"_id": program_id}, mutate, version=version)


def search_fields(program: Mapping[str, Any]) -> dict[str, Any]:
    """Return the private fields by which a program is sorted and searched."""
    texts = (program["name"], program["description"] or "", *program["tags"])
    return {"sortName": normalize(program["name"]), **search_fields_of(*texts)}
