"""Bringing clients who are on a program up to date with it: who gets what, and the update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Identifier, ListOf
from coaching_service.lifecycle import program_sync
from coaching_service.training.assignments import sync
from coaching_service.training.assignments.sync import DEFAULT_INCLUDE, SYNCABLE, AssignmentSync, Syncable, SyncBlock
from coaching_service.training.programs import service as programs
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/programs/{programId}/sync")
_MAX_CLIENTS = 500


class _SyncForm(TypedDict):
    assignmentIds: Annotated[list[ObjectId], ListOf(Identifier(), maximum=_MAX_CLIENTS), Default(list)]
    include: Annotated[list[Syncable], ListOf(Choice(*SYNCABLE), maximum=len(SYNCABLE)), Default(list)]


class _ClientRow(TypedDict):
    """A client on the program, with the workouts in each state."""

    assignment: AssignmentSync
    is_behind: bool
    by_state: list[tuple[str, list[SyncBlock]]]


@pages.get("", access=coach(CUSTOMERS.VIEW, PROGRAMS.VIEW), template="library/program_sync.html")
async def program_sync_page(ctx: Context, program_id: ObjectId) -> dict[str, Any]:
    """What an update of the clients who are on a program would change, for each client and state."""
    program, compared = await gather_reads(ctx, programs.require(ctx, program_id), sync.list_states(ctx, program_id))
    states = Counter(block["state"] for each in compared for block in each["blocks"])
    rows = [_describe(each) for each in compared]
    return {
        "program": program,
        "rows": rows,
        "behind": sum(row["is_behind"] for row in rows),
        "states": states,
        "syncable": SYNCABLE,
        "default_include": DEFAULT_INCLUDE,
    }


def _describe(assignment: AssignmentSync) -> _ClientRow:
    blocks = assignment["blocks"]
    by_state = [(state, [block for block in blocks if block["state"] == state]) for state in _ORDER]
    shown = [(state, of_state) for state, of_state in by_state if of_state]
    is_behind = any(state in DEFAULT_INCLUDE for state, _ in shown)
    return {"assignment": assignment, "is_behind": is_behind, "by_state": shown}


_ORDER: Sequence[str] = (*SYNCABLE, "same", "done", "past")


@pages.post("", access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW), on=program_sync_page, idempotent=True)
async def update_clients_of_program(ctx: Context, program_id: ObjectId, form: _SyncForm) -> Redirect:
    """Bring the chosen clients up to date with a program."""
    for name, value in (("assignmentIds", form["assignmentIds"]), ("include", form["include"])):
        if not value:
            raise invalid_field(name, "should not be empty", code="EMPTY")
    result = await program_sync.run(
        ctx, program_id, {"assignmentIds": form["assignmentIds"], "include": form["include"]}
    )
    done = [
        f"{quantity(number, 'workout')} {word}"
        for number, word in (
            (result["changed"], "changed"),
            (result["created"], "added"),
            (result["removed"], "removed"),
        )
        if number
    ]
    clients = quantity(len(form["assignmentIds"]) - len(result["failed"]), "client")
    notice = f"{clients} updated: {', '.join(done)}." if done else "Nothing to update."
    if result["failed"]:
        notice += f" {quantity(len(result['failed']), 'client')} could not be updated: try again."
    return Redirect(f"/app/programs/{program_id}", notice)
