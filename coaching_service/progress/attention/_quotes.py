"""What has caused the reasons of the clients in a list, in a few words: read with the list, in a few queries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.dates import local_date
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability import service as availability
from coaching_service.people.customers.models import Customer, ReasonType
from coaching_service.progress.attention.reasons import ENDING_DAYS, OVERDUE_DAYS, RECORD_DAYS
from coaching_service.progress.compliance import service as compliance
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.form_requests import service as form_requests
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.progress.notes import service as notes
from coaching_service.progress.personal_records import service as personal_records

MAX_QUOTE = 120
Quotes = Mapping[tuple[ObjectId, ReasonType], str]
_Reader = Callable[[Context, Sequence[Customer]], Awaitable[Mapping[ObjectId, str]]]


async def quote_causes(ctx: Context, clients: Sequence[Customer]) -> Quotes:
    """Return what has caused the reasons of clients, by client and reason: at most 120 characters each.

    The newest note, message, answer or record; the workouts that were missed; forms and figures. The caller may see
    these reasons.
    """
    with_reason: dict[ReasonType, list[Customer]] = {}
    for client in clients:
        for reason in client["attention"]["reasons"] if "attention" in client else ():
            with_reason.setdefault(reason["type"], []).append(client)
    readers = {each: reader for each, reader in _READERS.items() if each in with_reason}
    read = await gather_reads(ctx, *(reader(ctx, with_reason[each]) for each, reader in readers.items()))
    quotes = {
        (client, reason): shorten(text)
        for reason, texts in zip(readers, read, strict=True)
        for client, text in texts.items()
    }
    for kind, describe in _FIGURES.items():
        for client in with_reason.get(kind, ()):
            if text := describe(ctx, client):
                quotes[client["_id"], kind] = text
    return quotes


def shorten(text: str) -> str:
    """Return a text in one line of at most 120 characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTE else f"{line[: MAX_QUOTE - 1]}…"


def _of(read: Callable[[Context, Sequence[ObjectId]], Awaitable[Mapping[ObjectId, str]]]) -> _Reader:
    return lambda ctx, clients: read(ctx, _ids(clients))


def _ids(clients: Sequence[Customer]) -> list[ObjectId]:
    return [client["_id"] for client in clients]


async def _read_missed(ctx: Context, clients: Sequence[Customer]) -> Mapping[ObjectId, str]:
    return await compliance.describe_missed(ctx, _today_of(ctx, clients))


async def _read_absences(ctx: Context, clients: Sequence[Customer]) -> Mapping[ObjectId, str]:
    return await availability.describe_absences(ctx, _today_of(ctx, clients))


def _today_of(ctx: Context, clients: Sequence[Customer]) -> dict[ObjectId, date]:
    return {client["_id"]: ctx.caller.today(client["timezone"]) for client in clients}


async def _read_records(ctx: Context, clients: Sequence[Customer]) -> Mapping[ObjectId, str]:
    first = min(_today_of(ctx, clients).values()) - timedelta(days=RECORD_DAYS)
    return await personal_records.describe_newest(ctx, _ids(clients), str(first))


_READERS: Mapping[ReasonType, _Reader] = {
    "health_note": _of(notes.find_newest_health_texts),
    "unread_message": _of(conversation.find_newest_unread_texts),
    "check_in_to_review": _of(form_responses.find_newest_unreviewed_texts),
    "check_in_overdue": _of(partial(form_requests.describe_overdue, days=OVERDUE_DAYS)),
    "missed_workout": _read_missed,
    "personal_record": _read_records,
    "returning": _read_absences,
    "unavailable": _read_absences,
}


def _describe_inactive(_: Context, client: Customer) -> str:
    last = client["customerRoleData"]["lastTrainedDate"]
    return f"Last session on {last}" if last else "No session yet"


def _describe_compliance(_: Context, client: Customer) -> str:
    rate = client["customerRoleData"]["complianceRate30d"]
    return "" if rate is None else f"{rate:.4g} % of the workout days of the last 30 days"


def _describe_scheduled(ctx: Context, client: Customer) -> str:
    last = client["customerRoleData"]["lastWorkoutDate"]
    if last and last > str(ctx.caller.today(client.get("timezone"))):
        return f"Nothing in the coming days; later workouts until {last}"
    return f"Last scheduled on {last}" if last else "Nothing was ever scheduled"


def _describe_ending(ctx: Context, client: Customer) -> str:
    [since] = [each["since"] for each in client["attention"]["reasons"] if each["type"] == "program_ending"]
    begun = local_date(since, client["timezone"] or ctx.caller.company.timezone)
    return f"Ends on {begun + timedelta(days=ENDING_DAYS)}"


_FIGURES: Mapping[ReasonType, Callable[[Context, Customer], str]] = {
    "inactive": _describe_inactive,
    "low_compliance": _describe_compliance,
    "nothing_scheduled": _describe_scheduled,
    "program_ending": _describe_ending,
}
