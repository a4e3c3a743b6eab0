"""Signed links to files: good for two hours, needing no credential."""

from __future__ import annotations

import time
from datetime import timedelta

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId

LINK_LIFETIME = timedelta(hours=2)


def file_url(services: Services, file_id: ObjectId | None) -> str | None:
    """The link to a file, absolute, from the base address of the settings; None for no file."""
    if file_id is None:
        return None
    expires = int(time.time() + LINK_LIFETIME.total_seconds())
    signature = services.vault.sign(_text(file_id, expires))
    return f"{services.base_url}/files/{file_id}?expires={expires}&signature={signature}"


def is_valid_link(services: Services, file_id: ObjectId, expires: int, signature: str) -> bool:
    """Whether a link is one of ours and has not ended; the comparison takes the same time for any signature."""
    return services.vault.verify_signature(_text(file_id, expires), signature) and expires > time.time()


def _text(file_id: ObjectId, expires: int) -> str:
    return f"file:{file_id}:{expires}"
