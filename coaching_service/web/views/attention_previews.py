"""What the reasons for which a client needs a coach are about: messages, answers, workouts, notes and records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from coaching_service.core.auth.permissions import CUSTOMERS, FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import ReasonType
from coaching_service.progress.attention.reasons import MISSED_DAYS, RECORD_DAYS
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import Message
from coaching_service.progress.form_requests import service as form_requests
from coaching_service.progress.form_requests.models import FormRequest
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.progress.form_responses.models import ReceivedResponse
from coaching_service.progress.notes import service as notes
from coaching_service.progress.notes.models import Note
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.workouts.reports import calendar_days
from coaching_service.training.workouts.reports.calendar_days import CalendarBlock
from coaching_service.web.views.customer_messages import is_unread

_MESSAGES, _OTHERS = 20, 5
_Loader = Callable[[Context, ObjectId, date], Awaitable[Sequence[Any]]]


def has_preview(ctx: Context, reason_type: ReasonType) -> bool:
    """Return whether there is a preview of a reason that the coach may see."""
    return reason_type in _LOADERS and _LOADERS[reason_type][0] in ctx.caller.permissions


async def load_previews(
    ctx: Context, customer_id: ObjectId, reasons: Collection[ReasonType], today: date
) -> dict[ReasonType, Sequence[Any]]:
    """Return what each of a client's `reasons` that has a preview is about. `today` is the client's."""
    shown = [reason for reason in reasons if has_preview(ctx, reason)]
    loaded = await gather_reads(ctx, *(_LOADERS[reason][1](ctx, customer_id, today) for reason in shown))
    return dict(zip(shown, loaded, strict=True))


async def _load_unread(ctx: Context, customer_id: ObjectId, _: date) -> list[Message]:
    """Return the messages of the client that are not read yet, oldest first."""
    page = await conversation.list_messages(ctx, customer_id, limit=_MESSAGES)
    return [message for message in page["docs"][::-1] if is_unread(message)]


async def _load_health_notes(ctx: Context, customer_id: ObjectId, _: date) -> list[Note]:
    return [note for note in await notes.list_notes(ctx, customer_id) if note["isHealth"]][:_OTHERS]


async def _load_responses(ctx: Context, customer_id: ObjectId, _: date) -> list[ReceivedResponse]:
    page = await form_responses.list_received(ctx, customer_id=customer_id, reviewed=False, limit=_OTHERS)
    return page["docs"]


async def _load_overdue(ctx: Context, customer_id: ObjectId, _: date) -> list[FormRequest]:
    page = await form_requests.list_pending(ctx, customer_id=customer_id, overdue=True, limit=_OTHERS)
    return page["docs"]


async def _load_missed(ctx: Context, customer_id: ObjectId, today: date) -> list[CalendarBlock]:
    """Return the workouts of the days before today that were not done completely."""
    start, end = today - timedelta(days=MISSED_DAYS - 1), today - timedelta(days=1)
    days = await calendar_days.list_days(ctx, customer_id, start, end, today=today)
    missed = [block for day in days if day["absence"] is None for block in day["blocks"] if block["isWorkout"]]
    return [block for block in missed if block["status"] != "done"]


async def _load_records(ctx: Context, customer_id: ObjectId, today: date) -> list[PersonalRecord]:
    return await personal_records.list_achieved(
        ctx, customer_id, str(today - timedelta(days=RECORD_DAYS - 1)), str(today)
    )


# The reasons with a preview, each with the permission that its preview needs.
_LOADERS: Mapping[ReasonType, tuple[str, _Loader]] = {
    "health_note": (CUSTOMERS.VIEW, _load_health_notes),
    "unread_message": (CUSTOMERS.VIEW, _load_unread),
    "check_in_to_review": (FORMS.VIEW, _load_responses),
    "check_in_overdue": (FORMS.VIEW, _load_overdue),
    "missed_workout": (CUSTOMERS.VIEW, _load_missed),
    "personal_record": (CUSTOMERS.VIEW, _load_records),
}
