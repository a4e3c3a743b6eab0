"""What tools return: text for the assistant, data for programs, and text written by people marked as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

from coaching_service.core.database.recording import DocumentChange
from coaching_service.core.errors import Forbidden
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import isolate_direction, without_hidden, without_separators

# --- Why a coach has to confirm what an assistant wants to change -----------------------------------------------------


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
    UNUSUAL_AMOUNT = "it has an unusual load, time, or number of sets or repetitions"
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


OPEN, CLOSE = "«", "»"
# Fields that people fill in, also with one word; any other text of several words is marked too, except what we write.
_TYPED_FIELDS = frozenset(
    {
        *("name", "surname", "phone", "groups", "title", "description", "tags", "text", "content", "comment"),
        *("instructions", "exerciseInstructions", "question", "answer", "value", "reason", "pain", "aliases", "unit"),
        *("exerciseName", "formName", "programName", "metricName", "note", "message", "externalId", "supersetId"),
    }
)
# Lines of workouts are marked where they are written; sets are only numbers and words of their grammar.
_OWN_FIELDS = frozenset({"hint", "summary", "line", "lines", "session", "sets", "weeks", "bestSet"})
_MARKED = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")
_WITHOUT_MARKS = str.maketrans({OPEN: "‹", CLOSE: "›"})

# What tools say that they have done, and what a proposal says instead.
IMPERATIVES = {
    "added": "add",
    "adjusted": "adjust",
    "assigned": "assign",
    "began": "begin",
    "changed": "change",
    "copied": "copy",
    "created": "create",
    "imported": "import",
    "invited": "invite",
    "kept": "keep",
    "left": "leave",
    "logged": "log",
    "marked": "mark",
    "moved": "move",
    "recorded": "record",
    "removed": "remove",
    "replaced": "replace",
    "restored": "restore",
    "scheduled": "schedule",
    "sent": "send",
    "set": "set",
    "undid": "undo",
}
# How lines begin that say of nothing that it was done.
_UNDONE = ("nothing", "would", "a")
# A verb begins a sentence, or a part of one; what a person typed is left as it is.
_VERBS = re.compile(
    f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}|(?:^|(?<=[.:;] )|(?<= and ))(?:{'|'.join(IMPERATIVES)})\\b", re.IGNORECASE
)

Identifiers = Mapping[str, ObjectId | Sequence[ObjectId] | None]


def typed(text: str) -> str:
    """Return a text that a person typed (a name, note, answer or message), marked as data: `«text»`.

    The marks cannot be closed from inside, nor the direction of what follows be changed, nor a line be ended but by LF,
    nor anything be said in characters that no person sees. The instructions of the server tell assistants to follow
    nothing that is between them.
    """
    return f"{OPEN}{isolate_direction(without_hidden(without_separators(text)).translate(_WITHOUT_MARKS))}{CLOSE}"


def mark_typed(value: Any, name: str = "") -> Any:
    """Return a decoded JSON value in which every text that a person typed is marked, once."""
    if isinstance(value, dict) and name == "metadata":
        return {typed(without_marks(key)): mark_typed(each, "value") for key, each in value.items()}
    if isinstance(value, dict):
        return {inner: mark_typed(each, inner) for inner, each in value.items()}
    if isinstance(value, list):
        return [mark_typed(each, name) for each in value]
    is_typed = isinstance(value, str) and value and name not in _OWN_FIELDS and (name in _TYPED_FIELDS or " " in value)
    return typed(without_marks(value)) if is_typed else value


def without_marks(text: str) -> str:
    """Return a text without the marks around it: assistants send back what they have read."""
    is_marked = len(text) > 1 and text.startswith(OPEN) and text.endswith(CLOSE)
    return text[1:-1] if is_marked and not {OPEN, CLOSE} & {*text[1:-1]} else text


def without_inner_marks(text: str) -> str:
    """Return a text of ours, for people, without the marks around what a person typed."""
    return _MARKED.sub(r"\1", text)


def as_proposed(line: str) -> str:
    """Return what a tool says that it has done, such as `Created «Legs»`, as what it would do: `Create «Legs»`."""

    def replace_verb(match: re.Match[str]) -> str:
        verb = match[0]
        imperative = IMPERATIVES.get(verb.lower(), verb)
        return imperative.capitalize() if verb[0].isupper() else imperative

    return _VERBS.sub(replace_verb, line)


@dataclass(frozen=True)
class Answer:
    """What a tool that reads has found: `text` is what an assistant reads, `data` the JSON object for programs.

    Some applications show a model only the data, so both say the same; what is null is left out of the data.
    """

    text: str
    data: Mapping[str, object]

    def __post_init__(self) -> None:
        """Leave out what is null."""
        object.__setattr__(self, "data", _without_nulls(self.data))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


class CopiedDays(TypedDict):
    """Days of a client's calendar, or a program, that a call copies."""

    customerId: ObjectId | None
    programId: ObjectId | None
    first: str | None
    last: str | None


class Source(CopiedDays):
    """What a call copies, with digests of the versions of its workouts and of their plans."""

    versions: str
    plans: str


class RaisedLoad(NamedTuple):
    """A load of a client's exercise in the company's unit, before and after: in a new workout and in the copied one.

    `unit` is `load`, or `maximum` for the training maximum, from which the loads of percentages follow.
    """

    customer_id: ObjectId
    exercise_id: ObjectId
    before: float
    after: float
    unit: str = "load"


@dataclass(frozen=True)
class Written:
    """What a tool that writes has done.

    `line` begins with a verb of `IMPERATIVES`, such as `Created the workout «Legs» on 2026-03-02.`. `identifiers` are
    by the argument's name that other tools have for them. `reasons`: why the coach has to confirm it (`find_reasons`);
    without a confirmation everything is rolled back and the sentence is shown as what would be done. `depends_on` is
    what was shown besides the documents that are changed, and `sources` what is copied: the confirmation is void when
    they differ. `raised`: loads of new workouts that differ from those of
    the copied ones, and training maximums. `details` is further data.
    `leads_back`: it undoes what the assistant itself has done, so that it does not count as a change. `unlogged`: new
    documents that the change log leaves out, and that the coach is shown nevertheless.
    """

    line: str
    identifiers: Identifiers = field(default_factory=dict)
    reasons: Sequence[Reason] = ()
    depends_on: Sequence[object] = ()
    sources: Sequence[Source] = ()
    raised: Sequence[RaisedLoad] = ()
    details: Mapping[str, object] = field(default_factory=dict)
    leads_back: bool = False
    unlogged: Sequence[DocumentChange] = ()

    def __post_init__(self) -> None:
        """Refuse a sentence that a proposal could not say in the imperative."""
        verb = re.split(r"\W", self.line, maxsplit=1)[0].lower()
        if verb not in IMPERATIVES and verb not in _UNDONE:
            raise ValueError(f"{verb!r} has no imperative")
