"""Programs: the list, and one program with its workouts, its assignment to clients, and changing and deleting it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import Conflict
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Integer, patch_of
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import listing
from coaching_service.training.assignments import service as assignments
from coaching_service.training.assignments import sync
from coaching_service.training.assignments.sync import RunningAssignment
from coaching_service.training.programs import service as programs
from coaching_service.training.programs.models import LAST_DAY, ProgramBlockFields, ProgramChange, ProgramInput
from coaching_service.training.programs.schemas import NewProgram, ProgramBlockCopy
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import ProgramDays
from coaching_service.training.schedule.schemas import ProgramRange
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.descriptions import ItemDescription, describe_item
from coaching_service.training.workouts.items.totals import planned_exercise_ids
from coaching_service.web.formatting import document_options, name_options, quantity
from coaching_service.web.page_queries import Keywords, Search, list_url
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect
from coaching_service.web.views.customer_layout import week_path
from coaching_service.web.views.schedule_forms import (
    ConflictChoice,
    CopyOptions,
    Outcome,
    declare_operation,
    describe_copy,
    describe_taken_days,
    describe_untouched,
    to_copy_request,
)
from coaching_service.web.views.workout import WorkoutOwnerPages, declare_workout_pages
from coaching_service.web.views.workout.cards import (
    ItemsText,
    NewWorkoutForm,
    NewWorkoutText,
    create_from_program_text,
    create_with_text,
    list_template_names,
)

pages = Pages("/app/programs")
_program = pages.below("/{programId}")
_PROGRAM_FORM = patch_of(NewProgram, name="ProgramForm")
_PAGE_SIZE = 24
_MAX_CLIENTS, _MAX_OPTIONS = 50, 500


class _Search(Search):
    archived: Annotated[bool, Default(False)]


class _NewProgram(ProgramInput, ItemsText):
    """A program, and its workouts as text."""


class _ProgramQuery(TypedDict):
    client: Annotated[str, Keywords()]
    day: Annotated[int | None, Integer(minimum=1, maximum=LAST_DAY)]


class _Assignment(TypedDict):
    customerId: ObjectId
    startDate: Annotated[str, CalendarDate()]
    onConflict: ConflictChoice
    repeat: Annotated[bool, Default(False)]


@pages.get("", access=coach(PROGRAMS.VIEW), template="library/programs.html")
async def programs_page(ctx: Context, query: _Search) -> dict[str, Any]:
    """The programs, by name."""
    page = await programs.list_page(
        ctx, archived=query["archived"], page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"]
    )
    return {"page": page, "query": query, "page_url": list_url(pages.prefix, query)}


@pages.post("", access=coach(PROGRAMS.CREATE), form=input_of(_NewProgram, NewProgram)(), on=programs_page)
async def create_program(ctx: Context, form: _NewProgram) -> Redirect:
    """Create a program, with the workouts of a text if there is one."""
    program = await programs.create(ctx, take(ProgramInput, form))
    plan, text = ProgramPlan(program["_id"]), form["text"]
    _, remarks = await create_from_program_text(ctx, plan, text)
    return Redirect(f"/app/programs/{program['_id']}", f"{program['name']} created.{remarks}")


@pages.get("/{programId}", access=coach(PROGRAMS.VIEW), template="library/program.html")
async def program_page(ctx: Context, program_id: ObjectId, query: _ProgramQuery) -> dict[str, Any]:
    """A program by week, and the clients it can be assigned to."""
    program, blocks, clients, template_names, running = await gather_reads(
        ctx,
        programs.get(ctx, program_id),
        workouts.list_blocks(ctx, ProgramPlan(program_id), 1, LAST_DAY),
        listing.list_customers(ctx, archived=False, page=1, size=_MAX_CLIENTS, contains=query["client"]),
        list_template_names(ctx),
        list_clients_on(ctx, program_id),
    )
    exercise_ids = {each for block in blocks for item in block["items"] for each in planned_exercise_ids(item)}
    names = await exercises.get_names(ctx, exercise_ids)
    weeks = _group_by_week(blocks, ctx.caller.company.load_unit)
    return {
        "program": program,
        "running": running,
        "weeks": weeks,
        "template_names": template_names,
        "next_day": query["day"] or min(blocks[-1]["day"] + 1 if blocks else 1, LAST_DAY),
        "clients": [
            (str(client["_id"]), f"{client['name']} {client['surname'] or ''}".rstrip()) for client in clients["docs"]
        ],
        "client_count": clients["totalDocs"],
        "client_search": query["client"],
        "today": ctx.caller.today(),
        "unit": ctx.caller.company.load_unit,
        "running_count": len(running),
        "exercises": name_options({each: name["name"] for each, name in names.items()}),
        "last_day_of_weeks": max(weeks, default=1) * 7,
        "preview": None,
    }


async def list_options(ctx: Context) -> list[tuple[str, str]]:
    """Return the programs that can be assigned as options of a select, at most the first 500 by name."""
    page = await programs.list_page(ctx, archived=False, page=1, size=_MAX_OPTIONS)
    return document_options(page["docs"])


async def list_clients_on(ctx: Context, program_id: ObjectId) -> list[RunningAssignment]:
    """Return the clients who are on a program, if the coach may see clients."""
    return await sync.list_running(ctx, program_id) if CUSTOMERS.VIEW in ctx.caller.permissions else []


class _BlockTile(TypedDict):
    _id: ObjectId
    name: str
    isRest: bool
    descriptions: list[ItemDescription]


def _group_by_week(blocks: Sequence[Block], unit: str) -> dict[int, list[tuple[int, list[_BlockTile]]]]:
    """Return the weeks that have a workout, by their number from 1, each with its seven days."""
    tiles: dict[int, list[_BlockTile]] = {}
    for block in blocks:
        tile: _BlockTile = {
            "_id": block["_id"],
            "name": block["name"],
            "isRest": block["isRest"],
            "descriptions": [describe_item(item, unit) for item in block["items"]],
        }
        tiles.setdefault(block["day"] or 1, []).append(tile)
    weeks = sorted({(day - 1) // 7 for day in tiles})
    return {week + 1: [(day, tiles.get(day, [])) for day in range(week * 7 + 1, week * 7 + 8)] for week in weeks}


@declare_operation(pages, "/{programId}/assign", access=coach(CUSTOMERS.EDIT), form=_Assignment, on=program_page)
async def assign_program(ctx: Context, program_id: ObjectId, form: _Assignment, *, dry_run: bool) -> Outcome:
    """Schedule every workout of a program on a client's calendar."""
    customer_id, start_date, on_conflict = form["customerId"], form["startDate"], form["onConflict"]
    is_repeated = on_conflict == "add" and not form["repeat"] and not dry_run
    if is_repeated and await programs.is_assigned(ctx, program_id, customer_id, start_date):
        raise Conflict(
            "This client already has workouts of this program on some of these days, so nothing was scheduled. "
            "Confirm below to schedule them again.",
            code="PROGRAM_ALREADY_ASSIGNED",
        )
    assignment = await assignments.assign(
        ctx, program_id, customer_id, start_date, on_conflict=on_conflict, dry_run=dry_run
    )
    conflicts = assignment["conflicts"]
    summary = f"{quantity(assignment['blocks'], 'workout')} scheduled{describe_untouched(conflicts, on_conflict)}"
    taken = describe_taken_days(conflicts, on_conflict)
    return Outcome(None, summary, week_path(customer_id, start_date), taken=taken, customer_id=customer_id)


@pages.post("/{programId}/archive", access=coach(PROGRAMS.EDIT), on=program_page, idempotent=True)
async def archive_program(ctx: Context, program_id: ObjectId) -> Redirect:
    """Archive a program."""
    program = await programs.set_archived(ctx, program_id, archived=True)
    return Redirect(f"/app/programs/{program_id}", f"{program['name']} archived.")


@pages.post("/{programId}/restore", access=coach(PROGRAMS.EDIT), on=program_page, idempotent=True)
async def restore_program(ctx: Context, program_id: ObjectId) -> Redirect:
    """Restore an archived program."""
    program = await programs.set_archived(ctx, program_id, archived=False)
    return Redirect(f"/app/programs/{program_id}", f"{program['name']} restored.")


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
        pages=_program,
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


@_program.post("/blocks", access=coach(PROGRAMS.EDIT), form=input_of(_NewWorkout, NewWorkoutForm)(), on=program_page)
async def add_program_workout(ctx: Context, program_id: ObjectId, form: _NewWorkout) -> Redirect:
    """Add an empty workout or a rest day to a program."""
    program_path = f"/app/programs/{program_id}"
    block, remarks = await create_with_text(ctx, ProgramPlan(program_id), form)
    if form["isRest"]:
        return Redirect(program_path, f"Day {form['day']} is a rest day.")
    if block["items"]:
        return Redirect(program_path, f"{block['name']} added.{remarks}")
    return Redirect(f"{program_path}/blocks/{block['_id']}", f"{block['name']} added. Add its exercises here.")


@declare_operation(_program, "/copy-days", access=coach(PROGRAMS.EDIT), form=_COPY_DAYS(), on=program_page)
async def copy_program_days(ctx: Context, program_id: ObjectId, form: _CopyDays, *, dry_run: bool) -> Outcome:
    """Copy days of a program, once or several times, with a progression."""
    request = to_copy_request(form["startDay"], form["endDay"], form["targetDay"], form)
    result = await schedule.copy_days(ctx, ProgramPlan(program_id), request, dry_run=dry_run)
    return describe_copy(result, form["onConflict"], f"/app/programs/{program_id}")


@_program.post("/duplicate", access=coach(PROGRAMS.CREATE), on=program_page)
async def duplicate_program(ctx: Context, program_id: ObjectId) -> Redirect:
    """Create a copy of a program with its workouts."""
    copy = await programs.duplicate(ctx, program_id)
    return Redirect(f"/app/programs/{copy['_id']}", f"{copy['name']} created.")


@_program.get("/edit", access=coach(PROGRAMS.EDIT), template="library/edit_program.html")
async def edit_program_page(ctx: Context, program_id: ObjectId) -> dict[str, Any]:
    """The form to change a program's details."""
    program = await programs.get(ctx, program_id)
    return {"program": program, "version": program["version"]}


@_program.post("/edit", access=coach(PROGRAMS.EDIT), form=_PROGRAM_FORM, on=edit_program_page)
async def update_program(ctx: Context, program_id: ObjectId, form: ProgramChange) -> Redirect:
    """Change a program's name, description and tags."""
    await programs.update(ctx, program_id, form)
    return Redirect(f"/app/programs/{program_id}", "Changes saved.")


@_program.confirm("/delete", access=coach(PROGRAMS.DELETE), template="library/delete_program.html", deletes=True)
async def delete_program(ctx: Context, program_id: ObjectId) -> ConfirmedAction:
    """Delete a program and its workouts."""
    program, blocks = await gather_reads(
        ctx, programs.require(ctx, program_id), workouts.list_blocks(ctx, ProgramPlan(program_id), 1, LAST_DAY)
    )
    item_count = sum(len(block["items"]) for block in blocks)
    shown = {"program": program, "workout_count": len(blocks), "item_count": item_count}
    done = Redirect(pages.prefix, f"{program['name']} deleted.")
    return ConfirmedAction(shown, partial(programs.delete, ctx, program_id), done)
