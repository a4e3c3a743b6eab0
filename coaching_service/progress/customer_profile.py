"""Reading one client, for assistants."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.dates import local_date
from coaching_service.core.external_identity import ExternalId, IdentityResult
from coaching_service.core.fields import Description, output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Answer, CustomerArgument, Tools, format_figure, typed, typed_line
from coaching_service.core.validation import Choice
from coaching_service.people import availability, team
from coaching_service.people.account import LOAD_UNITS, convert_stored_load
from coaching_service.people.availability import Availability, write_period
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Consent, CustomerProfile
from coaching_service.people.customers.tools import CustomerText, answer_customer, describe_customer, get_today
from coaching_service.progress import compliance, notes, personal_records
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.tools import describe_message
from coaching_service.progress.notes import Note, plain_text
from coaching_service.training.assignments import service as assignments

# --- One client as it is returned -------------------------------------------------------------------------------------


class CustomerNow(CustomerProfile):
    """A client with figures as of today."""

    availability: Annotated[
        Availability | None,
        Description("The period in which the client cannot train as planned, or the next one; null without one."),
    ]
    consent: Annotated[Consent, Description("Whether the client allows assistants and applications.")]


CUSTOMER_NOW = output_of(CustomerNow, IdentityResult, with_private=("companyId",))


routes = Routes("/coach/customers", tag="Customers")


@routes.get(
    "/{customerId}", access=coach(CUSTOMERS.VIEW), returns=CUSTOMER_NOW, selects_fields=True, operation_id="getCustomer"
)
async def get(ctx: Context, customer_id: ObjectId) -> CustomerNow:
    """Read a client.

    The compliance rates are computed as of the client's today; the list has stored ones, at most 10 seconds older.
    """
    customer = await customers.get(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    figures, period, consent = await gather_reads(
        ctx,
        compliance.compute_figures(ctx, customer_id, today, customer["timezone"] or ctx.caller.company.timezone),
        availability.find_present_or_next(ctx, customer_id, today),
        customers.get_consent(ctx, customer_id),
    )
    customer["customerRoleData"] = {**customer["customerRoleData"], **figures}
    return {**customer, "availability": period, "consent": consent}


tools = Tools()
_RECORD_DAYS = 90
_PINNED, _HEALTH, _OTHERS, _RECORDS, _MESSAGES = 5, 5, 3, 8, 3
_LONGEST = 240


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
    client, coaches = await gather_reads(ctx, get(ctx, customer_id), team.list_coaches(ctx))
    answer = describe_customer(ctx, client, {coach["_id"]: coach["name"] for coach in coaches})
    if client["availability"] is not None:
        answer.append(f"Availability: {write_period(client['availability'])}")
    if detail != "brief":
        return answer_customer(ctx, client, answer)
    today = get_today(ctx, client)
    first = str(date.fromisoformat(today) - timedelta(days=_RECORD_DAYS))
    programs, noted, records, messages = await gather_reads(
        ctx,
        assignments.list_programs(ctx, customer_id),
        notes.list_of_client(ctx, customer_id),
        personal_records.list_achieved(ctx, customer_id, first, today),
        conversation.list_messages(ctx, customer_id, {"limit": _MESSAGES, "after": None}),
    )
    pinned = [note for note in noted if note["isPinned"]][:_PINNED]
    health = [note for note in noted if note["isHealth"] and note not in pinned][:_HEALTH]
    others = [note for note in noted if not note["isHealth"] and not note["isPinned"]][:_OTHERS]

    def describe_note(note: Note) -> str:
        day = local_date(note["createdAt"], client["timezone"] or ctx.caller.company.timezone)
        return f"{day}{' health' * note['isHealth']}: {typed_line(plain_text(note['content']), _LONGEST)}"

    achieved = []
    for record in sorted(records, key=lambda record: record["date"], reverse=True)[:_RECORDS]:
        value, unit = record["value"], record["unit"]
        if unit in LOAD_UNITS:
            value, unit = convert_stored_load(value, unit, ctx.caller.load_unit), ctx.caller.load_unit
        shown = f"{format_figure(value)} {'' if unit == 'count' else unit}".rstrip()
        achieved.append(f"{record['date']} {typed(record['exerciseName'])} {record['type']} {shown}")
    sections: dict[str, list[str]] = {
        "Program": [
            f"{typed(each['name'])} [{each['programId']}] {each['status']}, {each['startDate']} to {each['endDate']}, "
            f"{each['completedBlocks']} of {each['blocks']} workouts completed"
            for each in programs
            if each["status"] != "ended"
        ],
        "Goals and pinned notes": [describe_note(note) for note in pinned],
        "Health": [describe_note(note) for note in health],
        "Other notes": [describe_note(note) for note in others],
        f"Records of {_RECORD_DAYS} days, without imported and first results": achieved,
        "Last messages": [describe_message(each, _LONGEST) for each in messages["docs"]],
    }
    for title, lines in sections.items():
        answer += [f"{title}:", *(f"  {each}" for each in lines)] if lines else [f"{title}: none"]
    return answer_customer(ctx, client, answer)


@routes.get(
    "/by-external-id/{externalId}",
    access=coach(CUSTOMERS.VIEW),
    path_fields={"externalId": ExternalId()},
    returns=CUSTOMER_NOW,
    selects_fields=True,
)
async def get_customer_by_external_id(ctx: Context, external_id: str) -> CustomerNow:
    """Read the client with an external identifier."""
    return await get(ctx, await customers.get_id_by_external_id(ctx, external_id))
