"""The clients that need attention: found when their figures are renewed, listed, and dismissed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import groupby, islice
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

from marshmallow import fields

from coaching_service.core import mcp
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.declared import RECORDS, History, Index, Portable, Stored
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.dates import local_date, midnight
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import Default, Description, take
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, PartQuery
from coaching_service.core.mcp import Answer, Tools, typed
from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Choice, Date, Integer, ListOf, StringList
from coaching_service.people import account, availability
from coaching_service.people.account import AttentionSettings
from coaching_service.people.availability import Absences, Availability
from coaching_service.people.customers import bulk, derived_figures
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import RENEWAL, WEIGHTS, ReasonType
from coaching_service.people.file_links import file_url
from coaching_service.progress import compliance, form_responses, notes, personal_records, reminders
from coaching_service.progress.compliance import ClientFigures, DayCompliance
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.reminders import ClientDay
from coaching_service.training.assignments import service as assignments
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.reports.blocks import LatestSessions

_WEIGHTS = ", ".join(f"`{name}` {weight}" for name, weight in WEIGHTS.items())


MAX_INACTIVE_DAYS = 365


class AttentionQuery(PartQuery):
    """Filters of the attention list; they combine with AND."""

    reason: Annotated[
        list[ReasonType],
        Default([]),
        Description("Repeatable; clients with any of the reasons, all of whose reasons are listed."),
    ]
    assignedTo: NotRequired[
        Annotated[
            list[str],
            Description("Repeatable; any of the trainers; `none`: clients without a trainer."),
        ]
    ]
    groups: NotRequired[Annotated[list[str], Description("Repeatable; any of the groups.")]]
    inactiveDays: Annotated[
        int | None,
        Default(None),
        QueryInteger(minimum=1, maximum=MAX_INACTIVE_DAYS),
        Description("Only clients without a session in so many days; also those that need attention for nothing else."),
    ]


class DismissalFields(TypedDict):
    """Until when a reason is dismissed.

    Until the client's local date `until` (`YYYY-MM-DD`; None: no date), but no longer than until the newest occurrence
    of the reason is later than `since` (UTC), the newest when it was dismissed.
    """

    until: Annotated[str | None, Date()]
    since: datetime


class StoredDismissal(Stored, DismissalFields):
    """A reason that a coach has dismissed for the whole company; at most one of each client and reason."""

    customerId: ObjectId
    reason: ReasonType


class AttentionDismissal(TypedDict):
    """The reason to dismiss."""

    reason: Annotated[ReasonType, Description("The reason to dismiss.")]
    until: Annotated[
        str | None,
        Date(),
        Description(
            "The client's local date on which the reason counts again, if nothing new happens before; null: only when "
            "something new happens. A date that is not in the future ends an earlier dismissal."
        ),
    ]


class AttentionCustomer(TypedDict):
    """A client who needs attention."""

    _id: ObjectId
    name: str
    surname: str | None
    profilePhotoUrl: Annotated[str | None, fields.Url()]
    groups: list[str]
    assignedTo: Annotated[ObjectId | None, Description("The trainer of the client.")]
    lastTrainedDate: Annotated[str | None, Date(), Description("The date of the latest session with completed work.")]
    complianceRate7d: Annotated[
        float | None,
        fields.Float(
            metadata={
                "description": "Completed workout days of the last 7 days, in percent.",
                "minimum": 0,
                "maximum": 100,
            }
        ),
    ]


class AttentionReason(TypedDict):
    """Why a client needs attention."""

    type: Annotated[ReasonType, Description(f"The reason; it adds to the score: {_WEIGHTS} each, at most 60.")]
    since: Annotated[
        datetime,
        Description(
            "The time of the newest note, message or response; otherwise the beginning of a day of the client: for "
            "missed workouts and overdue check-ins the first that `count` includes."
        ),
    ]
    count: Annotated[int, Description("The number of occurrences; 1 for a state such as `inactive`.")]
    quote: Annotated[
        str | None,
        Description(
            "What has caused it, in at most 120 characters, such as the beginning of the newest note; null if there is "
            "nothing to quote, or the caller may not read it."
        ),
    ]


class AttentionEntry(TypedDict):
    """A client, and why the client needs attention."""

    customer: Annotated[AttentionCustomer, Description("The client.")]
    score: Annotated[int, Description("The sum of the weights of the reasons; 0 without one.")]
    reasons: Annotated[list[AttentionReason], Description("Most important first, without those that are dismissed.")]


# --- Dismissed reasons in the database --------------------------------------------------------------------------------


_dismissals = Documents[StoredDismissal](
    "attentionDismissals",
    (Index(("customerId", "reason"), unique=True),),
    client_field="customerId",
    history=History("attention_dismissal"),
    transfer=Portable(StoredDismissal, RECORDS, references={"customerId": "customers"}),
)


# --- The rules of attention: why a client needs a coach and how urgently, free of the database ------------------------
# `since` is the time at which a reason began. Of what the client sends or achieves it is the time of the newest; of
# missed workouts and overdue check-ins the first day that `count` includes. Low compliance and an empty schedule keep
# the `since` at which they were first found. A dismissed reason comes back when its newest occurrence is later: that
# is `since`, but for missed workouts the first day of the latest run of uncompleted workout days, and for overdue
# check-ins the day of the newest.


# The reasons whose `since` is the time of the newest of those that `count` includes.
DATED_BY_NEWEST = frozenset({"health_note", "unread_message", "check_in_to_review", "personal_record"})
MISSED_DAYS, MOST_COUNTED_MISSED = 7, 3

NEVER_SCHEDULED = "Nothing was ever scheduled"

OVERDUE_DAYS = 14
ENDING_DAYS = 7
RECORD_DAYS = 7
RETURNING_DAYS = 2
_MOST_IDLE_DAYS = 3_660  # that are looked at, for one on which the client was not absent


class DatedReason(NamedTuple):
    """A reason, and the time of its newest occurrence: once that is later, a dismissed reason comes back."""

    reason: customer_models.Reason
    newest: datetime


@dataclass(frozen=True)
class ClientState:
    """What the reasons of a client are found from, and the figures; dates are local to the client.

    `days`: the days of the last 90 and the next days with anything scheduled, in order. `pending_forms`: the number of
    forms without an answer by date, `records` the number of personal records. `program_end`: the last date of the
    assigned programs. `absences`: the days on which the client does not train. `stored`: the reasons that were found
    the last time. An archived client has no reasons.
    """

    today: date
    timezone: str
    created: date
    is_archived: bool
    days: Sequence[DayCompliance]
    figures: ClientFigures
    pending_forms: Mapping[date, int]
    records: Mapping[date, int]
    health_notes: customer_models.DatedCount | None
    erasure_requested: datetime | None
    unread: customer_models.DatedCount | None
    to_review: customer_models.DatedCount | None
    program_end: str | None
    absences: Absences
    stored: customer_models.Attention
    dismissals: Mapping[customer_models.ReasonType, DismissalFields]

    @property
    def absence(self) -> Availability | None:
        """The period in which the client does not train today, or None."""
        return self.absences.find(self.today)

    def days_ago(self, days: int) -> date:
        """Return the date so many days before today."""
        return self.today - timedelta(days=days)

    def start_of(self, day: date) -> datetime:
        """Return the time at which a local day begins, in UTC."""
        return midnight(day, self.timezone)


def find_reasons(state: ClientState, settings: AttentionSettings) -> list[DatedReason]:
    """Return every reason why a client needs attention, dismissed ones included, most important first.

    On a day on which the client does not train, nothing follows from work that is not done.
    """
    if state.is_archived:
        return []
    reasons = [*_find_sent(state)]
    if state.absence is None:
        reasons += [*_find_forms_and_missed(state), *_find_figures(state, settings)]
    return [*reasons, *_find_upcoming(state)]


def _make_reason(
    reason_type: customer_models.ReasonType, since: datetime, count: int = 1, *, newest: datetime | None = None
) -> DatedReason:
    return DatedReason({"type": reason_type, "since": since, "count": count}, newest or since)


def _find_sent(state: ClientState) -> Iterator[DatedReason]:
    """Yield the reasons in what the client has sent, or asked for."""
    if state.health_notes:
        yield _make_reason("health_note", state.health_notes["newest"], state.health_notes["count"])
    if state.erasure_requested:
        yield _make_reason("erasure_requested", state.erasure_requested)
    if state.unread:
        yield _make_reason("unread_message", state.unread["newest"], state.unread["count"])
    if state.to_review:
        yield _make_reason("check_in_to_review", state.to_review["newest"], state.to_review["count"])


def _find_forms_and_missed(state: ClientState) -> Iterator[DatedReason]:
    """Yield the reasons in forms without an answer and workouts that were not done.

    Forms: of the last 14 days before today on which the client trained. Workouts: those uncompleted workout days of the
    last 7 that count in the compliance rate of 7 days.
    """
    first, forms = state.days_ago(OVERDUE_DAYS), state.pending_forms
    if days := [day for day in forms if first <= day < state.today and day not in state.absences]:
        since, newest = state.start_of(min(days)), state.start_of(max(days))
        yield _make_reason("check_in_overdue", since, sum(forms[day] for day in days), newest=newest)
    past = [day for day in state.days if day["isWorkoutDay"] and day["date"] < str(state.today)]
    last_week = str(state.days_ago(MISSED_DAYS - 1))
    if missed := [day["date"] for day in past if day["date"] >= last_week and not day["isCompleted"]]:
        runs = [list(run) for is_completed, run in groupby(past, lambda day: day["isCompleted"]) if not is_completed]
        since, newest = (state.start_of(date.fromisoformat(day)) for day in (missed[0], runs[-1][0]["date"]))
        yield _make_reason("missed_workout", since, len(missed), newest=newest)


def _find_figures(state: ClientState, settings: AttentionSettings) -> Iterator[DatedReason]:
    """Yield the reasons in how a client trains.

    No session in the last days of training, or since a client who has never trained was created; a low compliance rate
    of 30 days; no workout day from today to some days ahead, unless the client is away on all days after today.
    """
    trained = state.figures["lastTrainedDate"]
    last = date.fromisoformat(trained) if trained else state.created
    begun = max(last.toordinal() + 1, state.today.toordinal() - _MOST_IDLE_DAYS)
    idle = (date.fromordinal(number) for number in range(begun, state.today.toordinal() + 1))
    days = settings["inactiveDays"]
    if sum(1 for _ in islice((day for day in idle if day not in state.absences), days)) >= days:
        yield _make_reason("inactive", state.start_of(last))
    # These two keep their `since`, the day on which they were first found, for as long as they last.
    before = {each["type"]: each["since"] for each in (*state.stored["reasons"], *state.stored["dismissed"])}
    rate = state.figures["complianceRate30d"]
    if rate is not None and rate < settings["complianceBelow"]:
        yield _make_reason("low_compliance", before.get("low_compliance", state.start_of(state.today)))
    ahead = [state.today + timedelta(days=number) for number in range(1, settings["horizonDays"] + 1)]
    first, furthest = str(state.today), str(state.today + timedelta(days=settings["horizonDays"]))
    is_scheduled = any(day["isWorkoutDay"] and first <= day["date"] <= furthest for day in state.days)
    if not is_scheduled and not (ahead and all(day in state.absences for day in ahead)):
        yield _make_reason("nothing_scheduled", before.get("nothing_scheduled", state.start_of(state.today)))


def _find_upcoming(state: ClientState) -> Iterator[DatedReason]:
    """Yield the reasons in the schedule and in what was achieved.

    The last of the assigned programs ends today or within 7 days; the client is absent today, and trains again within
    3 days; personal records of the last 7 days, today included; the client is absent today.
    """
    end = date.fromisoformat(state.program_end) if state.program_end else None
    if end is not None and state.today <= end <= state.today + timedelta(days=ENDING_DAYS):
        yield _make_reason("program_ending", state.start_of(end - timedelta(days=ENDING_DAYS)))
    away = state.absence
    if away is not None and away["until"] is not None:
        until = date.fromisoformat(away["until"])
        if until <= state.today + timedelta(days=RETURNING_DAYS):
            begun = max(date.fromisoformat(away["from"]), until - timedelta(days=RETURNING_DAYS))
            yield _make_reason("returning", state.start_of(begun))
    if records := {day: n for day, n in state.records.items() if state.days_ago(RECORD_DAYS - 1) <= day <= state.today}:
        yield _make_reason("personal_record", state.start_of(max(records)), sum(records.values()))
    if away is not None:
        yield _make_reason("unavailable", state.start_of(date.fromisoformat(away["from"])))


def summarize(
    reasons: Sequence[DatedReason],
    dismissals: Mapping[customer_models.ReasonType, DismissalFields],
    today: date,
) -> customer_models.Attention:
    """Return what is stored with a client: the reasons, without dismissed ones, and the score."""
    summary: customer_models.Attention = {"score": 0, "reasons": [], "dismissed": []}
    for reason, newest in reasons:
        dismissal = dismissals.get(reason["type"])
        until = None if dismissal is None else dismissal["until"]
        if dismissal and newest <= dismissal["since"] and (until is None or str(today) < until):
            summary["dismissed"].append(reason)
            continue
        summary["reasons"].append(reason)
        times = min(reason["count"], MOST_COUNTED_MISSED) if reason["type"] == "missed_workout" else 1
        summary["score"] += times * WEIGHTS[reason["type"]]
    return summary


# --- What has caused the reasons of the clients in a list, in a few words: read with the list, in a few queries -------


MAX_QUOTE = 120
Quotes = Mapping[tuple[ObjectId, customer_models.ReasonType], str]
_Reader = Callable[[Context, Mapping[ObjectId, date]], Awaitable[Mapping[ObjectId, str]]]


async def quote_causes(ctx: Context, clients: Sequence[customer_models.Customer]) -> Quotes:
    """Return what has caused the reasons of clients, by client and reason: at most 120 characters each.

    The newest note, message, answer or record; the workouts that were missed; forms and figures. The caller may see
    these reasons.
    """
    quotes: dict[tuple[ObjectId, customer_models.ReasonType], str] = {}
    today_of = defaultdict[customer_models.ReasonType, dict[ObjectId, date]](dict)
    for client in clients:
        for reason in client["attention"]["reasons"] if "attention" in client else ():
            today_of[reason["type"]][client["_id"]] = ctx.caller.today(client["timezone"])
            if text := _describe_figures(ctx, client, reason):
                quotes[client["_id"], reason["type"]] = text
    kinds = [kind for kind in _READERS if kind in today_of]
    read = await gather_reads(ctx, *(_READERS[kind](ctx, today_of[kind]) for kind in kinds))
    for kind, texts in zip(kinds, read, strict=True):
        quotes |= {(client_id, kind): shorten(text) for client_id, text in texts.items()}
    return quotes


def shorten(text: str) -> str:
    """Return a text in one line of at most 120 characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTE else f"{line[: MAX_QUOTE - 1]}…"


# Of clients with today's date where they are.
_READERS: Mapping[customer_models.ReasonType, _Reader] = {
    "health_note": lambda ctx, clients: notes.find_newest_health_texts(ctx, list(clients)),
    "unread_message": lambda ctx, clients: conversation.find_newest_unread_texts(ctx, list(clients)),
    "check_in_to_review": lambda ctx, clients: form_responses.find_newest_unreviewed_texts(ctx, list(clients)),
    "check_in_overdue": lambda ctx, clients: form_responses.describe_overdue(ctx, list(clients), OVERDUE_DAYS),
    "missed_workout": compliance.describe_missed,
    "personal_record": lambda ctx, clients: personal_records.describe_newest(
        ctx, list(clients), str(min(clients.values()) - timedelta(days=RECORD_DAYS))
    ),
    "returning": availability.describe_absences,
    "unavailable": availability.describe_absences,
}


def _describe_figures(ctx: Context, client: customer_models.Customer, reason: customer_models.Reason) -> str:
    """Return what has caused a reason that follows from the figures of a client; an empty text for others."""
    role = client["customerRoleData"]
    if reason["type"] == "inactive":
        return f"Last session on {role['lastTrainedDate']}" if role["lastTrainedDate"] else "No session yet"
    if reason["type"] == "low_compliance" and (rate := role["complianceRate30d"]) is not None:
        return f"{rate:.4g} % of the workout days of the last 30 days"
    if reason["type"] == "nothing_scheduled":
        last = role["lastWorkoutDate"]
        if last and last > str(ctx.caller.today(client.get("timezone"))):
            return f"Nothing in the coming days; later workouts until {last}"
        return f"Last scheduled on {last}" if last else NEVER_SCHEDULED
    if reason["type"] == "program_ending":
        begun = local_date(reason["since"], client["timezone"] or ctx.caller.company.timezone)
        return f"Ends on {begun + timedelta(days=ENDING_DAYS)}"
    return ""


# --- Reading what the figures and reasons of clients are computed from, in a few queries for any number of clients ----


# Absences that ended longer ago have no effect on reasons.
_ABSENCE_DAYS = 366


class _StoredClient(LatestSessions, total=False):
    """What is stored with a client: `attention` once it has been computed; the latest sessions are looked up."""

    _id: ObjectId
    createdAt: datetime
    attention: customer_models.Attention
    erasureRequestedAt: datetime
    isArchived: bool


async def load_clients(
    ctx: Context, timezones: Mapping[ObjectId, str | None], settings: AttentionSettings
) -> dict[ObjectId, ClientState]:
    """Return the existing ones of these clients, whose time zones are given (None: the company's)."""
    today_of = {client: ctx.caller.today(timezone) for client, timezone in timezones.items()}
    if not today_of:
        return {}
    ids = list(today_of)
    earliest, latest = min(today_of.values()), max(today_of.values())
    stored, days, forms, records, program_ends, *counted, absences, dismissals = await gather_reads(
        ctx,
        derived_figures.read_states(ctx, ids, *block_reports.last_session_stages(ctx, today_of)),
        compliance.get_days(ctx, today_of, settings["horizonDays"]),
        block_reports.count_pending_forms(ctx, ids, str(earliest - timedelta(days=OVERDUE_DAYS)), str(latest)),
        personal_records.count_by_date(ctx, ids, str(earliest - timedelta(days=RECORD_DAYS)), str(latest)),
        assignments.find_last_dates(ctx, ids),
        notes.count_health_notes(ctx, ids),
        conversation.count_unread(ctx, ids),
        form_responses.count_not_reviewed(ctx, ids),
        availability.get_absences(ctx, ids, str(earliest - timedelta(days=_ABSENCE_DAYS)), None),
        _dismissals.find(ctx, {"customerId": {"$in": ids}}),
    )
    forms_of, records_of = _by_date(forms), _by_date(records)
    health_notes_of, unread_of, to_review_of = ({each["_id"]: each for each in counts} for counts in counted)
    dismissals_of: dict[ObjectId, dict[customer_models.ReasonType, DismissalFields]] = defaultdict(dict)
    for dismissal in dismissals:
        dismissals_of[dismissal["customerId"]][dismissal["reason"]] = dismissal
    clients: dict[ObjectId, ClientState] = {}
    existing: list[_StoredClient] = stored
    for document in existing:
        client = document["_id"]
        timezone, today = timezones[client] or ctx.caller.company.timezone, today_of[client]
        last_trained = block_reports.find_last_trained(document, timezone)
        clients[client] = ClientState(
            today=today,
            timezone=timezone,
            created=local_date(document["createdAt"], timezone),
            is_archived=document["isArchived"],
            days=days[client],
            figures={**compliance.compute_rates(days[client], today), "lastTrainedDate": last_trained},
            pending_forms=forms_of[client],
            records=records_of[client],
            health_notes=health_notes_of.get(client),
            erasure_requested=document.get("erasureRequestedAt"),
            unread=unread_of.get(client),
            to_review=to_review_of.get(client),
            program_end=program_ends.get(client),
            absences=absences[client],
            stored=document.get("attention") or _NOTHING,
            dismissals=dismissals_of[client],
        )
    return clients


def _by_date(counts: Iterable[block_reports.DailyCount]) -> Mapping[ObjectId, Mapping[date, int]]:
    by_client: dict[ObjectId, dict[date, int]] = defaultdict(lambda: defaultdict(int))
    for entry in counts:
        by_client[entry["customerId"]][date.fromisoformat(entry["date"])] += entry["count"]
    return by_client


_REPORTED_AT_ONCE = 20
_NOTHING: customer_models.Attention = {"score": 0, "reasons": [], "dismissed": []}


# --- The list --------------------------------------------------------------------------------------------------------


async def present_part(ctx: Context, part: CursorPage[customer_models.Customer]) -> CursorPage[AttentionEntry]:
    """Return part of the clients that `derived_figures.list_attention` lists as entries of the attention list."""
    quotes = await quote_causes(ctx, part["docs"])
    return {**part, "docs": [present(ctx, client, quotes) for client in part["docs"]]}


def present(ctx: Context, customer: customer_models.Customer, quotes: Quotes | None = None) -> AttentionEntry:
    """Return a client with the fields of the attention list as an entry of it."""
    photo, role = customer["profilePhoto"], customer["customerRoleData"]
    attention = customer.get("attention") or _NOTHING
    photo_url = file_url(ctx, photo["fileId"]) if photo else None
    shown = take(AttentionCustomer, {**role, **customer, "profilePhotoUrl": photo_url})
    reasons: list[AttentionReason] = [
        {**reason, "quote": (quotes or {}).get((customer["_id"], reason["type"]))} for reason in attention["reasons"]
    ]
    return {"customer": shown, "score": attention["score"], "reasons": reasons}


@transactional
async def dismiss(
    ctx: Context,
    customer_id: ObjectId,
    reason_types: Collection[customer_models.ReasonType],
    *,
    until: str | None = None,
) -> AttentionEntry:
    """Dismiss those reasons of a client that apply, for the whole company; return the client with what is left.

    Until the date `until`, local to the client, on which they count again; without one, or if this is earlier, until
    something new happens: until the newest occurrence is later. A date that is not in the future ends an earlier
    dismissal. The reasons are computed again first. Raises Conflict if none of them applies to the client, NotFound if
    the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    await customers.lock_and_mark_figures(ctx, customer_id)
    settings = (await account.get_account(ctx))["attention"]
    loaded = (await load_clients(ctx, {customer_id: customer["timezone"]}, settings))[customer_id]
    reasons = find_reasons(loaded, settings)
    wanted = set(reason_types).difference(customer_models.list_hidden_reasons(ctx))
    dismissed: dict[customer_models.ReasonType, DismissalFields] = {
        each.reason["type"]: {"until": until, "since": each.newest} for each in reasons if each.reason["type"] in wanted
    }
    if not dismissed:
        raise Conflict("The client does not need attention for this reason", code="REASON_NOT_PRESENT")
    for reason_type, dismissal in dismissed.items():
        await _dismissals.upsert(ctx, {"customerId": customer_id, "reason": reason_type}, dismissal)
    changed = replace(loaded, dismissals={**loaded.dismissals, **dismissed})
    await _plan_reminders(ctx, {customer_id: loaded})
    summary = summarize(reasons, changed.dismissals, loaded.today)
    await _store_and_report(ctx, {customer_id: changed}, {customer_id: summary})
    customer = await derived_figures.read_for_attention(ctx, customer_id)
    return present(ctx, customer, await quote_causes(ctx, [customer]))


# --- Renewal ---------------------------------------------------------------------------------------------------------


async def renew(ctx: Context, customer_id: ObjectId) -> None:
    """Compute the figures and reasons of a client at once, after a change that the caller made.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    ctx = replace(ctx, operation=RENEWAL, interface="system", change_ids=[])
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    await transactional(_compute_and_store)(ctx, {customer_id: customer["timezone"]})


@on_worker_thread
async def renew_due(ctx: Context, clients: Sequence[customer_models.Customer]) -> None:
    """Compute and store the figures and reasons of clients of the company that `derived_figures.list_due` returned.

    What is stored of a client that has been marked or renewed in the meantime stays, and the client stays due. It is
    computed without a transaction, which would collide with each log of one of these clients; those with a reason that
    is raised or cleared are stored in one, a few at a time, with the events.
    """
    marks = {client["_id"]: derived_figures.mark_of(client) for client in clients}
    await _compute_and_store(ctx, {client["_id"]: client["timezone"] for client in clients}, marks)


async def _compute_and_store(
    ctx: Context,
    timezones: Mapping[ObjectId, str | None],
    marks: Mapping[ObjectId, customer_models.FigureMark] | None = None,
) -> None:
    """Compute the figures of clients and why they need attention, and store both for the lists.

    The clients are given with their time zones (None: the company's). What is stored is valid until the first hours of
    the client's next day. The number of queries does not depend on the number of clients.
    """
    settings = (await account.get_account(ctx))["attention"]
    loaded = await load_clients(ctx, timezones, settings)
    attention = {
        client: summarize(find_reasons(each, settings), each.dismissals, each.today) for client, each in loaded.items()
    }
    changed = [
        client
        for client, each in loaded.items()
        if {reason["type"] for reason in each.stored["reasons"]}  # one is raised or cleared
        != {reason["type"] for reason in attention[client]["reasons"]}
    ]
    await _plan_reminders(ctx, loaded)
    await _store(ctx, {client: loaded[client] for client in loaded.keys() - set(changed)}, attention, marks)
    for start in range(0, len(changed), _REPORTED_AT_ONCE):
        part = {client: loaded[client] for client in changed[start : start + _REPORTED_AT_ONCE]}
        await _store_and_report(ctx, part, attention, marks)


@transactional
async def _store_and_report(
    ctx: Context,
    loaded: Mapping[ObjectId, ClientState],
    attention: Mapping[ObjectId, customer_models.Attention],
    marks: Mapping[ObjectId, customer_models.FigureMark] | None = None,
) -> None:
    """Store the figures and reasons of clients, and report which reasons are raised and which are cleared.

    With `marks`, only of clients whose figures have neither been marked nor stored since these were read.
    """
    if marks is not None:
        unchanged = await derived_figures.find_unchanged(ctx, {client: marks[client] for client in loaded})
        loaded = {client: loaded[client] for client in unchanged}
    await _store(ctx, loaded, attention)
    for client, each in loaded.items():
        customer_models.report_reasons(ctx, client, each.stored["reasons"], attention[client]["reasons"])


async def _plan_reminders(ctx: Context, loaded: Mapping[ObjectId, ClientState]) -> None:
    """Make due what clients are to be reminded of.

    Before the mark of a change is removed: what a killed process has not planned is planned by the next one.
    """
    await reminders.plan(ctx, {client: ClientDay(each.today, each.timezone) for client, each in loaded.items()})


async def _store(
    ctx: Context,
    loaded: Mapping[ObjectId, ClientState],
    attention: Mapping[ObjectId, customer_models.Attention],
    marks: Mapping[ObjectId, customer_models.FigureMark] | None = None,
) -> None:
    """Store the figures and reasons of clients, as derived_figures.store_figures does, until their next renewal."""
    valid_until: dict[ObjectId, datetime] = {}
    stored: dict[ObjectId, customer_models.Attention] = {}
    for client, each in loaded.items():
        valid_until[client] = derived_figures.next_renewal(ctx.company_id, each.today, each.timezone)
        stored[client] = {**attention[client], "unread": each.unread["count"] if each.unread else None}
    figures = {client: each.figures for client, each in loaded.items()}
    await derived_figures.store_figures(ctx, figures, valid_until, stored, marks=marks)


async def mark_restored_due(ctx: Context, event: DocumentsRestored) -> None:
    """Have the figures and reasons of the clients renewed whose documents an undo has restored."""
    documents = [document.after or document.before or {} for document in event.documents]
    if client_ids := {document["customerId"] for document in documents if document.get("customerId")}:
        await derived_figures.mark_due(ctx, sorted(client_ids))


# --- The attention list over REST -------------------------------------------------------------------------------------


routes = Routes("/coach/attention", tag="Attention")


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_attention(ctx: Context, query: AttentionQuery) -> CursorPage[AttentionEntry]:
    """List the clients who need attention, highest score first.

    The reasons are stored with the clients: they follow a change within ten seconds, and the date once a local day.
    Archived clients, and those that the caller may not see, are left out.
    """
    listed = await derived_figures.list_attention(
        ctx,
        reasons=query["reason"],
        groups=query.get("groups"),
        trainers=customer_models.parse_trainers(query.get("assignedTo")),
        inactive_since=_since(ctx, query["inactiveDays"]),
        limit=query["limit"],
        after=query["after"],
    )
    return await present_part(ctx, listed)


@routes.put(
    "/{customerId}",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    errors=(Conflict,),
    example={"reason": "nothing_scheduled", "until": None},
)
async def dismiss_attention(ctx: Context, customer_id: ObjectId, body: AttentionDismissal) -> AttentionEntry:
    """Dismiss a reason for the whole company.

    Until the date `until`, or until its `since` is later: until something new happens. The answer is the client with
    the reasons that are left. 409 if the client does not have the reason.
    """
    return await dismiss(ctx, customer_id, [body["reason"]], until=body["until"])


# --- The attention list for assistants --------------------------------------------------------------------------------


tools = Tools()


class AttentionFilter(mcp.ToolPart):
    """Which clients, and which part of the list."""

    reasons = ListOf(
        Choice(*WEIGHTS),
        load_default=list,
        maximum=len(WEIGHTS),
        metadata={"description": "Only with any of these."},
    )
    inactiveDays = Integer(
        minimum=1,
        maximum=MAX_INACTIVE_DAYS,
        **mcp.optional("Only without a session in so many days."),
    )
    groups = StringList(load_default=list, metadata={"description": "Only clients in any of these groups."})


@tools.tool(
    "List clients who need attention",
    access=coach(CUSTOMERS.VIEW),
    takes=AttentionFilter(),
    returns=mcp.Lines,
)
async def get_attention(
    ctx: Context,
    reasons: list[ReasonType],
    inactive_days: int | None,
    groups: list[str],
    limit: int,
    after: str | None,
) -> Answer:
    """List the active clients who need a coach, most urgent first, with all their reasons: how many of each, since
    when, and what caused it."""
    wanted = await bulk.match_groups(ctx, groups)
    chosen = [*wanted.known, *wanted.unknown] or None
    filters: dict[str, Any] = {"reasons": reasons, "groups": chosen, "inactive_since": _since(ctx, inactive_days)}
    listed, total = await gather_reads(
        ctx,
        derived_figures.list_attention(ctx, **filters, limit=limit, after=after),
        derived_figures.count_attention(ctx, **filters),
    )
    part = await present_part(ctx, listed)
    # Of one reason: in one line if it is the same.
    alike: dict[tuple[str, ObjectId | None], list[AttentionCustomer]] = {}
    for client, entry in zip(listed["docs"], part["docs"], strict=True):
        timezone, shown, reasons_in_words = client["timezone"] or ctx.caller.company.timezone, entry["customer"], []
        for reason in entry["reasons"]:
            if reason["quote"] == NEVER_SCHEDULED:  # what never was has no date
                reasons_in_words.append(f"{reason['type']} {typed(NEVER_SCHEDULED)}")
                continue
            count = f" x{reason['count']}" if reason["count"] > 1 else ""
            since = "newest" if reason["type"] in DATED_BY_NEWEST else "since"
            quote = f" {typed(reason['quote'])}" if reason["quote"] else ""
            reasons_in_words.append(f"{reason['type']}{count} {since} {local_date(reason['since'], timezone)}{quote}")
        rate = shown["complianceRate7d"]
        facts = mcp.join_facts(
            f"score {entry['score']}",
            ", ".join(reasons_in_words),
            f"trained {shown['lastTrainedDate'] or 'never'}",
            rate is not None and f"7d {mcp.format_figure(rate, '%')}",
        )
        alike.setdefault((facts, client["_id"] if len(entry["reasons"]) > 1 else None), []).append(shown)
    lines = []
    for (facts, _), clients in alike.items():
        names = [
            f"{typed(' '.join(filter(None, (each['name'], each['surname']))))} [{each['_id']}]" for each in clients
        ]
        lines.append(f"{', '.join(names)}: {facts}")
    title = (
        "Clients who need attention" if inactive_days is None else f"Clients without a session in {inactive_days} days"
    )
    return mcp.list_answer(
        f"{title} (at least)" if total == derived_figures.MOST_COUNTED else title,
        {**part, "totalDocs": total},
        lines,
        ids=[clients[0]["_id"] if len(clients) == 1 else None for clients in alike.values()],
        hint=bulk.suggest_groups(wanted),
    )


def _since(ctx: Context, inactive_days: int | None) -> date | None:
    return None if inactive_days is None else ctx.caller.today() - timedelta(days=inactive_days)
