"""Whether a client did what was scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.dates import next_midnight
from coaching_service.core.errors import BadRequest
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.progress.compliance.figures import by_day, daily, percentage, share
from coaching_service.progress.logs.events import ItemLogged
from coaching_service.training.workouts import readings

USUAL_DAYS, MAX_RANGE = 30, 3_700
WINDOWS = {"complianceRate7d": 7, "complianceRate30d": 30, "complianceRate90d": 90}


async def between(ctx: Context, customer_id: ObjectId, first: str | None, last: str | None) -> Document:
    """What a client did of what was scheduled from `first` to `last`, day by day; without them the last 30 days.

    "Today" is the client's. Raises NotFound, Forbidden, BadRequest for more than ten years.
    """
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    today = ctx.caller.today(customer["timezone"])
    end = date.fromisoformat(last) if last else max(today, date.fromisoformat(first) if first else today)
    start = date.fromisoformat(first) if first else _days_up_to(end, USUAL_DAYS)
    if (end - start).days >= MAX_RANGE:
        raise BadRequest(f"from and to must be less than {MAX_RANGE} days apart")
    blocks_of = by_day(await readings.days_scheduled(ctx, [customer_id], str(start), str(end)))
    days = daily(blocks_of, start, end)
    scheduled, completed = (sum(day[name] for day in days) for name in ("isWorkoutDay", "isCompleted"))
    return {
        "customerId": customer_id,
        "totalWorkoutDays": scheduled,
        "completedWorkoutDays": completed,
        "workoutCompletionPercentage": share(completed, scheduled),
        "dailyCompliance": days,
    }


async def rates(ctx: Context, clients: Sequence[Document]) -> dict[ObjectId, Document]:
    """The compliance rates of clients (`_id`, `timezone`) for 7, 30 and 90 days up to their today.

    `complianceDate` is that day; None where there is no rate.
    """
    todays = {client["_id"]: ctx.caller.today(client["timezone"]) for client in clients}
    if not todays:
        return {}
    first, last = _days_up_to(min(todays.values()), max(WINDOWS.values())), max(todays.values())
    blocks = await readings.days_scheduled(ctx, list(todays), str(first), str(last))
    of_client: dict[ObjectId, list[Document]] = {}
    for block in blocks:
        of_client.setdefault(block["customerId"], []).append(block)
    return {client: _rates(of_client.get(client, []), today) for client, today in todays.items()}


def _days_up_to(end: date, days: int) -> date:
    """The first of so many days up to `end`; the calendar's first where it begins later."""
    return date.fromordinal(max(1, end.toordinal() - days + 1))


def _rates(blocks: list[Document], today: date) -> Document:
    blocks_of = by_day(blocks)
    found = {name: percentage(blocks_of, str(_days_up_to(today, days)), str(today)) for name, days in WINDOWS.items()}
    told = any(rate is not None for rate in found.values())
    return {**found, "complianceDate": str(today) if told else None}


async def keep(ctx: Context, clients: Sequence[Document]) -> None:
    """Keep the rates of clients (`_id`, `timezone`) for the lists; they hold until the client's next midnight."""
    found = await rates(ctx, clients)
    zones = {client["_id"]: client["timezone"] or ctx.caller.company.timezone for client in clients}
    until = {client: next_midnight(ctx.caller.today(zone), zone) for client, zone in zones.items()}
    await derived_figures.store_figures(ctx, found, until)


async def update_stored_rates(ctx: Context, event: ItemLogged) -> None:
    """Update the rates stored with a client for the lists."""
    customer = await customers.get_visible(ctx, event.customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    await keep(ctx, [customer])
