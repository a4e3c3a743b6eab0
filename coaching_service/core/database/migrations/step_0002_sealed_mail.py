"""The content of queued mail is encrypted: it holds addresses and tokens."""

from __future__ import annotations

import orjson

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

_CONTENT = ("to", "subject", "text")


async def apply(db: Database, vault: Vault) -> None:
    """Encrypt the mail that is still queued in clear."""
    unsealed = db["jobs"].find({"kind": "send_mail", "arguments.text": {"$exists": True}})
    async for job in unsealed:
        arguments = job["arguments"]
        content = orjson.dumps({name: arguments[name] for name in _CONTENT})
        sealed = vault.seal(content, f"mail:{job['_id']}")
        await db["jobs"].update_one(
            {"_id": job["_id"], "arguments.text": {"$exists": True}},
            {
                "$set": {"arguments.sealed": sealed},
                "$unset": {f"arguments.{name}": "" for name in _CONTENT},
            },
        )
