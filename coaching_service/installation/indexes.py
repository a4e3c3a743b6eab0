"""Indexes in the database: compared with the declared ones, created, and replaced when these have changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pymongo
from pymongo.errors import OperationFailure

from coaching_service.core.database import checks
from coaching_service.core.database.context import Collection, Database, Services
from coaching_service.core.database.declared import Index
from coaching_service.core.database.documents import now, registry

Declared = Mapping[str, tuple[Index, ...]]

_INDEX_NOT_FOUND, _NAMESPACE_EXISTS = 27, 48
UNUSED_AFTER = timedelta(days=30)
_INDEX_SECONDS = 3600.0  # building an index of a large collection takes longer than a request may


class IndexConflict(Exception):
    """A stored index conflicts with one that the service needs; the message says what to do."""


def declared_indexes() -> dict[str, tuple[Index, ...]]:
    """Return the indexes that all collections declare, by collection."""
    return {name: collection.indexes for name, collection in registry.items()}


async def ensure_indexes(db: Database, collections: Declared) -> list[str]:
    """Create missing indexes, and replace those whose definition has changed; returns the names of the collections.

    Raises IndexConflict if a unique index would have to be replaced: other processes could insert duplicates meanwhile.
    """
    with pymongo.timeout(_INDEX_SECONDS):
        existing = set(await db.list_collection_names())
        for name, (stored, missing) in (await _compare(db, collections)).items():
            if missing:
                for index in missing:
                    await _replace_conflicting(db[name], index, stored)
                await db[name].create_indexes([index.model() for index in missing])
            elif name not in existing:
                with _done_by_another_process(_NAMESPACE_EXISTS):
                    await db.create_collection(name, check_exists=False)
    return list(collections)


async def missing_indexes(db: Database, collections: Declared) -> list[str]:
    """Return the declared indexes that the database does not have as they are declared, as `collection.index`."""
    compared = await _compare(db, collections)
    return [f"{name}.{index.name}" for name, (_, missing) in compared.items() for index in missing]


async def _compare(db: Database, collections: Declared) -> dict[str, tuple[Mapping[str, Any], list[Index]]]:
    """Return the stored indexes of each collection, by name, and those that are missing or not as declared."""
    stored = await asyncio.gather(*(db[name].index_information() for name in collections))
    compared: dict[str, tuple[Mapping[str, Any], list[Index]]] = {}
    for (name, indexes), by_name in zip(collections.items(), stored, strict=True):
        missing = [each for each in indexes if not _is_as_declared(each, by_name.get(each.name, {}))]
        compared[name] = by_name, missing
    return compared


def _is_as_declared(index: Index, stored: Mapping[str, Any]) -> bool:
    return _is_same(index, stored) and stored.get("expireAfterSeconds") == index.expire_after


def _is_same(index: Index, stored: Mapping[str, Any]) -> bool:
    """Return whether a stored index has the fields of `index`, and the options that make two indexes different."""
    wanted = index.model().document
    return stored.get("key") == list(wanted["key"].items()) and _options(stored) == _options(wanted)


async def _replace_conflicting(collection: Collection, index: Index, stored: Mapping[str, Any]) -> None:
    """Change or drop the stored indexes that conflict with `index`."""
    for name, details in stored.items():
        is_same = _is_same(index, details)
        if name != index.name and not is_same:
            continue
        if name == index.name and is_same and index.expire_after is not None:
            change = {"name": index.name, "expireAfterSeconds": index.expire_after}
            with _done_by_another_process(_INDEX_NOT_FOUND):
                await collection.database.command("collMod", collection.name, index=change)
            continue
        if details.get("unique") or index.unique:
            raise IndexConflict(
                f"The index {name} of {collection.name} differs from the index {index.name} that the "
                f"service needs: stop the service, drop the index, and start again"
            )
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


# --- Checks ----------------------------------------------------------------------------------------------------------


async def _list_undeclared(services: Services) -> list[str]:
    """Return the indexes that the service does not declare."""
    undeclared = []
    for name, indexes in declared_indexes().items():
        stored = await services.db[name].index_information()
        undeclared += [f"{name}.{index}" for index in stored.keys() - {"_id_", *(each.name for each in indexes)}]
    return undeclared


async def find_unused(
    services: Services, _: checks.CountRead, unused_after: timedelta = UNUSED_AFTER
) -> AsyncIterator[checks.Finding]:
    """Find declared indexes that no query has used since MongoDB started, at least `unused_after` ago."""
    occurrences, existing = checks.Occurrences(), set(await services.db.list_collection_names())
    for name, collection in registry.items():
        # Unique indexes, and those that expire documents, are there for what they enforce.
        optional = {each.name for each in collection.indexes if not each.unique and each.expire_after is None}
        if name not in existing or not optional:
            continue
        async for statistics in services.db[name].aggregate([{"$indexStats": {}}]):
            accesses = statistics["accesses"]
            is_unused = accesses["ops"] == 0 and now() - accesses["since"] >= unused_after
            if statistics["name"] in optional and is_unused:
                occurrences.add(f"{name}.{statistics['name']}")
    advice = "Nothing to do: features that this installation does not use need them. Report them if you use all"
    yield occurrences.finding("Declared indexes that no query has used", advice, is_notice=True)


CHECKS = (
    checks.check_of(
        "indexes-missing",
        "Declared indexes exist",
        lambda services: missing_indexes(services.db, declared_indexes()),
        "Declared indexes are missing",
        "Run doctor --repair, or ensure-indexes",
        lambda services: ensure_indexes(services.db, declared_indexes()),
    ),
    checks.check_of(
        "indexes-undeclared",
        "Existing indexes are declared",
        _list_undeclared,
        "Indexes that the service does not declare",
        "Each slows down writes: drop those that nothing else needs, with db.COLLECTION.dropIndex(NAME)",
    ),
    checks.Check("indexes-unused", "Declared indexes are used", find_unused),
)
