"""Batches whose entries are validated and saved one by one: an entry that fails does not refuse the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar, cast

from marshmallow import Schema, ValidationError, fields

from coaching_service.core import validation
from coaching_service.core.database.context import Context, Unprepared
from coaching_service.core.errors import (
    ExternalIdTaken,
    FieldError,
    InvalidFields,
    NotFound,
    ServiceError,
    invalid_field,
)
from coaching_service.core.fields import Description, Optional, output_of
from coaching_service.core.ids import ObjectId

E = TypeVar("E")
Outcome = Literal["created", "updated", "unchanged"]
_FAILED = "failed entries"

# --- Entries as they are sent -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InvalidEntry:
    """An entry of a batch that is not valid: its errors by field, relative to the entry."""

    errors: Sequence[FieldError]


class IndependentEntries(validation.ListOf):
    """A JSON array of 1 to `maximum` objects, each loaded by `schema`, or as an InvalidEntry."""

    def __init__(self, schema: type[Schema], *, maximum: int, **options: Any) -> None:
        super().__init__(fields.Nested(schema), minimum=1, maximum=maximum, **options)

    def _load_entries(self, value: list[Any], **_: Any) -> list[Any]:
        entries: list[Any] = []
        for each in value:
            try:
                entries.append(self.inner.deserialize(each))
            except ValidationError as error:
                entries.append(InvalidEntry(validation.field_errors(error)))
        return entries


# --- What became of them ----------------------------------------------------------------------------------------------


class EntryError(validation.Output):
    """What is wrong with an entry of a batch."""

    field = fields.String(metadata={"description": "The field, relative to the entry; empty for the entry itself."})
    code = fields.String(metadata={"description": "A stable code, such as `REQUIRED`."})
    message = fields.String(metadata={"description": "What is wrong, for people; it follows the name of the field."})
    _id = validation.Identifier(
        metadata={"description": "With `EXTERNAL_ID_TAKEN`: the record that has the identifier.", "optional": True}
    )


class BatchEntry(TypedDict):
    """What became of an entry: `_id` or `errors`."""

    index: Annotated[int, Description("The position of the entry in the request, from 0.")]
    _id: NotRequired[Annotated[ObjectId, Description("The identifier of the record."), Optional]]
    result: NotRequired[Annotated[Outcome, Description("What became of the record."), Optional]]
    version: NotRequired[Annotated[int, Description("The version that the record has now."), Optional]]
    errors: NotRequired[
        Annotated[
            list[FieldError],
            fields.List(fields.Nested(EntryError)),
            Description("Why nothing was created or changed."),
            Optional,
        ]
    ]


class BatchCounts(TypedDict):
    """What became of the valid entries of a batch."""

    created: Annotated[int, Description("How many records were created.")]
    updated: Annotated[int, Description("How many records were changed.")]
    unchanged: Annotated[int, Description("How many records had all of their entry already.")]


class BatchResult(BatchCounts):
    """What became of each entry, in order: inspect `errors` even though the status is 200."""

    results: Annotated[
        list[BatchEntry],
        fields.List(fields.Nested(output_of(BatchEntry, first=("index",)))),
        Description("One result for each entry."),
    ]


@dataclass
class Saved:
    """A record of an entry: its version, and what became of it. A record to create has an identifier later."""

    id: ObjectId | None
    result: Outcome
    version: int = 0


# --- Saving them ------------------------------------------------------------------------------------------------------


@contextmanager
def errors_at(path: str) -> Iterator[None]:
    """Raise errors of a part of an entry with the path of the part, such as `items.2`; empty: as they are."""
    try:
        yield
    except ServiceError as error:
        if error.status >= 500 or not path:
            raise
        raise InvalidFields(
            [{**each, "field": f"{path}.{each['field']}".strip(".")} for each in _field_errors(error)]
        ) from None


def _field_errors(error: ServiceError) -> Sequence[FieldError]:
    if isinstance(error, InvalidFields):
        return error.errors
    found: FieldError = {"field": "", "code": error.code or "INVALID", "message": str(error)}
    if isinstance(error, NotFound):
        found |= {"field": error.details["field"], "message": f"names no {error.details['resource']} that exists"}
    if isinstance(error, ExternalIdTaken):
        found |= {"field": "externalId", "message": "is in use by another record"}
        if (holder := error.details["holder"]) is not None:
            found["_id"] = holder
    return [found]


def repetitions(field: str) -> Callable[[object], None]:
    """Return a function to call with what identifies each entry: raises InvalidFields for what an earlier one had."""
    seen: set[object] = set()

    def require_first(value: object) -> None:
        if value in seen:
            raise invalid_field(field, "is the same as in an earlier entry", code="DUPLICATE")
        seen.add(value)

    return require_first


async def save_each(
    ctx: Context, entries: Sequence[E | InvalidEntry], save: Callable[[E], Awaitable[Saved]]
) -> dict[int, Saved]:
    """Call `save` with each valid entry in the caller's transaction, and return what it returns, by position.

    If entries fail, the transaction is repeated without them: each is saved whole or not at all, and the others are.
    `result_of` reports their errors.
    """
    failed = _failed(ctx)
    new: dict[int, Sequence[FieldError]] = {}
    saved: dict[int, Saved] = {}
    for index, entry in enumerate(entries):
        if index in failed or isinstance(entry, InvalidEntry):
            continue
        try:
            saved[index] = await save(entry)
        except ServiceError as error:
            if error.status >= 500:
                raise
            new[index] = _field_errors(error)
    if new:

        async def leave_out(_: Context) -> None:
            failed.update(new)

        raise Unprepared(leave_out)
    return saved


def result_of(ctx: Context, entries: Sequence[object], saved: Mapping[int, Saved]) -> BatchResult:
    """Return what became of the entries of a batch, those that failed included."""
    failed = {index: entry.errors for index, entry in enumerate(entries) if isinstance(entry, InvalidEntry)}
    failed |= _failed(ctx)
    counts = Counter(each.result for each in saved.values())
    results: list[BatchEntry] = []
    for index in range(len(entries)):
        entry: BatchEntry = {"index": index}
        if index in failed:
            entry["errors"] = list(failed[index])
        else:
            record = saved[index]
            entry |= {"_id": cast("ObjectId", record.id), "result": record.result, "version": record.version}
        results.append(entry)
    numbers = {"created": counts["created"], "updated": counts["updated"], "unchanged": counts["unchanged"]}
    return cast("BatchResult", {**numbers, "results": results})


def _failed(ctx: Context) -> dict[int, Sequence[FieldError]]:
    return cast("dict[int, Sequence[FieldError]]", ctx.resolved.setdefault(_FAILED, {}))
