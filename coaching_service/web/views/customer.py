"""A client's week: the calendar with blocks and items; adding blocks and moving items."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import BadRequest
from coaching_service.core.ids import ObjectId
from coaching_service.core.links import file_url
from coaching_service.core.validation import Date, Identifier, Input, Integer, Text
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import item_service
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.owners import ClientCalendar
from coaching_service.training.workouts.schemas import NewWorkoutBlock
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.items import described

pages = Pages("/app/customers/{customerId}")
_ONE = ("_id", "name", "surname", "timezone", "customerRoleData", "profilePhoto")
_FIRST_DAY = "1900-01-01"


class Week(Input):
    """The week that holds this day; without one, the present week."""

    week = Date(load_default=None)


class _Move(Input):
    witemId = Identifier(required=True)
    source = Identifier(required=True)
    target = Identifier(required=True)
    place = Integer(minimum=1, maximum=1_000, load_default=1_000)


class NamedUnlessRest(Input):
    """What is planned for a day: a workout, or rest."""

    name = Text(allow_blank=True, load_default="")

    @validates_schema
    def named_unless_rest(self, data: Mapping[str, Any], **_: Any) -> None:
        """A workout has a name; a day of rest needs none."""
        if not data["name"] and not data["isRest"]:
            raise ValidationError("should not be empty", "name")


class _NewBlock(NamedUnlessRest, NewWorkoutBlock):
    """A workout of a client's, or a day of rest."""


async def head(ctx: Context, customer_id: ObjectId) -> Document:
    """What the top of each of a client's pages shows. Raises NotFound, Forbidden."""
    customer = await customers.get_visible(ctx, customer_id, _ONE)
    photo = customer.pop("profilePhoto", None) or {}
    return customer | {"portrait": file_url(ctx.services, photo.get("thumbnailId"))}


async def require_likely(ctx: Context, customer_id: ObjectId, name: str, day: str) -> None:
    """Raise BadRequest for the field `name` unless a day is one of this time, or of the last century: no slip."""
    customer = await head(ctx, customer_id)
    tomorrow = str(ctx.caller.today(customer["timezone"]) + timedelta(days=1))
    if not _FIRST_DAY <= day <= tomorrow:
        raise BadRequest([f"{name} must be a day from {_FIRST_DAY[:4]} on that is not after tomorrow"])


@pages.get("", access=coach(CUSTOMERS.VIEW), query=Week(), template="customer/week.html")
async def week_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """A week of the client's calendar."""
    customer = await head(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    days = days_of_week(date.fromisoformat(query["week"]) if query["week"] else today)
    blocks = await workouts.calendar(ctx, ClientCalendar(customer_id), str(days[0]), str(days[-1]))
    unit = ctx.caller.company.load_unit
    for block in blocks:
        block["shown"] = [described(item, unit) for item in block["items"]]
    return {
        "customer": customer,
        "days": [(day, [block for block in blocks if block["date"] == str(day)]) for day in days],
        "blocks": [
            (str(b["_id"]), f"{date.fromisoformat(b['date']):%a}: {b['name']}") for b in blocks if not b["isRest"]
        ],
        "today": today,
        "monday": days[0],
        "before": _ahead(days[0], -7),
        "after": _ahead(days[0], 7),
    }


def days_of_week(day: date) -> list[date]:
    """The days of the week that holds a day, from Monday on."""
    monday = day - timedelta(days=day.weekday())
    return [each for ahead in range(7) if (each := _ahead(monday, ahead))]


def _ahead(day: date, days: int) -> date | None:
    """So many days later, or None where the calendar ends: in the years 1 and 9999."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


def week_of(customer_id: ObjectId, day: str) -> str:
    """The address of the week that holds a day."""
    return f"/app/customers/{customer_id}?week={day}"


@pages.post("/blocks", access=coach(CUSTOMERS.EDIT), form=_NewBlock(), on=week_page)
async def add_block(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Schedule a workout."""
    block = await workouts.create(ctx, ClientCalendar(customer_id), form | {"name": form["name"] or "Rest"})
    if form["isRest"]:
        return Redirect(week_of(customer_id, form["date"]), "A day of rest is planned.")
    return Redirect(
        f"/app/customers/{customer_id}/blocks/{block['_id']}", f"{block['name']} is planned. Now what is in it?"
    )


@pages.post("/move", access=coach(CUSTOMERS.EDIT), form=_Move(), on=week_page)
async def move_item(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Move an item to a place in this or another workout."""
    block = await item_service.move_item(
        ctx,
        ClientCalendar(customer_id),
        {"wblockId": form["source"], "witemId": form["witemId"]},
        {"wblockId": form["target"], "index": form["place"] - 1},
    )
    return Redirect(week_of(customer_id, block["date"]), f"Moved to {block['name']}.")
