"""Declaration of tools for assistants, independent of the protocol: their results, arguments and the tool itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from functools import cache, cached_property
from types import UnionType
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, Union, get_args, get_origin, is_typeddict

import orjson
from apispec import APISpec
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import RAISE, Schema, ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.audit import kind_of_tool
from coaching_service.core.auth import Access
from coaching_service.core.database.context import Context, Schedule
from coaching_service.core.database.recording import DocumentChange
from coaching_service.core.errors import Forbidden
from coaching_service.core.fields import declarations_of
from coaching_service.core.ids import IDENTIFIER_PATTERN, ObjectId
from coaching_service.core.list_selection import Page, T, page_document, skip_of
from coaching_service.core.text import isolate_direction, snake_case, without_hidden, without_separators
from coaching_service.core.validation import Text

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


# --- Results: text for the assistant, data for programs, and text written by people marked as data --------------------


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


# --- Arguments: closed objects, validated like a REST body and described by a JSON Schema -----------------------------


DEFAULT_PAGE, MAX_TOOL_PAGE = 20, 100
IDENTIFIER_LENGTH = 24
# The metadata of an argument that is accepted and not listed: the shape that older versions had.
UNLISTED = {"unlisted": True}
# The metadata of an argument that is listed as required, although an unlisted one may take its place.
LISTED_AS_REQUIRED = {"listedAsRequired": True}
_MAX_MESSAGES = 8
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_BOOLEANS = {"true": True, "false": False}


class Arguments(validation.Input):
    """The base of the argument schemas: unknown fields are rejected."""

    class Meta:
        unknown = RAISE


def optional(description: str) -> dict[str, Any]:
    """Return the options of an argument that may be omitted or null; both are None."""
    return {"load_default": None, "allow_none": True, "metadata": {"description": description}}


class CustomerArgument(Arguments):
    """The client a tool is about."""

    customerId = validation.Identifier(required=True, metadata={"description": "From list_customers."})


class ToolPage(Arguments):
    """`page` from 1, and `pageSize`, by default 20 and at most 100."""

    page = validation.Integer(minimum=1, load_default=1)
    pageSize = validation.Integer(minimum=1, maximum=MAX_TOOL_PAGE, load_default=DEFAULT_PAGE)


class Dates(Arguments):
    """From `startDate` to `endDate`, both included."""

    max_days = 366

    startDate = validation.Date(required=True)
    endDate = validation.Date(required=True)

    @validates_schema(skip_on_field_errors=False)
    def validate_range(self, data: Mapping[str, str], **_: Any) -> None:
        """Raises ValidationError if the end is before the start, or more than `max_days` are requested."""
        require_range(data.get("startDate"), data.get("endDate"), self.max_days)


def require_range(first: str | None, last: str | None, max_days: int) -> None:
    """Raise ValidationError unless `first` to `last`, both included, are 1 to `max_days` days, if both are there."""
    if first is None or last is None:
        return
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days
    if days < 0:
        raise validation.invalid("must not be before startDate", "BEFORE_START", "endDate")
    if days >= max_days:
        raise validation.invalid(f"must be less than {max_days} days after startDate", "RANGE_TOO_LONG", "endDate")


class OpenDates(Arguments):
    """From `startDate` to `endDate`, both included; either may be omitted."""

    startDate = validation.Date(load_default=None, allow_none=True)
    endDate = validation.Date(load_default=None, allow_none=True)

    @validates_schema(skip_on_field_errors=False)
    def validate_order(self, data: Mapping[str, str | None], **_: Any) -> None:
        """Raises ValidationError if the end is before the start."""
        first, last = data.get("startDate"), data.get("endDate")
        if first is not None and last is not None and last < first:
            raise validation.invalid("must not be before startDate", "BEFORE_START", "endDate")


def validate_arguments(schema: Schema, arguments: Any) -> dict[str, Any]:
    """Return the arguments as `schema` loads them: null is the same as absent, 5.0 as 5, and «text» as text.

    Many models write an array, an object, a number or a boolean as text, and an empty text for nothing: these are read
    as what the argument takes. Raises InvalidArguments with one message per error; none quotes the arguments.
    """
    try:
        loaded: dict[str, Any] = schema.load(_normalize(arguments or {}, schema))
    except ValidationError as error:
        messages = validation.body_messages(ValidationError(_without_quotes(error.messages, schema)))
        more = [f"and {len(messages) - _MAX_MESSAGES} more of the kind"] if len(messages) > _MAX_MESSAGES else []
        valid = error.valid_data if isinstance(error.valid_data, dict) else {}
        raise InvalidArguments(messages[:_MAX_MESSAGES] + more, valid) from None
    except RecursionError:
        raise InvalidArguments(["the arguments are nested too deep"]) from None
    return loaded


def _normalize(value: Any, takes: Schema | fields.Field[Any] | None) -> Any:
    """Return a value that is sent for `takes`; None: an argument that is not known."""
    if isinstance(value, str):
        value = _read_text(without_marks(value), takes)
    if isinstance(value, dict):
        schema = takes.schema if isinstance(takes, fields.Nested) else takes
        known = schema.fields if isinstance(schema, Schema) else {}
        sent = {}
        for name, inner in value.items():
            field, is_empty = known.get(name), isinstance(inner, str) and not inner.strip()
            is_optional = field is not None and not field.required and not getattr(field, "allow_blank", False)
            if inner is not None and not (is_empty and is_optional):
                sent[name] = _normalize(inner, field)
        return sent
    if isinstance(value, list):
        return [_normalize(inner, takes.inner if isinstance(takes, fields.List) else None) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_text(text: str, takes: Schema | fields.Field[Any] | None) -> Any:
    """Return what a text is as JSON if `takes` is no text and the text is such a value; otherwise the text."""
    if isinstance(takes, fields.List | fields.Nested):
        if text.lstrip().startswith("[" if isinstance(takes, fields.List) else "{"):
            with suppress(orjson.JSONDecodeError):
                return orjson.loads(text)
        return text
    if isinstance(takes, fields.Integer | fields.Float) and _NUMBER.fullmatch(text.strip()):
        return float(text) if "." in text else int(text)
    if isinstance(takes, fields.Boolean):
        return _BOOLEANS.get(text.strip().lower(), text)
    return text


def _without_quotes(messages: Any, schema: Schema | None) -> Any:
    """Return the messages of a schema, with known field names in place of an unknown one, which the caller chose."""
    if not isinstance(messages, dict):
        return messages
    known = {}
    for name, inner in messages.items():
        if inner == [validation.UNKNOWN_FIELD]:
            continue
        # Of an object field, or of the entries of a list; for an index in a list it is the schema itself.
        field = schema.fields.get(name) if schema is not None and isinstance(name, str) else None
        entry = field.inner if isinstance(field, fields.List) else field
        nested = schema if field is None else entry.schema if isinstance(entry, fields.Nested) else None
        known[name] = _without_quotes(inner, nested)
    if len(known) < len(messages) and schema is not None:
        listed = [name for name, field in schema.fields.items() if not field.metadata.get("unlisted")]
        hint = f"unknown field; the known ones are {', '.join(listed) or 'none'}"
        known["_schema"] = [*known.get("_schema", []), hint]
    return known


class InvalidArguments(Exception):
    """The arguments are invalid; `messages` has one sentence per error, `valid` the arguments without errors."""

    def __init__(self, messages: list[str], valid: Mapping[str, Any] | None = None) -> None:
        super().__init__("; ".join(messages))
        self.messages, self.valid = messages, valid or {}


def paged(entries: Sequence[T], page: int, size: int) -> Page[T]:
    """Return one page of entries that are all in memory, in the shape that list tools return."""
    first = skip_of(page, size)
    return page_document(entries[first : first + size], len(entries), page, size)


@cache
def _converter() -> OpenAPIConverter:
    # apispec writes a schema without a name where it is used.
    spec = APISpec(title="tools", version="1", openapi_version="3.1.0")
    return OpenAPIConverter("3.1.0", schema_name_resolver=lambda _: None, spec=spec)


def input_schema(schema: Schema) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments: closed objects, without references."""
    listed = {name: field for name, field in schema.fields.items() if not field.metadata.get("unlisted")}
    properties = {name: _property(field) for name, field in listed.items()}
    required = [name for name, field in listed.items() if field.required or field.metadata.get("listedAsRequired")]
    description: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return description | ({"required": required} if required else {})


def _property(field: fields.Field[Any]) -> dict[str, Any]:
    metadata = {key: field.metadata[key] for key in ("maxItems", "description") if key in field.metadata}
    if isinstance(field, fields.Nested):
        return input_schema(field.schema) | metadata
    if isinstance(field, fields.List):
        return {"type": "array", "items": _property(field.inner), **metadata}
    described: dict[str, Any] = _converter().field2property(field)
    # Left out to save tokens: an empty text or list is still refused, and the words of an enum have their lengths.
    for name in ("example", "minLength", *(["maxLength"] if "enum" in described else [])):
        described.pop(name, None)
    if described.get("pattern") == IDENTIFIER_PATTERN:  # which has more tokens than its length says
        described |= {"maxLength": IDENTIFIER_LENGTH}
        del described["pattern"]
    if isinstance(described.get("type"), list):  # optional arguments are omitted, not sent as null
        described["type"] = next(kind for kind in described["type"] if kind != "null")
    if None in described.get("enum", ()):
        described["enum"] = [word for word in described["enum"] if word is not None]
    if described.get("default", ...) is None:
        del described["default"]
    return described


# --- Lists as assistants read them: a title that says where the list continues, and a line for each entry -------------


_MAX_CURSOR, _MAX_LIMIT, _DEFAULT_LIMIT = 2_000, 100, 20
_MAX_TEXT = 600
_NUMBERED, _BY_CURSOR = ("totalDocs", "nextPage"), ("totalDocs", "nextCursor")


class ListedLine(TypedDict):
    """An entry of a list as a line of text, and its identifier if other tools take it."""

    _id: NotRequired[ObjectId]
    line: str


class Extent(TypedDict):
    """What a list is about; with numbered pages how many entries there are, and the next page if there is one."""

    summary: str
    totalDocs: NotRequired[int]
    nextPage: NotRequired[int]


class Lines(Extent):
    """A list as a whole or a part of it: the cursor of the next part if there is one, and what else to look for."""

    docs: list[ListedLine]
    nextCursor: NotRequired[str]
    hint: NotRequired[str]


class ToolPart(Arguments):
    """`limit` (1 to 100, by default 20) entries of a list, after a cursor."""

    limit = validation.Integer(minimum=1, maximum=_MAX_LIMIT, load_default=_DEFAULT_LIMIT)
    after = validation.Text(max_length=_MAX_CURSOR, **optional("nextCursor of the part before."))


def list_answer(
    title: str,
    page: Mapping[str, Any],
    lines: Sequence[str],
    *,
    ids: Sequence[ObjectId | None] | None = None,
    hint: str = "",
) -> Answer:
    """Return a page or part of a list: `lines` are the texts of its `docs`, `ids` those they have in brackets.

    `page` has numbered pages or a cursor. The data has the same lines, with the identifiers apart.
    """
    shown = len(page["docs"])
    total = page.get("totalDocs", shown)
    if "hasMore" in page:
        more = f"; more with after {page['nextCursor']}" if page.get("nextCursor") else "; more" * page["hasMore"]
        more = f"; shown {shown}{more}" if total > shown else more
    else:
        more = f"; shown {shown}, more on page {page['nextPage']}" if page["hasNextPage"] else ""
    text = [f"{title}: {total or 'none'}{more}", *lines, *([hint] if hint else [])]
    docs: list[ListedLine] = [
        {"line": line} if _id is None else {"_id": _id, "line": line.replace(f" [{_id}]", "", 1)}
        for line, _id in zip(lines, ids or [None] * len(lines), strict=True)
    ]
    return Answer("\n".join(text), {**describe_list(title, page, hint), "docs": docs})


def describe_list(title: str, page: Mapping[str, Any], hint: str = "") -> dict[str, object]:
    """Return what the data of a list says of all of it."""
    names = _BY_CURSOR if "hasMore" in page else _NUMBERED
    known = {name: page[name] for name in names if page.get(name) is not None}
    return {"summary": title, **known, **({"hint": hint} if hint else {})}


def join_facts(*facts: object) -> str:
    """Return the facts of a line that are known, separated by semicolons; what is empty or None is not."""
    return "; ".join(str(fact) for fact in facts if fact)


def typed_line(text: str, longest: int = _MAX_TEXT) -> str:
    """Return a text that a person typed in one line, marked as data; what is longer than `longest` is cut off."""
    line = " ".join(text.split())
    return typed(line if len(line) <= longest else f"{line[: longest - 1]}…")


def format_time(time: datetime) -> str:
    """Return a stored time (UTC) to the minute."""
    return f"{time:%Y-%m-%d %H:%M}Z"


def format_figure(value: float | None, unit: str = "") -> str:
    """Return a figure without unnecessary decimals, or `-` for None."""
    return "-" if value is None else f"{round(value, 2):.15g}{unit}"  # without an exponent


# --- What tools that read return, as a JSON Schema: exactly the fields of a TypedDict, in few words -------------------


_TYPES = {str: "string", ObjectId: "string", datetime: "string", int: "integer", float: "number", bool: "boolean"}


def output_schema(model: Any, *, with_entries: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of results with the fields of a TypedDict; a field that may be null is then left out.

    Only the fields of the result itself are said to be required. Those that may be absent, and those of entries of
    lists, are named only `with_entries`: it saves tokens, and results name what they have.
    """
    required = [each.name for each in declarations_of(model).values() if each.is_required and not each.is_nullable]
    schema = _describe_object(model, with_entries=with_entries)
    if not with_entries and required:
        schema["properties"] = {name: schema["properties"][name] for name in required}
    return {**schema, **({"required": required} if required else {})}


def _describe_object(model: Any, *, with_entries: bool) -> dict[str, Any]:
    declared = declarations_of(model).values()
    return {
        "type": "object",
        "properties": {each.name: _describe(each.hint, with_entries=with_entries) for each in declared},
    }


def _describe(hint: Any, *, with_entries: bool) -> dict[str, Any]:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    [member] = [each for each in members if each is not type(None)]
    if is_typeddict(member):
        return _describe_object(member, with_entries=with_entries)
    if get_origin(member) is Literal:
        return {"type": "string"}
    if get_origin(member) in (list, Sequence):
        [entry] = get_args(member)
        is_named = is_typeddict(entry) and not with_entries
        items = {"type": "object"} if is_named else _describe(entry, with_entries=with_entries)
        return {"type": "array", "items": items}
    if get_origin(member) in (dict, Mapping):
        return {"type": "object"}
    return {"type": _TYPES[member]}


# --- The declaration of a tool, which the MCP server, permissions and the generated tests read ------------------------


Returned = Mapping[str, Any] | Answer | Written
ToolHandler = Callable[..., Awaitable[Returned]]
Preparation = Callable[..., Awaitable[None]]
Check = Callable[[Context, Mapping[str, Any]], Awaitable[None]]


class WriteArguments(Arguments):
    """What every tool that writes takes besides its own arguments; the server consumes it.

    The token is listed only for an assistant that may confirm in the chat, and ignored from others.
    """

    idempotencyKey = Text(max_length=255, **optional("Done once per key."))
    confirmationToken = Text(max_length=64, load_default=None, allow_none=True, metadata=UNLISTED)


_TOKEN = {"type": "string", "description": "From the call to confirm, once the coach agrees."}


@dataclass(frozen=True)
class Tool:
    """One tool: its name, who may call it, and its arguments.

    `takes` is a schema instance; the handler receives its fields by their names in snake case. A tool that reads
    returns an `Answer` with the data of `returns`, a TypedDict; one that writes returns `Written`. `writes`: it changes
    something.
    `locks`: the owner of the schedule that it changes, as for routes; the argument `customerId` and so on names it.
    `destructive`: it may replace or remove existing data. `deletes`: it only removes, so that it is possible on a full
    disk. `idempotent`: repeating it with the same arguments changes
    nothing more. `open_world`: it reaches people outside the service (e-mail). `confirms`: the reasons for which it may
    have to be confirmed. `outreach`: it always reaches people or many clients, so an access without that right does not
    see it. `for_views`: the views of applications call it, assistants neither see nor call it. `unlisted`: assistants
    may call it, but do not see it. `own_calls`: it is about what the caller itself has called, so that an access
    without the right to read may call it. `prepare` is called with the arguments before the transaction. `check` finds
    the errors of those without others when some are invalid.
    """

    title: str
    handler: ToolHandler
    access: Access
    takes: Schema
    returns: Any = None
    writes: bool = False
    locks: Schedule | None = None
    destructive: bool = False
    deletes: bool = False
    idempotent: bool = False
    open_world: bool = False
    outreach: bool = False
    for_views: bool = False
    unlisted: bool = False
    own_calls: bool = False
    confirms: frozenset[Reason] = frozenset()
    prepare: Preparation | None = None
    check: Check | None = None

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.handler.__name__

    @property
    def kind(self) -> str:
        """What of a client's record it returns, for the audit log."""
        return kind_of_tool(self.name)

    @cached_property
    def description(self) -> str:
        """The handler's docstring, for assistants."""
        return " ".join((inspect.getdoc(self.handler) or "").split())

    @cached_property
    def control(self) -> Schema | None:
        """The schema of the arguments that the server consumes; None for a tool that reads."""
        return WriteArguments() if self.writes else None

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        schema = input_schema(self.takes)
        if self.control is not None:
            schema["properties"] |= input_schema(self.control)["properties"]
        return schema

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the data of its results; None for a tool that writes."""
        return None if self.returns is None else output_schema(self.returns)

    @property
    def input_schema_in_chat(self) -> dict[str, Any]:
        """The JSON Schema of its arguments for an assistant that may confirm a call itself."""
        return {**self.input_schema, "properties": {**self.input_schema["properties"], "confirmationToken": _TOKEN}}

    async def call(self, ctx: Context, arguments: Mapping[str, Any]) -> Returned:
        """Call the handler with validated arguments and return its result."""
        return await self.handler(ctx, **_by_parameter(arguments))

    async def call_preparation(self, ctx: Context, arguments: Mapping[str, Any]) -> None:
        """Do what comes before the transaction."""
        if self.prepare is not None:
            await self.prepare(ctx, **_by_parameter(arguments))


def _by_parameter(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {snake_case(name): value for name, value in arguments.items()}


class Tools:
    """The tools of one feature."""

    def __init__(self) -> None:
        self.declared: list[Tool] = []

    def tool(
        self,
        title: str,
        *,
        access: Access,
        takes: Schema,
        confirms: Iterable[Reason] = (),
        **options: Any,
    ) -> Callable[[ToolHandler], ToolHandler]:
        """Declare a tool. `options` are further fields of Tool, such as `returns` or `writes`."""

        def declare(handler: ToolHandler) -> ToolHandler:
            if not handler.__doc__:
                raise TypeError(f"{handler.__name__}: a tool needs a docstring, its description for assistants")
            self.declared.append(Tool(title, handler, access, takes, confirms=frozenset(confirms), **options))
            return handler

        return declare


def tools_of(groups: Sequence[Tools]) -> list[Tool]:
    """Return every tool of the groups, in the order of their declaration."""
    return [tool for group in groups for tool in group.declared]
