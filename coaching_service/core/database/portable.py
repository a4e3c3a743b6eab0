"""How the documents of a collection leave with the export of a company, and enter another company.

Each collection declares it with its `Documents`; a test fails until it does. See docs/export-format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NotRequired, Protocol, TypedDict

from marshmallow import ValidationError, fields

from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.field_schemas import checks_of
from coaching_service.core.fields import declarations_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.json_conversion import Converter, MapId, converter_of
from coaching_service.core.validation import field_errors

if TYPE_CHECKING:
    from coaching_service.core.database.context import Context

# The order of import: a document refers only to documents of earlier stages.
LIBRARY, TEMPLATES, CLIENTS, TRAINING, RECORDS, CONVERSATIONS = range(6)
_METADATA = ("companyId", "createdAt", "updatedAt", "version")
_IN_IMPORTS = {"DATE_OUT_OF_RANGE": "INVALID_DATE"}  # as rows of other files report it
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


class AfterImport(Protocol):
    """Called with the documents just stored, in their transaction."""

    async def __call__(self, ctx: Context, documents: Sequence[Mapping[str, Any]]) -> None:
        """Follow the import of `documents`."""


@dataclass(frozen=True)
class Portable:
    """A collection that is exported with its company and imported into another.

    `model` is the TypedDict of its stored documents. Its fields are exported, with `extra` fields (by type) that the
    model leaves out, and without those in `computed` (paths), which `complete` computes again: it returns the document
    to store, or raises InvalidFields. Values of fields that declare limits must observe them, and so must those at
    the paths of `checks`, which are fields of request schemas. `references` are paths of identifiers of documents, by
    path the collection: they must exist; those in `optional_references` become null if they do not. `files`: documents
    have files, in objects with a `fileId`. `keeps`: the metadata that is data too, apart from `createdAt`.
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
    after: AfterImport | None = None
    keeps: tuple[Literal["updatedAt", "version"], ...] = ()

    @cached_property
    def _top_level(self) -> dict[str, Any]:
        hints = {**{each.name: each.hint for each in declarations_of(self.model).values()}, **self.extra}
        metadata = ("createdAt", *self.keeps)
        dropped = {name for name in _METADATA if name not in metadata} | set(self.computed)
        return {name: hint for name, hint in hints.items() if name not in dropped}

    @cached_property
    def all_checks(self) -> dict[str, fields.Field[Any]]:
        """What values must satisfy, by path: the limits that the model declares, and `checks`."""
        return {**checks_of(self.model), **self.checks}

    @property
    def exported_fields(self) -> tuple[str, ...]:
        """The names of the fields of an exported document."""
        return tuple(self._top_level)

    def to_export(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a stored document as it is exported."""
        exported = {name: document[name] for name in self._top_level if name in document}
        for path in self.computed:
            if "." in path:
                exported = _without(exported, path.split("."))
        return exported

    @cached_property
    def _converter(self) -> Converter:
        required = {each.name for each in declarations_of(self.model).values() if each.is_required} - {"updatedAt"}
        hints = {
            name: hint if name in self.extra or name in required else NotRequired[hint]
            for name, hint in self._top_level.items()
        }
        return converter_of(TypedDict(f"Imported{self.model.__name__}", hints))  # type: ignore[operator]  # made at run time

    def from_export(self, record: Any, map_id: MapId) -> dict[str, Any]:
        """Return the document to store for a record of an export, with identifiers mapped by `map_id`.

        Raises InvalidFields if the record is not one that the service could have stored.
        """
        document: dict[str, Any] = self._converter(record, "", map_id)
        for errors in find_invalid(document, self.all_checks):
            raise InvalidFields([{**each, "code": _IN_IMPORTS.get(each["code"], each["code"])} for each in errors])
        return self.complete(document)


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
