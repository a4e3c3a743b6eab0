"""What the change log records of the writes to one collection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pymongo.errors import BulkWriteError, DuplicateKeyError

from coaching_service.core.database.collections import D, Document, Filter, ReadableCollection
from coaching_service.core.database.conflicts import find_taken_external_id
from coaching_service.core.database.context import Context
from coaching_service.core.database.field_changes import touched_paths, values_at
from coaching_service.core.errors import ExternalIdTaken
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class RecordedCollection(ReadableCollection[D]):
    """A collection whose changes are recorded if it declares its `history`."""

    @asynccontextmanager
    async def _external_id_conflict(self, ctx: Context) -> AsyncIterator[None]:
        """Raise ExternalIdTaken for a write that another document with the same external identifier prevents."""
        try:
            yield
        except (DuplicateKeyError, BulkWriteError) as error:
            if (external_id := find_taken_external_id(error)) is None:
                raise
            where = self.read_filter(ctx, {"externalId": external_id})
            holder = await self._in(ctx).find_one(where, {"_id": 1})  # the transaction is over
            raise ExternalIdTaken(None if holder is None else holder["_id"]) from None

    def _needs_transaction(self, ctx: Context) -> bool:
        """Whether a write has to be put into a transaction: it has an entry in the change log, or is cached."""
        return (self.history is not None or self.is_cached) and ctx.session is None

    def _recorded_projection(self, paths: Sequence[str]) -> dict[str, int]:
        """The projection to what the change log needs of a document before or after a change of `paths`."""
        names = [*paths, "version", *(self.history.event_fields if self.history else ())]
        if self.client_field:
            names.append(self.client_field)
        return dict.fromkeys(_without_nested(names), 1)

    def _result_projection(
        self, fields: Sequence[str] | None, change: Document, appended: tuple[str, Document] | None
    ) -> dict[str, int] | None:
        """The projection of an updated document: to `fields`, and what the change log needs."""
        if self.history is None:
            return self.projection(fields)
        if fields is None:
            return None
        paths = [f"{appended[0]}._id"] if appended else touched_paths(change)
        return self._recorded_projection([*fields, *paths])

    def _requested(self, document: Document, fields: Sequence[str] | None) -> Mapping[str, Any]:
        """A document with only `fields`, or without its private fields."""
        if fields is None:
            return {name: value for name, value in document.items() if name not in self.private}
        names = {"_id", *(name.partition(".")[0] for name in fields)}
        return {name: value for name, value in document.items() if name in names}

    def _client_of(self, known: Mapping[str, Any]) -> ObjectId | None:
        return known.get(self.client_field) if self.client_field else None

    def _record_created(self, ctx: Context, documents: Sequence[Document]) -> None:
        if self.history is not None:
            for document in documents:
                ctx.changes.add_created(self.name, self.history, self._client_of(document), document)

    def _record_deleted(self, ctx: Context, documents: Sequence[Document]) -> None:
        if self.history is not None:
            for document in documents:
                ctx.changes.add_deleted(self.name, self.history, self._client_of(document), document)

    def _record_changed(self, ctx: Context, before: Document, after: Document, paths: Sequence[str]) -> None:
        if self.history is None:
            return
        recorded = [path for path in paths if path not in self.history.omit]
        earlier, later = values_at(before, recorded), values_at(after, recorded)
        values = {path: (earlier[path], later[path]) for path in recorded}
        versions = (before["version"], after["version"])
        known = {**before, **after}
        ctx.changes.add_changed(
            self.name,
            self.history,
            self._client_of(known),
            after["_id"],
            versions,
            values_at(known, self.history.event_fields),
            values,
            [path for path in paths if path in self.history.omit],
        )

    def _record_update(
        self,
        ctx: Context,
        where: Filter,
        change: Document,
        previous: Mapping[str, Any] | None,
        updated: Document,
        appended: tuple[str, Document] | None,
    ) -> None:
        if self.history is None:
            return
        if appended is None or previous is not None:
            self._record_changed(ctx, dict(previous or {}), updated, touched_paths(change))
            return
        path, element = appended
        known = {**where, **updated}
        order = [each["_id"] for each in updated[path][:-1]]
        versions = (updated["version"] - 1, updated["version"])
        ctx.changes.add_element(
            self.name,
            self.history,
            self._client_of(known),
            updated["_id"],
            versions,
            values_at(known, self.history.event_fields),
            path,
            order,
            element,
        )

    def _record_upsert(
        self, ctx: Context, fields: Mapping[str, Any], previous: Document | None, stored: Document
    ) -> None:
        if self.history is None:
            return
        if previous is None:
            self._record_created(ctx, [stored])
        else:
            self._record_changed(ctx, previous, stored, list(fields))


def _without_nested(names: Sequence[str]) -> list[str]:
    """The names without those inside another one, which MongoDB does not accept in one projection."""
    unique = list(dict.fromkeys(names))
    return [name for name in unique if not any(name.startswith(f"{other}.") for other in unique)]
