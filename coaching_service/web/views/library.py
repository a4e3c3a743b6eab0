"""The lists of exercises and of programs, and a program: what is in it, and assigning it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, EXERCISES, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Identifier, Input, Integer
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.schemas import MINE, PUBLIC, TYPES
from coaching_service.people.customers import service as customers
from coaching_service.training.programs import service as programs
from coaching_service.training.programs.schemas import LAST_DAY, NewProgram
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.workouts import service as workouts
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.search_fields import Keywords
from coaching_service.web.views.item_descriptions import describe_item

pages = Pages("/app")
PAGE = 24
_MAX_CLIENTS = 50
_TWICE = (
    "This client has workouts of this program on some of these days already, so nothing was planned. "
    "Tick that you mean it, and assign it again."
)


class _Search(Input):
    keywords = Keywords()
    type = Choice(MINE, PUBLIC, *TYPES, load_default=None, allow_none=True)
    page = Integer(minimum=1, load_default=1)


class _Programs(Input):
    keywords = Keywords()
    archived = fields.Boolean(load_default=False)
    page = Integer(minimum=1, load_default=1)


class _Whom(Input):
    client = Keywords()


class _Assign(Input):
    customerId = Identifier(required=True)
    startDate = Date(required=True)
    again = fields.Boolean(load_default=False)


def _address(path: str, query: dict[str, Any]) -> Any:
    def address(**changed: Any) -> str:
        kept = {name: value for name, value in (query | changed).items() if value and (name, value) != ("page", 1)}
        return path + (f"?{urlencode(kept)}" if kept else "")

    return address


@pages.get("/exercises", access=coach(EXERCISES.VIEW), query=_Search(), template="library/exercises.html")
async def exercises_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The exercises this company can use."""
    page = await exercises.page(
        ctx, page=query["page"], size=PAGE, keywords=query["keywords"], kind=query["type"] or None
    )
    kinds = [("", "All"), (MINE, "Our own"), (PUBLIC, "Shared"), *((kind, kind.capitalize()) for kind in TYPES)]
    return {"page": page, "query": query, "kinds": kinds, "address": _address("/app/exercises", query)}


@pages.get("/programs", access=coach(PROGRAMS.VIEW), query=_Programs(), template="library/programs.html")
async def programs_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The programs, by name."""
    page = await programs.page(
        ctx, archived=query["archived"], page=query["page"], size=PAGE, keywords=query["keywords"]
    )
    return {"page": page, "query": query, "address": _address("/app/programs", query)}


@pages.post("/programs", access=coach(PROGRAMS.CREATE), form=NewProgram(), on=programs_page)
async def new_program(ctx: Context, form: dict[str, Any]) -> Redirect:
    """A new program without workouts."""
    program = await programs.create(ctx, form)
    return Redirect(f"/app/programs/{program['_id']}", f"{program['name']} is made.")


@pages.get("/programs/{programId}", access=coach(PROGRAMS.VIEW), query=_Whom(), template="library/program.html")
async def program_page(ctx: Context, program_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """A program, week by week, and whom to assign it to."""
    program, blocks, clients = await gather_reads(
        ctx,
        programs.read(ctx, program_id),
        workouts.calendar(ctx, ProgramPlan(program_id), 1, LAST_DAY),
        customers.list_customers(ctx, archived=False, page=1, size=_MAX_CLIENTS, contains=query["client"]),
    )
    weeks: dict[int, list[Document]] = {}
    for block in blocks:
        block["descriptions"] = [describe_item(item, ctx.caller.company.load_unit) for item in block["items"]]
        weeks.setdefault((block["day"] - 1) // 7 + 1, []).append(block)
    people = [(str(each["_id"]), f"{each['name']} {each['surname'] or ''}".rstrip()) for each in clients["docs"]]
    return {
        "program": program,
        "weeks": weeks,
        "next": min(blocks[-1]["day"] + 1 if blocks else 1, LAST_DAY),
        "clients": people,
        "found": clients["totalDocs"],
        "client": query["client"],
        "today": ctx.caller.today(),
    }


@pages.post("/programs/{programId}/assign", access=coach(CUSTOMERS.EDIT), form=_Assign(), on=program_page)
async def assign_program(ctx: Context, program_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Put every workout of a program onto a client's calendar."""
    to = (program_id, form["customerId"], form["startDate"])
    if not form["again"] and await programs.is_assigned(ctx, *to):
        raise Conflict(_TWICE)
    count = await programs.assign(ctx, *to)
    notice = f"{quantity(count, 'workout')} {'is' if count == 1 else 'are'} planned."
    week = f"/app/customers/{form['customerId']}?week={form['startDate']}"
    return Redirect(week, notice, customer_id=form["customerId"])


@pages.post("/programs/{programId}/archive", access=coach(PROGRAMS.EDIT), on=program_page, idempotent=True)
async def archive_program(ctx: Context, program_id: ObjectId) -> Redirect:
    """Archive a program; repeating is harmless."""
    program = await programs.set_archived(ctx, program_id, archived=True)
    return Redirect(f"/app/programs/{program_id}", f"{program['name']} is archived.")


@pages.post("/programs/{programId}/restore", access=coach(PROGRAMS.EDIT), on=program_page, idempotent=True)
async def restore_program(ctx: Context, program_id: ObjectId) -> Redirect:
    """Bring a program back; repeating is harmless."""
    program = await programs.set_archived(ctx, program_id, archived=False)
    return Redirect(f"/app/programs/{program_id}", f"{program['name']} is active again.")
