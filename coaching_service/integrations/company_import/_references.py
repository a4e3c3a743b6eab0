"""Whether what the records of an import refer to exists in the company."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.portable import Portable, clear_values, values_at
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.company_import._dry_run import Accepted

_MAX_KNOWN = 50_000


class ReferenceCheck:
    """Looks up the documents that records refer to; `accepted` has those that a dry run does not store."""

    def __init__(self, ctx: Context, accepted: Accepted | None) -> None:
        self._ctx, self._accepted = ctx, accepted
        self._known: dict[str, set[ObjectId]] = {}

    async def load(self, portable: Portable, documents: list[dict[str, Any]]) -> None:
        """Look up what documents refer to, in one query for each collection."""
        wanted: dict[str, set[ObjectId]] = {}
        for path, collection in {**portable.references, **portable.optional_references}.items():
            for document in documents:
                values = values_at(document, path.split("."))
                wanted.setdefault(collection, set()).update(value for value in values if value is not None)
        for collection, ids in wanted.items():
            known = self._known.setdefault(collection, set())
            if len(known) > _MAX_KNOWN:
                known.clear()
            if self._accepted is not None:
                known |= ids & self._accepted.ids.get(collection, set())
            if missing := ids - known:
                where = {"_id": {"$in": list(missing)}}
                existing = await declared_collections()[collection].find(self._ctx, where, fields=("_id",))
                known |= {document["_id"] for document in existing}

    def find_missing(self, portable: Portable, document: dict[str, Any]) -> str | None:
        """Return the path of a reference to something that does not exist; None if there is none.

        Optional references to something that does not exist become null. Call `load` first.
        """
        for path, collection in portable.references.items():
            known = self._known.get(collection, set())
            values = values_at(document, path.split("."))
            if any(value is not None and value not in known for value in values):
                return path
        for path, collection in portable.optional_references.items():
            names = path.split(".")
            absent = [value for value in values_at(document, names) if value not in self._known.get(collection, set())]
            clear_values(document, names, [value for value in absent if value is not None])
        return None
