"""Indexes in the database: compared with the declared ones, created, and replaced when these have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pymongo
from pymongo.errors import OperationFailure

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Collection, Database
from coaching_service.core.database.documents import declared_collections

Declared = Mapping[str, tuple[Index, ...]]
# The stored indexes of a collection by their names, as the driver describes them.
_Stored = Mapping[str, Mapping[str, Any]]

_INDEX_NOT_FOUND, _NAMESPACE_EXISTS = 27, 48
_INDEX_SECONDS = 3600.0  # building an index of a large collection takes longer than a request may


class IndexConflict(Exception):
    """A stored index conflicts with one that the service needs; the message says what to do."""


async def ensure_indexes(db: Database, collections: Declared) -> list[str]:
    """Create missing indexes, and replace those whose definition has changed; returns the names of the collections.

    Raises IndexConflict if a unique index would have to be replaced: other processes could insert duplicates meanwhile.
    """
    with pymongo.timeout(_INDEX_SECONDS):
        existing = set(await db.list_collection_names())
        stored = await _read_stored(db, [name for name in collections if name in existing])
        for name, indexes in collections.items():
            if missing := [index for index in indexes if not _is_stored(index, stored.get(name, {}))]:
                await _remove_conflicting(db[name], missing, stored.get(name, {}))
                await db[name].create_indexes([index.model() for index in missing])
            elif name not in existing:
                with _done_by_another_process(_NAMESPACE_EXISTS):
                    await db.create_collection(name, check_exists=False)
    return list(collections)


async def missing_indexes(db: Database, collections: Declared) -> list[str]:
    """Return the declared indexes that the database does not have as they are declared, as `collection.index`."""
    stored = await _read_stored(db, collections)
    return [
        f"{name}.{index.name}"
        for name, indexes in collections.items()
        for index in indexes
        if not _is_stored(index, stored[name])
    ]


async def _read_stored(db: Database, names: Iterable[str]) -> dict[str, _Stored]:
    """Return the stored indexes of collections; none of one that does not exist."""
    collections = [db[name] for name in names]
    stored = await asyncio.gather(*(each.index_information() for each in collections))
    return {each.name: indexes for each, indexes in zip(collections, stored, strict=True)}


async def _remove_conflicting(collection: Collection, indexes: Iterable[Index], stored: _Stored) -> None:
    """Change or drop the stored indexes that conflict with `indexes`."""
    for index in indexes:
        wanted = index.model().document
        keys = list(wanted["key"].items())
        for name, details in stored.items():
            is_equal = details["key"] == keys and _options(details) == _options(wanted)
            if name == index.name and is_equal:
                await _change_expiry(collection, index)
            elif name == index.name or is_equal:
                if details.get("unique") or index.unique:
                    raise IndexConflict(
                        f"The index {name} of {collection.name} differs from the index {index.name} that the "
                        f"service needs: stop the service, drop the index, and start again"
                    )
                await _drop(collection, name)


async def _drop(collection: Collection, name: str) -> None:
    with _done_by_another_process(_INDEX_NOT_FOUND):
        await collection.drop_index(name)


@contextmanager
def _done_by_another_process(code: int) -> Iterator[None]:
    """Ignore the error with this code: another process, which is starting too, has created or dropped the same."""
    try:
        yield
    except OperationFailure as error:
        if error.code != code:
            raise


def _options(definition: Mapping[str, Any]) -> tuple[bool, bool, dict[str, Any]]:
    """Return the options that make two indexes on the same fields different."""
    partial = dict(definition.get("partialFilterExpression") or {})
    return bool(definition.get("unique")), "collation" in definition, partial


async def _change_expiry(collection: Collection, index: Index) -> None:
    if index.expire_after is None:
        await _drop(collection, index.name)
        return
    change = {"name": index.name, "expireAfterSeconds": index.expire_after}
    with _done_by_another_process(_INDEX_NOT_FOUND):
        await collection.database.command("collMod", collection.name, index=change)


def _is_stored(index: Index, stored: _Stored) -> bool:
    wanted, details = index.model().document, stored.get(index.name)
    return (
        details is not None
        and details["key"] == list(wanted["key"].items())
        and _options(details) == _options(wanted)
        and details.get("expireAfterSeconds") == wanted.get("expireAfterSeconds")
    )


def declared_indexes() -> dict[str, tuple[Index, ...]]:
    """Return the indexes of the declared collections, by the name of the collection."""
    return {name: collection.indexes for name, collection in declared_collections().items()}
