"""Something of a client's in every collection that can hold any, read off the declarations: none can be forgotten."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, declared_collections
from coaching_service.core.ids import ObjectId


def of_clients() -> dict[str, Documents]:
    """Every collection whose documents belong to clients, but for the clients themselves."""
    return {name: each for name, each in declared_collections().items() if each.client_field not in (None, "_id")}


async def in_every_collection(ctx: Context, client: ObjectId, text: str, *, times: int = 1) -> None:
    """Store a document that says `text` in each, so many `times` where there may be several; unique fields say so too."""
    for name, collection in of_clients().items():
        unique = [index.fields for index in collection.indexes if index.unique]
        often = 1 if ("companyId", collection.client_field) in unique else times
        documents = [_saying(text if number == 0 else f"{text} {number}", unique) for number in range(often)]
        whose = {"companyId": ctx.company_id, str(collection.client_field): client}
        await ctx.db[name].insert_many([document | whose for document in documents])


def _saying(text: str, unique: list[tuple[str, ...]]) -> Document:
    document: Document = {"_id": ObjectId(), "text": text}
    for path in (path for fields in unique for path in fields):
        field, _, inner = path.removeprefix("-").partition(".")
        document[field] = {inner: text} if inner else text
    return document
