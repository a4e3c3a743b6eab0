"""Data of a client in every collection that can hold it, derived from the declarations of the collections."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, registry
from coaching_service.core.ids import ObjectId


def list_client_collections() -> dict[str, Documents[Any]]:
    """The collections whose documents belong to clients, except the clients themselves, by name."""
    return {name: collection for name, collection in registry.items() if collection.client_field not in (None, "_id")}


async def insert_in_every_collection(ctx: Context, client: ObjectId, text: str, *, times: int = 1) -> None:
    """Insert documents of a client that contain `text`: `times` into each collection, one where more are impossible."""
    for name, collection in list_client_collections().items():
        unique = [index.fields for index in collection.indexes if index.unique]
        count = 1 if ("companyId", collection.client_field) in unique else times
        owner = {"companyId": ctx.company_id, **_nested(str(collection.client_field), client)}
        texts = [text if number == 0 else f"{text} {number}" for number in range(count)]
        read_by_erasure = {"kind": "undo", "status": "done"} if name == "companyJobs" else {}
        await ctx.db[name].insert_many([_document(each, unique) | read_by_erasure | owner for each in texts])


def _nested(path: str, value: object) -> Document:
    """A document with a value at a path such as `work.plan`."""
    *outer, last = path.split(".")
    document: Document = {last: value}
    for name in reversed(outer):
        document = {name: document}
    return document


def _document(text: str, unique: list[tuple[str, ...]]) -> Document:
    """A document with `text` in its fields that are unique."""
    document: Document = {"_id": ObjectId(), "text": text}
    for path in (path for fields in unique for path in fields):
        field, _, inner = path.removeprefix("-").partition(".")
        document[field] = {inner: text} if inner else text
    return document
