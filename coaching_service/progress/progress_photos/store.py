"""Progress photos in the database: one document for a client and date, with three sides."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import RECORDS, FileRule, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.progress.progress_photos.models import StoredPhotos

SIDES = {"1": "front", "2": "back", "3": "side"}

ORDER = ("-date",)


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData | None:
    data = {"photoId": known["_id"], "date": known["date"]}
    return {"type": "photo.deleted", "data": data} if action == "deleted" else None


photos = Documents[StoredPhotos](
    "progressPhotos",
    (Index(("customerId", "-date"), unique=True),),
    client_field="customerId",
    history=History("progress_photo", _event, ("date",), undo="never"),
    transfer=Portable(
        StoredPhotos,
        RECORDS,
        references={"customerId": "customers"},
        files=FileRule(IMAGE_TYPES, "photo"),
    ),
)
