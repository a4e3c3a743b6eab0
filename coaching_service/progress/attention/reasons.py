"""The rules of attention: why a client needs a coach and how urgently, free of the database.

`since` is the time at which a reason began, and so when a dismissed one comes back. Of what the client sends or
achieves it is the time of the newest. Of missed workouts it is the first day of the latest run of uncompleted workout
days. Overdue check-ins, low compliance and an empty schedule keep the `since` at which they were first found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from coaching_service.core.dates import midnight
from coaching_service.people.account.models import AttentionSettings
from coaching_service.people.customers.models import Attention, DatedCount, Reason, ReasonType
from coaching_service.progress.attention.models import DismissalFields
from coaching_service.progress.compliance.calculation import count_workout_days
from coaching_service.progress.compliance.models import DayCompliance

# In the order in which reasons are listed.
WEIGHTS: Mapping[ReasonType, int] = {
    "health_note": 50,
    "erasure_requested": 50,
    "unread_message": 30,
    "check_in_to_review": 30,
    "check_in_overdue": 20,
    "missed_workout": 20,
    "inactive": 20,
    "low_compliance": 15,
    "nothing_scheduled": 15,
    "program_ending": 10,
    "personal_record": 5,
}
MISSED_DAYS, MOST_COUNTED_MISSED = 7, 3
OVERDUE_DAYS = 14
ENDING_DAYS = 7
RECORD_DAYS = 7


@dataclass(frozen=True)
class ClientState:
    """What the reasons of a client are found from; dates are local to the client.

    `days`: those of the last 90 and the next days with anything scheduled, in order. `pending_forms`: the number of
    forms without an answer by date, `records` that of personal records. `program_end`: the last date of the assigned
    programs. `previous`: the `since` of the reasons that were found the last time.
    """

    today: date
    timezone: str
    created: date
    days: Sequence[DayCompliance] = ()
    last_trained: date | None = None
    compliance: float | None = None
    pending_forms: Mapping[date, int] = field(default_factory=dict)
    records: Mapping[date, int] = field(default_factory=dict)
    health_notes: DatedCount | None = None
    erasure_requested: datetime | None = None
    unread: DatedCount | None = None
    to_review: DatedCount | None = None
    program_end: date | None = None
    previous: Mapping[ReasonType, datetime] = field(default_factory=dict)

    def days_ago(self, days: int) -> date:
        """The date so many days before today."""
        return self.today - timedelta(days=days)

    def start_of(self, day: date) -> datetime:
        """The time at which a local day begins, in UTC."""
        return midnight(day, self.timezone)


def find_reasons(state: ClientState, settings: AttentionSettings) -> list[Reason]:
    """Return every reason why a client needs attention, dismissed ones included, most important first."""
    reasons = [
        _dated("health_note", state.health_notes),
        _find_erasure_request(state),
        _dated("unread_message", state.unread),
        _dated("check_in_to_review", state.to_review),
        *(rule(state, settings) for rule in _RULES),
    ]
    return [reason for reason in reasons if reason is not None]


def _dated(reason_type: ReasonType, counted: DatedCount | None) -> Reason | None:
    return {"type": reason_type, "since": counted["newest"], "count": counted["count"]} if counted else None


def _find_erasure_request(state: ClientState) -> Reason | None:
    """The client asked for erasure; the reason ends with the client."""
    since = state.erasure_requested
    return {"type": "erasure_requested", "since": since, "count": 1} if since else None


def _find_overdue(state: ClientState, _: AttentionSettings) -> Reason | None:
    """Forms without an answer of the last 14 days before today."""
    overdue = {day: n for day, n in state.pending_forms.items() if state.days_ago(OVERDUE_DAYS) <= day < state.today}
    if not overdue:
        return None
    return _lasting(state, "check_in_overdue", state.start_of(min(overdue)), sum(overdue.values()))


def _find_missed(state: ClientState, _: AttentionSettings) -> Reason | None:
    """Uncompleted workout days of the last 7: those that count in the compliance rate of 7 days."""
    first = str(state.days_ago(MISSED_DAYS - 1))
    total, completed = count_workout_days((day for day in state.days if day["date"] >= first), state.today)
    if total == completed:
        return None
    since = state.start_of(date.fromisoformat(_start_of_missed_run(state)))
    return {"type": "missed_workout", "since": since, "count": total - completed}


def _start_of_missed_run(state: ClientState) -> str:
    """The first day of the latest run of uncompleted workout days before today."""
    past = [day for day in state.days if day["isWorkoutDay"] and day["date"] < str(state.today)]
    while past[-1]["isCompleted"]:
        past.pop()
    start = past[-1]["date"]
    while past and not past[-1]["isCompleted"]:
        start = past.pop()["date"]
    return start


def _find_inactive(state: ClientState, settings: AttentionSettings) -> Reason | None:
    """No session in the last days; of a client who has never trained: not created in them."""
    last = state.last_trained or state.created
    if last > state.days_ago(settings["inactiveDays"]):
        return None
    return {"type": "inactive", "since": state.start_of(last), "count": 1}


def _find_low_compliance(state: ClientState, settings: AttentionSettings) -> Reason | None:
    """The compliance rate of 30 days is low."""
    if state.compliance is None or state.compliance >= settings["complianceBelow"]:
        return None
    return _lasting(state, "low_compliance", state.start_of(state.today), 1)


def _find_nothing_scheduled(state: ClientState, settings: AttentionSettings) -> Reason | None:
    """No workout day from today to some days ahead."""
    first, last = str(state.today), str(state.today + timedelta(days=settings["horizonDays"]))
    if any(day["isWorkoutDay"] and first <= day["date"] <= last for day in state.days):
        return None
    return _lasting(state, "nothing_scheduled", state.start_of(state.today), 1)


def _find_program_ending(state: ClientState, _: AttentionSettings) -> Reason | None:
    """The last of the assigned programs ends today or within 7 days."""
    end = state.program_end
    if end is None or not state.today <= end <= state.today + timedelta(days=ENDING_DAYS):
        return None
    return {"type": "program_ending", "since": state.start_of(end - timedelta(days=ENDING_DAYS)), "count": 1}


def _find_records(state: ClientState, _: AttentionSettings) -> Reason | None:
    """Personal records of the last 7 days, today included."""
    records = {day: n for day, n in state.records.items() if state.days_ago(RECORD_DAYS - 1) <= day <= state.today}
    if not records:
        return None
    return {"type": "personal_record", "since": state.start_of(max(records)), "count": sum(records.values())}


_RULES: Sequence[Callable[[ClientState, AttentionSettings], Reason | None]] = (
    _find_overdue,
    _find_missed,
    _find_inactive,
    _find_low_compliance,
    _find_nothing_scheduled,
    _find_program_ending,
    _find_records,
)


def _lasting(state: ClientState, reason_type: ReasonType, since: datetime, count: int) -> Reason:
    """A reason that keeps its `since` for as long as it lasts."""
    return {"type": reason_type, "since": state.previous.get(reason_type, since), "count": count}


def summarize(reasons: Sequence[Reason], dismissals: Mapping[ReasonType, DismissalFields], today: date) -> Attention:
    """Return what is stored with a client: the reasons, apart from those that are dismissed, and the score."""
    dismissed = [
        reason
        for reason in reasons
        if reason["type"] in dismissals and _is_dismissed(reason, dismissals[reason["type"]], today)
    ]
    shown = [reason for reason in reasons if reason not in dismissed]
    return {"score": sum(_weigh(reason) for reason in shown), "reasons": shown, "dismissed": dismissed}


def _is_dismissed(reason: Reason, dismissal: DismissalFields, today: date) -> bool:
    until = dismissal["until"]
    return reason["since"] <= dismissal["since"] and (until is None or str(today) < until)


def _weigh(reason: Reason) -> int:
    times = min(reason["count"], MOST_COUNTED_MISSED) if reason["type"] == "missed_workout" else 1
    return times * WEIGHTS[reason["type"]]
