"""Why a coach has to confirm what an assistant wants to change."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from enum import StrEnum

from coaching_service.core.errors import Forbidden

MAX_DAYS = 7


class Reason(StrEnum):
    """A reason for which a change has to be confirmed."""

    CONTACT = "it sends mail or messages to people"
    DONE_WORK = "it overwrites work that is already done"
    MANY_DAYS = "it concerns more than seven days"
    MANY_CLIENTS = "it concerns more than one client"
    FAR_DATE = "it has a date more than a year away"
    FAR_VALUE = "it has a value far from the last"
    HISTORY = "it imports training history"
    PROGRAM_DAYS = "it replaces days of a program"
    OTHERS_VALUE = "it replaces a value that another person or program has recorded"
    LOAD_RAISED = "a load becomes more than 1.5 times or 20 kg more than it was ten minutes ago"
    UNUSUAL_AMOUNT = "it has loads, sets, repetitions or times far above those of the client"
    MANY_CHANGES = "there were more than 30 changes in ten minutes"
    MANY_CLIENT_DAYS = "more than 14 days of clients' schedules were changed in ten minutes"
    MANY_REMOVED = "more than three workouts were removed or replaced in ten minutes"
    MANY_NEW_CLIENTS = "there were more than 20 new clients in an hour"


# What an access without the switch "mail and work on many clients" may not do.
OUTREACH = frozenset({Reason.CONTACT, Reason.MANY_CLIENTS})


class OutreachDenied(Forbidden):
    """The access of an assistant may not send mail or messages, or change several clients at once."""

    default_code = "OUTREACH_DENIED"
    default_message = "This access may not send mail or messages, or change several clients at once"


def find_reasons(
    *,
    today: date | None = None,
    dates: Iterable[str] = (),
    days: int = 0,
    clients: int = 1,
    done_work: bool = False,
    far_values: bool = False,
    program_days: bool = False,
) -> tuple[Reason, ...]:
    """Return the reasons that hold for a change.

    `dates` (YYYY-MM-DD) are compared with `today`, the client's date. `days` is the number of days of the source or
    the target, whichever has more. `clients`: how many are changed. `done_work`: what a client has done is overwritten.
    `far_values`: a value is far from the last of its kind. `program_days`: workouts of a program are replaced.
    """
    checks = {
        Reason.DONE_WORK: done_work,
        Reason.MANY_DAYS: days > MAX_DAYS,
        Reason.MANY_CLIENTS: clients > 1,
        Reason.FAR_DATE: today is not None and any(is_far(today, date.fromisoformat(each)) for each in dates),
        Reason.FAR_VALUE: far_values,
        Reason.PROGRAM_DAYS: program_days,
    }
    return tuple(reason for reason, holds in checks.items() if holds)


def count_span(dates: Iterable[str]) -> int:
    """Return the number of days from the first to the last of some dates (YYYY-MM-DD), both included."""
    ordinals = [date.fromisoformat(each).toordinal() for each in dates]
    return max(ordinals) - min(ordinals) + 1 if ordinals else 0


def is_far(today: date, other: date) -> bool:
    """Return whether a date is more than a year before or after `today`."""
    earlier, later = sorted((today, other))
    years = later.year - earlier.year
    return (years, later.month, later.day) > (1, earlier.month, earlier.day)
