"""What refers to exercises and clients that an import created."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, declared_collections
from coaching_service.core.database.portable import Portable, values_at
from coaching_service.core.ids import ObjectId

# What a company has answered about names goes with the exercise.
_FOLLOWS = ("importedNames",)


async def find_used_exercises(ctx: Context, ids: Sequence[ObjectId]) -> set[ObjectId]:
    """Return which of some exercises of the company any document refers to."""
    used: set[ObjectId] = set()
    wanted = set(ids)
    for collection, path in _references("exercises") if ids else ():
        where = {path: {"$in": list(ids)}}
        for document in await collection.find(ctx, where, fields=(path,), ownership="own"):
            used |= wanted & set(values_at(document, path.split(".")))
    return used


async def find_used_customers(ctx: Context, ids: Sequence[ObjectId], since: datetime) -> set[ObjectId]:
    """Return which of some clients have documents that were created or changed after a time (UTC)."""
    used: set[ObjectId] = set()
    is_later = {"$or": [{"createdAt": {"$gt": since}}, {"version": {"$gt": 0}}]}
    for collection, path in _references("customers") if ids else ():
        where = {path: {"$in": list(ids)}} | is_later
        used |= {document[path] for document in await collection.find(ctx, where, fields=(path,), ownership="own")}
    return used


def _references(target: str) -> Iterator[tuple[Documents[Any], str]]:
    """Yield the collections whose documents refer to those of another, each with the path of the identifier."""
    for name, collection in declared_collections().items():
        transfer = collection.transfer
        if isinstance(transfer, Portable) and name not in _FOLLOWS:
            for path, of in {**transfer.references, **transfer.optional_references}.items():
                if of == target:
                    yield collection, path
