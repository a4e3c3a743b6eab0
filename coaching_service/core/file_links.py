"""Signed links to files: they need no credential and expire after two hours."""

from __future__ import annotations

import time
from datetime import timedelta

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId

LINK_LIFETIME = timedelta(hours=2)


def file_url(services: Services, file_id: ObjectId | None) -> str | None:
    """Return the absolute link to a file, starting with the configured base URL; None for no file."""
    if file_id is None:
        return None
    expires = int(time.time() + LINK_LIFETIME.total_seconds())
    signature = services.vault.sign(_signed_text(file_id, expires))
    return f"{services.base_url}/files/{file_id}?expires={expires}&signature={signature}"


def is_valid_link(services: Services, file_id: ObjectId, expires: int, signature: str) -> bool:
    """Return whether a link has a valid signature and has not expired. Takes the same time for every signature."""
    return services.vault.verify_signature(_signed_text(file_id, expires), signature) and expires > time.time()


def _signed_text(file_id: ObjectId, expires: int) -> str:
    return f"file:{file_id}:{expires}"
