"""Documents that a test expects in the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coaching_service.core.database.context import Collection


async def stored_document(collection: Collection, where: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """The document of `where`; the test fails if there is none. `options` are those of `find_one`."""
    document = await collection.find_one(where, **options)
    assert document is not None, f"{collection.name} has no {where}"
    return document
