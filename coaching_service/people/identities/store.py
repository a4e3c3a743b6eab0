"""Sign-in identities: e-mail addresses are unique across all companies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pymongo.errors import DuplicateKeyError

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.people.identities import models as identity_models

RESET_LIFETIME = timedelta(hours=1)

identities = Documents[identity_models.StoredIdentity](
    "identities",
    (Index(("subjectId",), unique=True),),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("address",), unique=True),),
    cross_company_reason="an identity is found by e-mail address before its company is known",
    placement=Unsharded("an e-mail address is unique among all companies, and found before its company is known"),
    transfer=NotExported("passwords and sign-in addresses"),
)
claims = Documents[identity_models.IdentityClaim](
    "identityClaims",
    (Index(("subjectId",), unique=True),),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("address",)),),
    cross_company_reason="the users who claim an e-mail address are found before their companies are known",
    placement=Unsharded("found by the e-mail address, like identities"),
    transfer=NotExported("sign-in addresses"),
)
resets = Documents[identity_models.PasswordReset](
    "passwordResets",
    (Index(("subjectId",)),),
    client_field="subjectId",
    secret=True,
    expire=("createdAt", int(RESET_LIFETIME.total_seconds())),
    global_indexes=(Index(("tokenHash",), unique=True),),
    cross_company_reason="a reset is found by the hash of its token before its company is known",
    placement=Unsharded("a reset is found by its token, and exists for an hour"),
    transfer=NotExported("tokens"),
)


# --- Identities ------------------------------------------------------------------------------------------------------


async def create(
    ctx: Context,
    subject_id: ObjectId,
    kind: identity_models.SubjectKind,
    email: str,
    password_hash: str | None,
    *,
    is_confirmed: bool,
) -> None:
    """Store an identity. Raises Conflict if the e-mail address is already used to sign in."""
    await _require_other_spellings_free(ctx, subject_id, email)
    identity = {
        "address": identity_models.normalize_email(email),
        "kind": kind,
        "subjectId": subject_id,
        "passwordHash": password_hash,
        "isConfirmed": is_confirmed,
    }
    try:
        await identities.insert(ctx, identity)
    except DuplicateKeyError:
        raise email_taken() from None


async def _require_other_spellings_free(ctx: Context, subject_id: ObjectId, email: str) -> None:
    """Raise Conflict if another identity has the address in another spelling; the index finds the same one."""
    if others := [
        each for each in identity_models.spellings_of(email) if each != identity_models.normalize_email(email)
    ]:
        where = {"address": {"$in": others}, "subjectId": {"$ne": subject_id}}
        if await identities.across_companies(ctx.services).find_one(where, {"_id": 1}, session=ctx.session):
            raise email_taken()


def email_taken() -> Conflict:
    """Return the error for an e-mail address that another user signs in by."""
    return Conflict("This e-mail address is already used to sign in", code="EMAIL_TAKEN")


async def can_be_claimed(ctx: Context, email: str) -> bool:
    """Return whether an identity uses an e-mail address that it has not confirmed, and is no coach of the company."""
    where = {"address": {"$in": identity_models.spellings_of(email)}, "isConfirmed": False}
    fields = {"companyId": 1, "kind": 1}
    identity = await identities.across_companies(ctx.services).find_one(where, fields, session=ctx.session)
    return identity is not None and (identity["companyId"], identity["kind"]) != (ctx.company_id, "coach")


async def find_by_email(services: Services, email: str) -> identity_models.StoredIdentity | None:
    """Return the identity with an e-mail address, in any spelling and company, or None."""
    collection = identities.across_companies(services)
    for address in identity_models.spellings_of(email):
        identity: Any = await collection.find_one({"address": address})
        if identity is not None:
            return identity  # type: ignore[no-any-return]  # the driver's documents are untyped
    return None


async def find_by_subject(ctx: Context, subject_id: ObjectId) -> identity_models.StoredIdentity | None:
    """Return the identity of a coach or client of the company, or None."""
    fields = (
        "address",
        "passwordHash",
        "kind",
        "isConfirmed",
        "companyId",
        "subjectId",
        "passwordChangedAt",
        "createdAt",
    )
    return await identities.find_one(ctx, {"subjectId": subject_id}, fields)


async def find_by_company_and_subject(
    services: Services, company_id: ObjectId, subject_id: ObjectId
) -> identity_models.StoredIdentity | None:
    """Return the identity of a coach or client before there is a caller, or None."""
    where = {"companyId": company_id, "subjectId": subject_id}
    identity: Any = await identities.across_companies(services).find_one(where)
    return identity  # type: ignore[no-any-return]  # the driver's documents are untyped


async def set_email(ctx: Context, subject_id: ObjectId, email: str) -> None:
    """Change an identity's e-mail address, which is not confirmed then.

    Raises Conflict if it is already used to sign in.
    """
    await _require_other_spellings_free(ctx, subject_id, email)
    fields = {"address": identity_models.normalize_email(email), "isConfirmed": False}
    try:
        await identities.update(ctx, {"subjectId": subject_id}, {"$set": fields})
    except DuplicateKeyError:
        raise email_taken() from None


async def delete(ctx: Context, subject_id: ObjectId) -> None:
    """Delete the identity, claim and resets of a coach or client of the company."""
    await identities.delete_many(ctx, {"subjectId": subject_id})
    await claims.delete_many(ctx, {"subjectId": subject_id})
    await resets.delete_many(ctx, {"subjectId": subject_id})


async def delete_unconfirmed(ctx: Context, email: str) -> identity_models.StoredIdentity | None:
    """Delete the unconfirmed identity with an e-mail address in any company, and its resets; returns it, or None."""
    where = {"address": {"$in": identity_models.spellings_of(email)}, "isConfirmed": False}
    collection = identities.across_companies(ctx.services)
    identity: Any = await collection.find_one_and_delete(where, session=ctx.session)
    if identity is not None:
        subject = {"companyId": identity["companyId"], "subjectId": identity["subjectId"]}
        await resets.across_companies(ctx.services).delete_many(subject, session=ctx.session)
    return identity  # type: ignore[no-any-return]  # the driver's documents are untyped


# --- Claims ----------------------------------------------------------------------------------------------------------


async def list_claims(services: Services, email: str) -> list[identity_models.IdentityClaim]:
    """Return the claims to an e-mail address in all companies."""
    where = {"address": {"$in": identity_models.spellings_of(email)}}
    stored: list[Any] = await claims.across_companies(services).find(where).to_list(None)
    return stored


# --- Password resets -------------------------------------------------------------------------------------------------


async def find_reset(services: Services, token_hash: str) -> identity_models.PasswordReset | None:
    """Return the password reset with this token, unless it has expired."""
    where = {"tokenHash": token_hash, "createdAt": {"$gt": now() - RESET_LIFETIME}}
    reset: Any = await resets.across_companies(services).find_one(where)
    return reset  # type: ignore[no-any-return]  # the driver's documents are untyped
