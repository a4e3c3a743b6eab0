"""Reading one client, for assistants."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument
from coaching_service.core.mcp.results import Answer
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Choice
from coaching_service.people.availability.texts import write_period
from coaching_service.people.customers.tools import CustomerText, answer_customer, describe_customer
from coaching_service.people.team import service as team
from coaching_service.progress.customer_profile import service
from coaching_service.progress.customer_profile._brief import write_brief

tools = Tools()


class ReadCustomer(CustomerArgument):
    """The client, and how much to read."""

    detail = Choice(
        *("contact", "brief"),
        load_default="contact",
        metadata={"description": "brief: also program, goals, health, notes, records, messages, on one page."},
    )


@tools.tool("Read a client", access=coach(CUSTOMERS.VIEW), takes=ReadCustomer(), returns=CustomerText)
async def get_customer(ctx: Context, customer_id: ObjectId, detail: str) -> Answer:
    """Read one client: contact details, groups, trainer, time zone, local date, percent of workouts completed, the
    latest session, the last date anything is scheduled on, and absences."""
    customer, coaches = await gather_reads(ctx, service.get(ctx, customer_id), team.list_coaches(ctx))
    lines = describe_customer(ctx, customer, {coach["_id"]: coach["name"] for coach in coaches})
    if customer["availability"] is not None:
        lines.append(f"Availability: {write_period(customer['availability'])}")
    if detail == "brief":
        lines += await write_brief(ctx, customer)
    return answer_customer(ctx, customer, lines)
