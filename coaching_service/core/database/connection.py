"""The connection, the indexes, and what the driver's failures mean to a caller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import structlog
from bson import CodecOptions
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import IndexModel
from pymongo.errors import (
    ConnectionFailure,
    DocumentTooLarge,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from coaching_service.core.database.context import Database
from coaching_service.core.errors import BadRequest, Conflict, ServiceError, Unavailable

Client = AsyncIOMotorClient[dict[str, Any]]
WRITE_CONFLICT = 112
_REFUSED = (13, 18)  # Unauthorized, AuthenticationFailed
log = structlog.get_logger("coaching_service.database")


@dataclass(frozen=True)
class Index:
    """One index of a collection, by field names; a leading `-` sorts down.

    `expire_after` (seconds) makes MongoDB remove documents that long after the date in the first field.
    """

    fields: tuple[str, ...]
    unique: bool = False
    expire_after: int | None = None
    partial_filter: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The index's name in the database, also used in hints."""
        return "_".join(field.replace(".", "_") for field in self.fields)

    def model(self) -> IndexModel:
        """The index as the driver takes it."""
        keys = [(field.removeprefix("-"), -1 if field.startswith("-") else 1) for field in self.fields]
        options: dict[str, Any] = {"name": self.name}
        if self.unique:
            options["unique"] = True
        if self.expire_after is not None:
            options["expireAfterSeconds"] = self.expire_after
        if self.partial_filter:
            options["partialFilterExpression"] = dict(self.partial_filter)
        return IndexModel(keys, **options)


def connect(uri: str, timeout_ms: int = 5000) -> Client:
    """A client of the database at `uri`. It connects when first used; nothing is raised here."""
    return AsyncIOMotorClient(uri, serverSelectionTimeoutMS=timeout_ms, tz_aware=False, appname="coaching-service")


def database(client: Client, name: str) -> Database:
    """The database of that name."""
    return client.get_database(name, codec_options=CodecOptions(document_class=dict))


async def supports_transactions(db: Database) -> bool:
    """Whether the database is a replica set or a sharded cluster: a lone mongod takes no transactions."""
    told = await db.command("hello")
    return "setName" in told or told.get("msg") == "isdbgrid"


async def ensure_indexes(db: Database, collections: dict[str, tuple[Index, ...]]) -> list[str]:
    """Create the indexes of each collection that are missing. Gives the names of the collections."""
    there = set(await db.list_collection_names())
    for name, indexes in collections.items():
        if indexes:
            await db[name].create_indexes([index.model() for index in indexes])
        elif name not in there:
            await db.create_collection(name)
    return list(collections)


async def missing_indexes(db: Database, collections: dict[str, tuple[Index, ...]]) -> list[str]:
    """The declared indexes that the database does not have, as `collection.index`."""

    async def missing_of(name: str, indexes: Iterable[Index]) -> list[str]:
        there = await db[name].index_information()
        return [f"{name}.{index.name}" for index in indexes if index.name not in there]

    found = await asyncio.gather(*(missing_of(name, indexes) for name, indexes in collections.items()))
    return [name for names in found for name in names]


def is_write_conflict(error: BaseException) -> bool:
    """Whether another transaction holds the document this one wanted to write."""
    return isinstance(error, OperationFailure) and error.code == WRITE_CONFLICT


def as_service_error(error: Exception) -> ServiceError | None:
    """What a failure of the driver means to a caller, or None if it is not one we foresee."""
    if isinstance(error, DocumentTooLarge):
        return BadRequest("The record would grow larger than the service stores; split it")
    if isinstance(error, ConnectionFailure | WTimeoutError | ExecutionTimeout):
        return Unavailable("The database cannot be reached; try again shortly", {"Retry-After": "1"})
    if isinstance(error, OperationFailure) and error.code in _REFUSED:
        log.error("the database refuses the name and password in MONGODB_URI, or what they may do", code=error.code)
        return Unavailable("The database refuses the service; its operator has to look")
    if is_write_conflict(error):
        message = "Another request is changing the same record; read it again and retry"
        return Conflict(message, code="WRITE_CONFLICT")
    if isinstance(error, PyMongoError) and error.has_error_label("TransientTransactionError"):
        return Unavailable("The database was busy; try again shortly", {"Retry-After": "1"})
    return None
