"""Signed links to files: they need no credential and expire after two hours."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import cast

from coaching_service.core.audit import LinkReader
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.recording import Interface, interface_of
from coaching_service.core.ids import ObjectId

LINK_LIFETIME = timedelta(hours=2)


def file_url(ctx: Context, file_id: ObjectId | None) -> str | None:
    """Return the absolute link to a file, starting with the configured base URL; None for no file.

    It names the coach whom it is made for: opening it is recorded.
    """
    if file_id is None:
        return None
    services, caller, reader = ctx.services, ctx.principal, ""
    if caller is not None and caller.is_coach:
        via = interface_of(ctx)
        reader = f"{via}-{caller.id}" + (f"-{caller.credential_id}" if via in ("assistant", "application") else "")
    elif caller is not None and caller.impersonated_by is not None:
        reader = f"session-{caller.impersonated_by}"
    expires = int(time.time() + LINK_LIFETIME.total_seconds())
    signature = services.vault.sign(_signed_text(file_id, expires, reader))
    named = f"&reader={reader}" if reader else ""
    return f"{services.base_url}/files/{file_id}?expires={expires}{named}&signature={signature}"


def is_valid_link(services: Services, file_id: ObjectId, expires: int, signature: str, reader: str = "") -> bool:
    """Return whether a link has a valid signature and has not expired. Takes the same time for every signature."""
    signed = _signed_text(file_id, expires, reader)
    return services.vault.verify_signature(signed, signature) and expires > time.time()


def parse_reader(reader: str) -> LinkReader | None:
    """Return for whom a valid link was made; None for a client, or without a caller."""
    via, *ids = reader.split("-")
    if not ids:
        return None
    return LinkReader(cast("Interface", via), ObjectId(ids[0]), ObjectId(ids[1]) if len(ids) > 1 else None)


def _signed_text(file_id: ObjectId, expires: int, reader: str) -> str:
    return f"file:{file_id}:{expires}" + (f":{reader}" if reader else "")
