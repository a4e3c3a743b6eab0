"""The workouts of a program, and changing and deleting the program."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.training.programs import service as programs
from coaching_service.training.programs.models import LAST_DAY, ProgramBlockFields, ProgramChange
from coaching_service.training.programs.schemas import NewProgram, ProgramBlockCopy
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import CopiedSchedule, ProgramDays
from coaching_service.training.schedule.schemas import ProgramRange
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.web.pages import Pages, Redirect, Render
from coaching_service.web.views.programs import list_clients_on, program_page
from coaching_service.web.views.schedule_forms import (
    CopyOptions,
    describe_copy,
    render_copy_preview,
    to_copy_request,
)
from coaching_service.web.views.workout import WorkoutOwnerPages, declare_workout_pages
from coaching_service.web.views.workout.item_texts import NewWorkoutForm, NewWorkoutText, create_with_text

pages = Pages("/app/programs/{programId}")
_PROGRAM_FORM = patch_of(NewProgram, name="ProgramForm")


class _NewWorkout(ProgramBlockFields, NewWorkoutText):
    """A workout or rest day of a program."""


class _CopyDays(ProgramDays, CopyOptions):
    """The days of a program to copy, where, how often, and how the sets change."""


_COPY_DAYS = input_of(_CopyDays, ProgramRange)


async def _layout_variables(ctx: Context, program_id: ObjectId) -> dict[str, Any]:
    program, running = await gather_reads(ctx, programs.require(ctx, program_id), list_clients_on(ctx, program_id))
    return {"program": program, "running": running}


declare_workout_pages(
    WorkoutOwnerPages(
        pages=pages,
        owner_type=ProgramPlan,
        owner_parameter="program_id",
        view=PROGRAMS.VIEW,
        edit=PROGRAMS.EDIT,
        layout="library/program_layout.html",
        layout_variables=_layout_variables,
        place_form=ProgramBlockCopy,
        move_range=lambda _: (1, LAST_DAY),
        overview_path=lambda program_id, _: f"/app/programs/{program_id}",
    )
)


@pages.post("/blocks", access=coach(PROGRAMS.EDIT), form=input_of(_NewWorkout, NewWorkoutForm)(), on=program_page)
async def add_program_workout(ctx: Context, program_id: ObjectId, form: _NewWorkout) -> Redirect:
    """Add an empty workout or a rest day to a program."""
    program_path = f"/app/programs/{program_id}"
    block, remarks = await create_with_text(ctx, ProgramPlan(program_id), form)
    if form["isRest"]:
        return Redirect(program_path, f"Day {form['day']} is a rest day.")
    if block["items"]:
        return Redirect(program_path, f"{block['name']} added.{remarks}")
    return Redirect(f"{program_path}/blocks/{block['_id']}", f"{block['name']} added. Add its exercises here.")


async def _copy_days(ctx: Context, program_id: ObjectId, form: _CopyDays, *, dry_run: bool) -> CopiedSchedule:
    request = to_copy_request(form["startDay"], form["endDay"], form["targetDay"], form)
    return await schedule.copy_days(ctx, ProgramPlan(program_id), request, dry_run=dry_run)


@pages.post("/copy-days", access=coach(PROGRAMS.EDIT), form=_COPY_DAYS(), on=program_page)
async def copy_program_days(ctx: Context, program_id: ObjectId, form: _CopyDays) -> Redirect:
    """Copy days of a program, once or several times, with a progression."""
    result = await _copy_days(ctx, program_id, form, dry_run=False)
    return Redirect(f"/app/programs/{program_id}", f"{describe_copy(result, form['onConflict'])}.")


@pages.post(
    "/copy-days/preview",
    access=coach(PROGRAMS.EDIT),
    form=_COPY_DAYS(),
    on=program_page,
    preview_of=copy_program_days,
)
async def preview_copied_days(ctx: Context, program_id: ObjectId, form: _CopyDays) -> Render:
    """Show what copying days would do."""
    result = await _copy_days(ctx, program_id, form, dry_run=True)
    summary = describe_copy(result, form["onConflict"])
    return render_copy_preview(ctx, "copy_program_days", summary, result, form["onConflict"])


@pages.post("/duplicate", access=coach(PROGRAMS.CREATE), on=program_page)
async def duplicate_program(ctx: Context, program_id: ObjectId) -> Redirect:
    """Create a copy of a program with its workouts."""
    copy = await programs.duplicate(ctx, program_id)
    return Redirect(f"/app/programs/{copy['_id']}", f"{copy['name']} created.")


@pages.get("/edit", access=coach(PROGRAMS.EDIT), template="library/edit_program.html")
async def edit_program_page(ctx: Context, program_id: ObjectId) -> dict[str, Any]:
    """The form to change a program's details."""
    program = await programs.get(ctx, program_id)
    return {"program": program, "version": program["version"]}


@pages.post("/edit", access=coach(PROGRAMS.EDIT), form=_PROGRAM_FORM, on=edit_program_page)
async def update_program(ctx: Context, program_id: ObjectId, form: ProgramChange) -> Redirect:
    """Change a program's name, description and tags."""
    await programs.update(ctx, program_id, form)
    return Redirect(f"/app/programs/{program_id}", "Changes saved.")


@pages.get("/delete", access=coach(PROGRAMS.DELETE), template="library/delete_program.html")
async def delete_program_page(ctx: Context, program_id: ObjectId) -> dict[str, Any]:
    """Confirmation of deleting a program."""
    program, blocks = await gather_reads(
        ctx, programs.require(ctx, program_id), workouts.list_blocks(ctx, ProgramPlan(program_id), 1, LAST_DAY)
    )
    item_count = sum(len(block["items"]) for block in blocks)
    return {"program": program, "workout_count": len(blocks), "item_count": item_count}


@pages.post("/delete", access=coach(PROGRAMS.DELETE), on=delete_program_page)
async def delete_program(ctx: Context, program_id: ObjectId) -> Redirect:
    """Delete a program and its workouts."""
    program = await programs.require(ctx, program_id)
    await programs.delete(ctx, program_id)
    return Redirect("/app/programs", f"{program['name']} deleted.")
