"""Errors of writes that other documents, or other writes, prevent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

from coaching_service.core.database.collections import ReadableCollection
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, ExternalIdTaken

_DUPLICATE_KEY = 11000


class DocumentExists(Conflict):
    """A document with the same identifier, or the same unique fields, exists."""

    default_code = "ALREADY_EXISTS"

    def __init__(self, field: str | None = None) -> None:
        """Create the error; `field` is `_id` or `externalId` if that is what they have in common."""
        super().__init__("Such a record exists already")
        self.field = field

    @classmethod
    def of_fields(cls, fields: Collection[str]) -> DocumentExists:
        """Return the error for the fields of the unique index that prevents a write."""
        return cls(next((name for name in ("_id", "externalId") if name in fields), None))


class AlreadyClaimed(Exception):
    """The identifier exists, or is being stored by a transaction that is still running."""


def is_duplicate(error: OperationFailure) -> bool:
    """Return whether a write failed because a document with the same unique fields exists."""
    failed = (error.details or {}).get("writeErrors") or [{"code": error.code}]
    return any(each["code"] == _DUPLICATE_KEY for each in failed)


def version_conflict() -> Conflict:
    """Return the error for a change that is based on an older version."""
    message = "The record has been changed since; read it again and retry"
    return Conflict(message, code="VERSION_CONFLICT")


@asynccontextmanager
async def external_id_conflict(ctx: Context, collection: ReadableCollection[Any]) -> AsyncIterator[None]:
    """Raise ExternalIdTaken for a write that another document with the same external identifier prevents."""
    try:
        yield
    except (DuplicateKeyError, BulkWriteError) as error:
        details = error.details or {}
        keys = [each.get("keyValue", {}) for each in (details, *details.get("writeErrors", ()))]
        if (external_id := next((str(key["externalId"]) for key in keys if "externalId" in key), None)) is None:
            raise
        where = collection.read_filter(ctx, {"externalId": external_id})
        holder = await ctx.collection(collection.name).find_one(where, {"_id": 1})  # the transaction is over
        raise ExternalIdTaken(None if holder is None else holder["_id"]) from None


@contextmanager
def taken_place(kind: str) -> Iterator[None]:
    """Raise Conflict for a write that restores a document of a kind, if another has the same unique fields by now."""
    try:
        yield
    except BulkWriteError as error:
        if not is_duplicate(error):
            raise
        message = f"Another {kind} has taken the place of the one to restore, so that this cannot be undone"
        raise Conflict(message, code="VERSION_CONFLICT") from None
