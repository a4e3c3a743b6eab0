"""Errors of writes that other documents, or other writes, prevent."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from pymongo.errors import BulkWriteError, DuplicateKeyError

from coaching_service.core.errors import Conflict, ExternalIdTaken
from coaching_service.core.ids import ObjectId


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


def version_conflict(document_id: ObjectId | None = None) -> Conflict:
    """The error for a change that is based on an older version, of a document if it is known."""
    message = "The record has been changed since; read it again and retry"
    return Conflict(message, code="VERSION_CONFLICT", documentId=document_id)


@contextmanager
def external_id_conflict() -> Iterator[None]:
    """Raise ExternalIdTaken for a write that another document with the same external identifier prevents."""
    try:
        yield
    except (DuplicateKeyError, BulkWriteError) as error:
        details = error.details or {}
        if any("externalId" in each.get("keyPattern", {}) for each in (details, *details.get("writeErrors", ()))):
            raise ExternalIdTaken from None
        raise
