"""Programs: the list, and one program with its workouts and its assignment to clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import Conflict
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date, Integer
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import listing
from coaching_service.training.assignments import service as assignments
from coaching_service.training.assignments import sync
from coaching_service.training.assignments.models import ProgramAssignmentResult
from coaching_service.training.assignments.sync_models import RunningAssignment
from coaching_service.training.programs import service as programs
from coaching_service.training.programs.models import LAST_DAY, ProgramInput
from coaching_service.training.programs.schemas import NewProgram
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.schedule.models import OnConflict
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.descriptions import ItemDescription, describe_item
from coaching_service.training.workouts.items.totals import planned_exercise_ids
from coaching_service.web.formatting import document_options, name_options, quantity
from coaching_service.web.pages import Pages, Redirect, Render
from coaching_service.web.search_fields import Keywords, Search
from coaching_service.web.urls import list_url
from coaching_service.web.views.schedule_forms import ConflictChoice, render_summary
from coaching_service.web.views.taken_days import describe_taken_days, describe_untouched
from coaching_service.web.views.workout.item_texts import ItemsText, create_from_program_text, list_template_names

pages = Pages("/app/programs")
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
    startDate: Annotated[str, Date()]
    onConflict: ConflictChoice
    repeat: Annotated[bool, Default(False)]


@pages.get("", access=coach(PROGRAMS.VIEW), query=_Search, template="library/programs.html")
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
    _, remarks = await create_from_program_text(ctx, plan, text, confirmed=form["confirmed"])
    return Redirect(f"/app/programs/{program['_id']}", f"{program['name']} created.{remarks}")


@pages.get("/{programId}", access=coach(PROGRAMS.VIEW), query=_ProgramQuery, template="library/program.html")
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


@pages.post("/{programId}/assign", access=coach(CUSTOMERS.EDIT), form=_Assignment, on=program_page)
async def assign_program(ctx: Context, program_id: ObjectId, form: _Assignment) -> Redirect:
    """Schedule every workout of a program on a client's calendar."""
    customer_id, start_date, on_conflict = form["customerId"], form["startDate"], form["onConflict"]
    is_repeated = on_conflict == "add" and not form["repeat"]
    if is_repeated and await programs.is_assigned(ctx, program_id, customer_id, start_date):
        raise Conflict(
            "This client already has workouts of this program on some of these days, so nothing was scheduled. "
            "Confirm below to schedule them again.",
            code="PROGRAM_ALREADY_ASSIGNED",
        )
    assignment = await assignments.assign(ctx, program_id, customer_id, start_date, on_conflict=on_conflict)
    return Redirect(
        f"/app/customers/{customer_id}?week={start_date}",
        f"{_describe_assignment(assignment, on_conflict)}.",
        customer_id=customer_id,
    )


@pages.post(
    "/{programId}/assign/preview",
    access=coach(CUSTOMERS.EDIT),
    form=_Assignment,
    on=program_page,
    preview_of=assign_program,
)
async def preview_assignment(ctx: Context, program_id: ObjectId, form: _Assignment) -> Render:
    """Show what assigning a program would do."""
    on_conflict = form["onConflict"]
    assignment = await assignments.assign(
        ctx, program_id, form["customerId"], form["startDate"], on_conflict=on_conflict, dry_run=True
    )
    summary = _describe_assignment(assignment, on_conflict)
    taken = describe_taken_days(assignment["conflicts"], on_conflict)
    return render_summary(assign_program.__name__, summary, taken)


def _describe_assignment(assignment: ProgramAssignmentResult, on_conflict: OnConflict) -> str:
    """Describe what is scheduled: `3 workouts scheduled`, with the days left out."""
    untouched = describe_untouched(assignment["conflicts"], on_conflict)
    return f"{quantity(assignment['blocks'], 'workout')} scheduled{untouched}"


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
