"""Indexes in the database: created, compared with the declared ones, and replaced when these have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pymongo
from pymongo.errors import OperationFailure

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Collection, Database

_INDEX_NOT_FOUND, _NAMESPACE_EXISTS = 27, 48
_INDEX_SECONDS = 3600.0  # building an index of a large collection takes longer than a request may


class IndexConflict(Exception):
    """A stored index conflicts with one that the service needs; the message says what to do."""


async def ensure_indexes(db: Database, collections: dict[str, tuple[Index, ...]]) -> list[str]:
    """Create missing indexes, and replace those whose definition has changed; returns the names of the collections.

    Raises IndexConflict if a unique index would have to be replaced: other processes could insert duplicates meanwhile.
    """
    with pymongo.timeout(_INDEX_SECONDS):
        existing = set(await db.list_collection_names())
        for name, indexes in collections.items():
            if indexes:
                await _ensure_indexes_of(db[name], indexes if name in existing else ())
                await db[name].create_indexes([index.model() for index in indexes])
            elif name not in existing:
                with _done_by_another_process(_NAMESPACE_EXISTS):
                    await db.create_collection(name, check_exists=False)
    return list(collections)


async def _ensure_indexes_of(collection: Collection, indexes: Iterable[Index]) -> None:
    """Change or drop the stored indexes that conflict with `indexes`."""
    stored = await collection.index_information()
    for index in indexes:
        wanted = index.model().document
        keys = list(wanted["key"].items())
        for name, details in stored.items():
            same_keys = details["key"] == keys
            if name != index.name and not (same_keys and _options(details) == _options(wanted)):
                continue
            if name == index.name and same_keys and _options(details) == _options(wanted):
                if details.get("expireAfterSeconds") != wanted.get("expireAfterSeconds"):
                    await _change_expiry(collection, index)
                continue
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
    """The options that make two indexes on the same fields different."""
    partial = dict(definition.get("partialFilterExpression") or {})
    return bool(definition.get("unique")), "collation" in definition, partial


async def _change_expiry(collection: Collection, index: Index) -> None:
    if index.expire_after is None:
        await _drop(collection, index.name)
        return
    change = {"name": index.name, "expireAfterSeconds": index.expire_after}
    with _done_by_another_process(_INDEX_NOT_FOUND):
        await collection.database.command("collMod", collection.name, index=change)


async def missing_indexes(db: Database, collections: dict[str, tuple[Index, ...]]) -> list[str]:
    """The declared indexes that the database does not have, as `collection.index`."""

    async def missing_of(name: str, indexes: Iterable[Index]) -> list[str]:
        stored = await db[name].index_information()
        return [f"{name}.{index.name}" for index in indexes if index.name not in stored]

    missing = await asyncio.gather(*(missing_of(name, indexes) for name, indexes in collections.items()))
    return [index for names in missing for index in names]
