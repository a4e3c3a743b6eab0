"""Authenticator applications and passkeys in the database."""

from __future__ import annotations

from typing import Any

from pymongo.errors import DuplicateKeyError

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.people.second_factor import models

passkeys = Documents[models.StoredPasskey](
    "passkeys",
    (Index(("subjectId", "createdAt")),),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("credentialId",), unique=True),),
    cross_company_reason="a passkey signs in before its company is known",
    placement=Unsharded("a passkey is unique among all companies, and found before its company is known"),
    transfer=NotExported("credentials"),
)
factors = Documents[models.StoredFactor](
    "secondFactors",
    (Index(("subjectId", "isConfirmed"), unique=True),),
    client_field="subjectId",
    secret=True,
    cross_company_reason="the secrets of all companies are encrypted with another master key",
    transfer=NotExported("secrets"),
)


async def list_passkeys(ctx: Context, subject_id: ObjectId) -> list[models.StoredPasskey]:
    """Return the passkeys of a coach or client of the company, the oldest first."""
    return await passkeys.find(ctx, {"subjectId": subject_id}, sort=("createdAt",))


async def insert_passkey(ctx: Context, passkey: Document) -> models.StoredPasskey:
    """Store a passkey. Raises Conflict if it is stored already, of whichever user."""
    try:
        return await passkeys.insert(ctx, passkey)
    except DuplicateKeyError:
        raise Conflict("This passkey is registered already", code="PASSKEY_EXISTS") from None


async def find_passkey(services: Services, credential_id: str) -> models.StoredPasskey | None:
    """Return the passkey with this identifier, in any company, or None."""
    found: Any = await passkeys.across_companies(services).find_one({"credentialId": credential_id})
    return found  # type: ignore[no-any-return]  # the driver's documents are untyped


async def record_use(services: Services, passkey: models.StoredPasskey, sign_count: int) -> bool:
    """Store that a passkey was used; returns False if it was used or removed since it was read."""
    unchanged = {"_id": passkey["_id"], "companyId": passkey["companyId"], "signCount": passkey["signCount"]}
    used = {"$set": {"signCount": sign_count, "lastUsedAt": now()}}
    return (await passkeys.across_companies(services).update_one(unchanged, used)).matched_count == 1
