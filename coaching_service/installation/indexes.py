"""Indexes in the database: created, compared with the declared ones, and replaced when these have changed.

The hash of the declared indexes is stored once they all exist, so that a start compares one document instead of the
indexes of each collection. What is changed in another way is found by `missing_indexes`, which removes the hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypedDict

import pymongo
from pymongo.errors import OperationFailure

from coaching_service.core.database import checks
from coaching_service.core.database.context import Collection, Database, Services
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Documents, now, registry

Declared = Mapping[str, tuple[Index, ...]]

_INDEX_NOT_FOUND, _NAMESPACE_EXISTS = 27, 48
UNUSED_AFTER = timedelta(days=30)
_INDEX_SECONDS = 3600.0  # building an index of a large collection takes longer than a request may


class IndexState(TypedDict):
    """The hash `_id` of declared indexes that all exist."""

    _id: str


_state = Documents[IndexState](
    "indexState",
    secret=True,
    cross_company_reason="the indexes are those of all companies",
    placement=Unsharded("one document"),
    transfer=NotExported("state of the service"),
    incidental=True,
    process_state=True,
)


class IndexConflict(Exception):
    """A stored index conflicts with one that the service needs; the message says what to do."""


def declared_indexes() -> dict[str, tuple[Index, ...]]:
    """Return the indexes that all collections declare, by collection."""
    return {name: collection.indexes for name, collection in registry.items()}


def hash_of(collections: Declared) -> str:
    """Return the hash of declared indexes."""
    definitions = [(name, [index.model().document for index in collections[name]]) for name in sorted(collections)]
    return hashlib.sha256(repr(definitions).encode()).hexdigest()


async def are_current(db: Database, collections: Declared) -> bool:
    """Return whether these indexes, and no others, were created last, and no comparison has missed one since."""
    return await db[_state.name].find_one({}) == {"_id": hash_of(collections)}


async def ensure_indexes(db: Database, collections: Declared) -> list[str]:
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


async def record_current(db: Database, collections: Declared) -> None:
    """Store the hash of declared indexes that all exist."""
    current = hash_of(collections)
    await db[_state.name].delete_many({"_id": {"$ne": current}})
    await db[_state.name].update_one({"_id": current}, {"$set": {}}, upsert=True)


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
                if details.get("expireAfterSeconds") == index.expire_after:
                    continue
                if index.expire_after is not None:
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


async def missing_indexes(db: Database, collections: Declared) -> list[str]:
    """Return the declared indexes that the database does not have as they are declared, as `collection.index`.

    If there are any, the next start compares all of them.
    """
    missing = []
    for name, indexes in collections.items():
        stored = await db[name].index_information()
        for index in indexes:
            wanted, details = index.model().document, stored.get(index.name, {})
            is_stored = details.get("key") == list(wanted["key"].items()) and _options(details) == _options(wanted)
            if not is_stored or details.get("expireAfterSeconds") != index.expire_after:
                missing.append(f"{name}.{index.name}")
    if missing:
        await db[_state.name].delete_many({})
    return missing


# --- Checks ----------------------------------------------------------------------------------------------------------


async def _list_undeclared(services: Services) -> list[str]:
    """Return the indexes that the service does not declare."""
    undeclared, existing = [], set(await services.db.list_collection_names())
    for name, collection in registry.items():
        expected = {"_id_", *(index.name for index in collection.indexes)}
        stored = await services.db[name].index_information() if name in existing else {}
        undeclared += [f"{name}.{index}" for index in stored.keys() - expected]
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
