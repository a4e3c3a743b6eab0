"""Companies have the settings of attention, and why clients need attention is computed for all of them."""

from __future__ import annotations

from datetime import datetime

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
_DEFAULTS = {"inactiveDays": 7, "complianceBelow": 60, "horizonDays": 3}


async def apply(db: Database, vault: Vault) -> None:
    """Add the settings, and let the background job renew the figures of the clients."""
    del vault
    await db["companies"].update_many({"attention": {"$exists": False}}, {"$set": {"attention": _DEFAULTS}})
    not_computed = {"attention": {"$exists": False}, "figuresUntil": {"$ne": _LONG_AGO}}
    await db["customers"].update_many(not_computed, {"$set": {"figuresUntil": _LONG_AGO}})
