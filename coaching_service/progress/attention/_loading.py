"""Reading what the figures and reasons of clients are computed from, in a few queries for any number of clients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.dates import local_date
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.models import AttentionSettings
from coaching_service.people.availability import service as availability
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers.models import Attention, DatedCount, Reason, ReasonType
from coaching_service.progress.attention import store
from coaching_service.progress.attention.models import DismissalFields
from coaching_service.progress.attention.reasons import OVERDUE_DAYS, RECORD_DAYS, ClientState
from coaching_service.progress.compliance import service as compliance
from coaching_service.progress.compliance.models import ClientFigures
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.progress.notes import service as notes
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.assignments import service as assignments
from coaching_service.training.workouts.reports import blocks as queries
from coaching_service.training.workouts.reports.models import LatestSessions

# Absences that ended longer ago have no effect on reasons.
_ABSENCE_DAYS = 366


class _StoredClient(LatestSessions, total=False):
    """What is stored with a client: `attention` once it has been computed; the latest sessions are looked up."""

    _id: ObjectId
    createdAt: datetime
    attention: Attention
    erasureRequestedAt: datetime
    isArchived: bool


class _DailyCount(TypedDict):
    customerId: ObjectId
    date: str
    count: int


@dataclass(frozen=True)
class LoadedClient:
    """The figures of a client, what the reasons are found from, the dismissed reasons, and the stored ones.

    An archived client has no reasons.
    """

    figures: ClientFigures
    state: ClientState
    dismissals: Mapping[ReasonType, DismissalFields]
    stored_reasons: Sequence[Reason]
    is_archived: bool


async def load_clients(
    ctx: Context, timezones: Mapping[ObjectId, str | None], settings: AttentionSettings
) -> dict[ObjectId, LoadedClient]:
    """Return the existing ones of these clients, whose time zones are given (None: the company's)."""
    today_of = {client: ctx.caller.today(timezone) for client, timezone in timezones.items()}
    if not today_of:
        return {}
    ids = list(today_of)
    earliest, latest = min(today_of.values()), max(today_of.values())
    (
        stored,
        days,
        forms,
        records,
        program_ends,
        health_notes,
        unread,
        to_review,
        absences,
        dismissals,
    ) = await gather_reads(
        ctx,
        derived_figures.read_states(ctx, ids, *queries.last_session_stages(ctx, today_of)),
        compliance.get_days(ctx, today_of, settings["horizonDays"]),
        queries.count_pending_forms(ctx, ids, str(earliest - timedelta(days=OVERDUE_DAYS)), str(latest)),
        personal_records.count_by_date(ctx, ids, str(earliest - timedelta(days=RECORD_DAYS)), str(latest)),
        assignments.find_last_dates(ctx, ids),
        notes.count_health_notes(ctx, ids),
        conversation.count_unread(ctx, ids),
        form_responses.count_not_reviewed(ctx, ids),
        availability.get_absences(ctx, ids, str(earliest - timedelta(days=_ABSENCE_DAYS)), None),
        store.dismissals.find(ctx, {"customerId": {"$in": ids}}),
    )
    forms_of, records_of = _by_date(forms), _by_date(records)
    health_notes_of, unread_of, to_review_of = _by_client(health_notes), _by_client(unread), _by_client(to_review)
    dismissals_of: dict[ObjectId, dict[ReasonType, DismissalFields]] = defaultdict(dict)
    for dismissal in dismissals:
        dismissals_of[dismissal["customerId"]][dismissal["reason"]] = dismissal
    clients: dict[ObjectId, LoadedClient] = {}
    existing: list[_StoredClient] = stored
    for document in existing:
        client = document["_id"]
        timezone, today = timezones[client] or ctx.caller.company.timezone, today_of[client]
        last_trained = queries.find_last_trained(document, timezone)
        figures: ClientFigures = {
            **compliance.compute_rates(days[client], today),
            "lastTrainedDate": last_trained,
        }
        state = ClientState(
            today=today,
            timezone=timezone,
            created=local_date(document["createdAt"], timezone),
            days=days[client],
            last_trained=date.fromisoformat(last_trained) if last_trained else None,
            compliance=figures["complianceRate30d"],
            pending_forms=forms_of[client],
            records=records_of[client],
            health_notes=health_notes_of.get(client),
            erasure_requested=document.get("erasureRequestedAt"),
            unread=unread_of.get(client),
            to_review=to_review_of.get(client),
            program_end=date.fromisoformat(program_ends[client]) if client in program_ends else None,
            previous=_previous(document),
            absences=absences[client],
        )
        reasons = document["attention"]["reasons"] if "attention" in document else []
        clients[client] = LoadedClient(figures, state, dismissals_of[client], reasons, document["isArchived"])
    return clients


def _by_date(counts: Iterable[_DailyCount]) -> Mapping[ObjectId, Mapping[date, int]]:
    by_client: dict[ObjectId, dict[date, int]] = defaultdict(lambda: defaultdict(int))
    for entry in counts:
        by_client[entry["customerId"]][date.fromisoformat(entry["date"])] += entry["count"]
    return by_client


def _by_client(counts: Iterable[DatedCount]) -> dict[ObjectId, DatedCount]:
    return {entry["_id"]: entry for entry in counts}


def _previous(document: _StoredClient) -> dict[ReasonType, datetime]:
    """Return the `since` of the reasons that were found the last time, dismissed ones included."""
    attention = document.get("attention")
    reasons = [*attention["reasons"], *attention["dismissed"]] if attention else []
    return {reason["type"]: reason["since"] for reason in reasons}
