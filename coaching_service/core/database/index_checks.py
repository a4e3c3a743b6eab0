"""Checks of the indexes: missing, undeclared and unused ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences, check_of
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import declared_collections, now
from coaching_service.core.database.indexes import ensure_indexes, missing_indexes

UNUSED_AFTER = timedelta(days=30)
_PRIMARY = "_id_"


async def list_missing(services: Services) -> list[str]:
    """Return the declared indexes that the database does not have."""
    return await missing_indexes(services.db, _declared())


async def create_missing(services: Services) -> None:
    """Create the missing indexes."""
    await ensure_indexes(services.db, _declared())


async def list_undeclared(services: Services) -> list[str]:
    """Return the indexes that the service does not declare."""
    undeclared, existing = [], set(await services.db.list_collection_names())
    for name, collection in declared_collections().items():
        expected = {_PRIMARY, *(index.name for index in collection.indexes)}
        stored = await services.db[name].index_information() if name in existing else {}
        undeclared += [f"{name}.{index}" for index in stored.keys() - expected]
    return undeclared


async def find_unused(
    services: Services, _: CountRead, unused_after: timedelta = UNUSED_AFTER
) -> AsyncIterator[Finding]:
    """Find declared indexes that no query has used since MongoDB started, at least `unused_after` ago."""
    occurrences, existing = Occurrences(), set(await services.db.list_collection_names())
    for name, collection in declared_collections().items():
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


def _declared() -> dict[str, tuple[Index, ...]]:
    return {name: collection.indexes for name, collection in declared_collections().items()}


CHECKS = (
    check_of(
        "indexes-missing",
        "Declared indexes exist",
        list_missing,
        "Declared indexes are missing",
        "Run doctor --repair, or ensure-indexes",
        create_missing,
    ),
    check_of(
        "indexes-undeclared",
        "Existing indexes are declared",
        list_undeclared,
        "Indexes that the service does not declare",
        "Each slows down writes: drop those that nothing else needs, with db.COLLECTION.dropIndex(NAME)",
    ),
    Check("indexes-unused", "Declared indexes are used", find_unused),
)
