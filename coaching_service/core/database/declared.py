"""What a collection declares: its indexes, shard key and history, which texts are found, and how it is exported.

A test fails until a collection declares how its documents leave with the export of a company, and enter another
company. See docs/export-format.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

from marshmallow import ValidationError, fields
from pymongo import IndexModel
from pymongo.collation import Collation

from coaching_service.core.errors import FieldError
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.fields import Declaration, Private, checks_of, declarations_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import field_errors

if TYPE_CHECKING:
    from coaching_service.core.database.context import Context
    from coaching_service.core.database.recording import DocumentChange

# --- Fields that every stored document has ----------------------------------------------------------------------------


# Fields of a document of any collection: each feature declares the fields of its own documents.
DocumentFields: TypeAlias = dict[str, Any]
# The value of one field of a document of any collection.
FieldValue: TypeAlias = Any


class Returned(TypedDict):
    """What every returned document has: feature models add their own fields.

    `createdAt` and `updatedAt` are UTC without a time zone, to the millisecond; `version` starts at 0 and rises by one
    with each change.
    """

    _id: ObjectId
    createdAt: datetime
    updatedAt: datetime
    version: int


class Stored(Returned):
    """The base of every stored document."""

    companyId: Annotated[ObjectId, Private]


# --- Indexes ----------------------------------------------------------------------------------------------------------

# Compares letters and their accents, not case.
IGNORE_CASE = Collation("en", strength=2)


@dataclass(frozen=True)
class Index:
    """One index of a collection, by field names; a leading `-` sorts descending.

    `expire_after` (seconds) makes MongoDB remove documents that long after the date in the first field.
    `ignore_case`: texts are compared without regard to case, by queries that say so too.
    """

    fields: tuple[str, ...]
    unique: bool = False
    expire_after: int | None = None
    partial_filter: tuple[tuple[str, Any], ...] = ()
    ignore_case: bool = False

    @property
    def name(self) -> str:
        """The index's name in the database, also used in hints."""
        return "_".join(field.replace(".", "_") for field in self.fields)

    def model(self) -> IndexModel:
        """Return the index as the driver takes it."""
        keys = [(field.removeprefix("-"), -1 if field.startswith("-") else 1) for field in self.fields]
        options: dict[str, Any] = {"name": self.name}
        if self.unique:
            options["unique"] = True
        if self.expire_after is not None:
            options["expireAfterSeconds"] = self.expire_after
        if self.partial_filter:
            options["partialFilterExpression"] = dict(self.partial_filter)
        if self.ignore_case:
            options["collation"] = IGNORE_CASE
        return IndexModel(keys, **options)


# --- Where the documents of a collection are on a sharded cluster, as each collection declares it ---------------------


@dataclass(frozen=True)
class ShardKey:
    """The fields by whose values documents are divided among the shards; `is_hashed`: by the hash of the only one.

    MongoDB enforces a unique index on each shard by itself, so it accepts only those that begin with the shard key;
    the index of `_id` is the exception, and is unique on each shard only.
    """

    fields: tuple[str, ...]
    is_hashed: bool = False

    @property
    def pattern(self) -> dict[str, int | str]:
        """The key as MongoDB takes it."""
        return dict.fromkeys(self.fields, "hashed" if self.is_hashed else 1)

    def allows(self, index: Index) -> bool:
        """Return whether a sharded collection may have this index: it is not unique, or begins with the shard key."""
        return not index.unique or index.fields[: len(self.fields)] == self.fields

    def is_served_by(self, index: Index) -> bool:
        """Return whether the index is fit for sharding: complete, comparing bytes, and beginning with the key.

        It must not have several entries for a document either, which a declaration does not show.
        """
        begins = index.fields[: len(self.fields)] == self.fields
        return begins and not self.is_hashed and not index.partial_filter and not index.ignore_case


@dataclass(frozen=True)
class Unsharded:
    """All documents are on one shard, the primary one of the database, for this reason."""

    reason: str


Placement = ShardKey | Unsharded
BY_COMPANY = ShardKey(("companyId",))


def find_index(key: ShardKey, indexes: Iterable[Index]) -> Index | None:
    """Return the first index that sharding by `key` can use, or None."""
    return next((index for index in indexes if key.is_served_by(index)), None)


# --- Which texts of a collection are found by their words, as each collection declares it -----------------------------


SearchedType = Literal["customers", "workouts", "notes", "messages", "answers", "comments", "exercises", "programs"]


class SearchedText(NamedTuple):
    """A text of a document: its type, its title, and the day (`YYYY-MM-DD`) or time (UTC) that it is from.

    `is_named`: the words of the title are found too.
    """

    type: SearchedType
    title: str
    text: str
    at: str | datetime | None
    is_named: bool = True


@dataclass(frozen=True)
class Searched:
    """What is found of the documents of a collection: at most one text of each of `types`.

    `texts` returns them, from `fields` alone; it is also called with a part of them, before and after a change.
    """

    types: tuple[SearchedType, ...]
    fields: tuple[str, ...]
    texts: Callable[[Mapping[str, Any]], Iterable[SearchedText]]


# --- What the change log records, as each collection declares it ------------------------------------------------------


Action = Literal["created", "changed", "deleted"]


class EventData(TypedDict):
    """An event derived from a change of a document.

    `fields` of an `.updated` event are the names of what changed, by default the document's changed fields.
    """

    type: EventType
    data: Mapping[str, EventValue]
    fields: NotRequired[list[str]]


# Returns the event for an action on a document, given its `event_fields` by path and the paths that were written;
# None if the action is not an event.
EventOf = Callable[[Action, Mapping[str, Any], Collection[str]], EventData | None]


@dataclass(frozen=True)
class History:
    """How the change log records a collection.

    `kind` is the public name of its documents. `event` derives the event of a change from the fields in
    `event_fields`, which are read with each change. `undo`: "restore" puts previous values back, and fails if the
    document has changed since; "derived" does the same but skips a document that has changed since, as it is computed
    again from others; "never" for documents that refer to files or people outside the service; "changes" for documents
    whose creation and deletion cannot be undone; "creation" if only the creation of a document can be undone.
    `omit`: fields that are not recorded, such as hashes.
    `public_names`: the public fields that private or omitted ones are returned as, by the name of the stored one.
    `kind_of` derives another kind of some documents from the fields in `event_fields`.
    `contact` yields what of a document reaches people, or is worded as if a person wrote to them: an assistant has to
    have it confirmed. `check` is called with what a transaction has changed before it ends, and raises for what must
    not be stored.
    """

    kind: str
    event: EventOf | None = None
    event_fields: tuple[str, ...] = ()
    undo: Literal["restore", "derived", "changes", "creation", "never"] = "restore"
    omit: tuple[str, ...] = ()
    public_names: Mapping[str, str] = field(default_factory=dict)
    kind_of: Callable[[Mapping[str, Any]], str] | None = None
    contact: Callable[[Mapping[str, Any]], Iterable[Hashable]] | None = None
    check: Callable[[Context, Sequence[DocumentChange]], Awaitable[None]] | None = None

    def can_undo(self, action: Action) -> bool:
        """Return whether an action on one of the documents can be undone."""
        only = {"changes": "changed", "creation": "created", "never": None}.get(self.undo, action)
        return action == only

    def without_omitted(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a document that are recorded."""
        return {name: value for name, value in document.items() if name not in self.omit}


# --- How documents leave with the export of a company, and enter another company --------------------------------------
# Each collection declares it with its `Documents`; a test fails until it does. See docs/export-format.md.


# The order of import: a document refers only to documents of earlier stages.
LIBRARY, TEMPLATES, CLIENTS, TRAINING, RECORDS, CONVERSATIONS = range(6)
_METADATA = ("companyId", "createdAt", "updatedAt", "version")
FILE_FIELDS = ("fileId", "thumbnailId")
FileLimit = Literal["photo", "plan", "attachment"]


@dataclass(frozen=True)
class NotExported:
    """The collection is not part of the export of a company, for this reason."""

    reason: str


@dataclass(frozen=True)
class FileRule:
    """What the files of a collection are: their content types, and which of the upload limits applies."""

    content_types: tuple[str, ...]
    size_limit: FileLimit


@dataclass(frozen=True)
class Portable:
    """A collection that is exported with its company and imported into another.

    `model` is the TypedDict of its stored documents. Its fields are exported, with `extra` fields (by type) that the
    model leaves out, and without those in `computed` (paths), which `complete` computes again: it returns the document
    to store, or raises InvalidFields. Values of fields that declare limits must observe them, and so must those at
    the paths of `checks`, which are fields of request schemas. `references` are paths of identifiers of documents, by
    path the collection: they must exist; those in `optional_references` become null if they do not. `files`: documents
    have files, in objects with a `fileId`. `after` follows the import of documents that have just been stored, in their
    transaction. `keeps`: the metadata that is data too, apart from `createdAt`.
    """

    model: Any
    stage: int
    extra: Mapping[str, Any] = field(default_factory=dict)
    computed: tuple[str, ...] = ()
    checks: Mapping[str, fields.Field[Any]] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    optional_references: Mapping[str, str] = field(default_factory=dict)
    files: FileRule | None = None
    complete: Callable[[dict[str, Any]], dict[str, Any]] = lambda document: document
    after: Callable[[Context, Sequence[Mapping[str, Any]]], Awaitable[None]] | None = None
    keeps: tuple[Literal["updatedAt", "version"], ...] = ()

    @cached_property
    def exported_fields(self) -> dict[str, Declaration]:
        """The fields of an exported document, by name."""
        extra = {name: Declaration(name, hint, is_required=True, annotations=()) for name, hint in self.extra.items()}
        dropped = {*_METADATA, *self.computed} - {"createdAt", *self.keeps}
        declared = {**declarations_of(self.model), **extra}
        return {name: each for name, each in declared.items() if name not in dropped}

    @cached_property
    def all_checks(self) -> dict[str, fields.Field[Any]]:
        """What values must satisfy, by path: the limits that the model declares, and `checks`."""
        return {**checks_of(self.model), **self.checks}

    def to_export(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a stored document as it is exported."""
        exported = {name: document[name] for name in self.exported_fields if name in document}
        for path in self.computed:
            if "." in path:
                exported = _without(exported, path.split("."))
        return exported


def find_invalid(document: Mapping[str, Any], checks: Mapping[str, fields.Field[Any]]) -> Iterator[list[FieldError]]:
    """Yield the errors of each value that is not what the fields in `checks`, by path, allow."""
    for path, check in checks.items():
        for value in values_at(document, path.split(".")):
            try:
                if value is not None:
                    check.deserialize(value)
            except ValidationError as error:
                yield [{**each, "field": path} for each in field_errors(error)]


def values_at(value: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path of names; the entries of a list have the same path."""
    if isinstance(value, list):
        for entry in value:
            yield from values_at(entry, names)
    elif not names:
        yield value
    elif isinstance(value, Mapping) and names[0] in value:
        yield from values_at(value[names[0]], names[1:])


def clear_values(value: Any, names: Sequence[str], absent: Iterable[Any]) -> None:
    """Set the values at a path to None that are among `absent`."""
    if isinstance(value, list):
        for entry in value:
            clear_values(entry, names, absent)
    elif isinstance(value, dict) and names[0] in value:
        if len(names) > 1:
            clear_values(value[names[0]], names[1:], absent)
        elif value[names[0]] in absent:
            value[names[0]] = None


def file_holders(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a document that have a `fileId`."""
    if isinstance(value, list):
        for entry in value:
            yield from file_holders(entry)
    elif isinstance(value, dict):
        if isinstance(value.get(FILE_FIELDS[0]), ObjectId):
            yield value
        for entry in value.values():
            if isinstance(entry, dict | list):
                yield from file_holders(entry)


def _without(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_without(entry, names) for entry in value]
    if not isinstance(value, Mapping) or names[0] not in value:
        return value
    if len(names) == 1:
        return {name: entry for name, entry in value.items() if name != names[0]}
    return {**value, names[0]: _without(value[names[0]], names[1:])}
