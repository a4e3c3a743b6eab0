"""Grants in the database: one document for each consent; its code and tokens are stored as hashes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.assistants.models import SCOPES, AuthorizationCode, Grant, GrantWithCoach, StoredGrant
from coaching_service.people.team import credentials

CODE_LIFETIME = timedelta(minutes=5)
ACCESS_LIFETIME = timedelta(hours=1)
GRANT_LIFETIME = timedelta(days=60)
# A spent refresh token is accepted again for so long: applications refresh in parallel.
REFRESH_GRACE = timedelta(seconds=90)
_MAX_TOKENS = 20

grants = Documents[StoredGrant](
    "assistantGrants",
    (Index(("coachId", "createdAt")), Index(("createdAt", "_id"))),
    private=private_of(StoredGrant),
    secret=True,
    global_indexes=(
        Index(("code.hash",), unique=True),
        Index(("familyHash",), unique=True, partial_filter=(("familyHash", {"$exists": True}),)),
        Index(("access.hash",)),
        Index(("expiresAt",), expire_after=0),
    ),
    cross_company_reason="a grant is found by the hash of its code or token before its company is known",
    placement=Unsharded("a token is unique among all companies, and found by its hash at each request"),
    transfer=NotExported("tokens"),
)


async def create(ctx: Context, grant: Mapping[str, object], code: AuthorizationCode) -> StoredGrant:
    """Store a grant whose code has not been exchanged yet."""
    unused = {**code, "usedAt": None}
    expires_at = now() + CODE_LIFETIME
    return await grants.insert(ctx, {**grant, "code": unused, "lastUsedAt": None, "expiresAt": expires_at})


async def list_in_use(ctx: Context, where: Filter) -> list[Grant]:
    """Return the grants of `where` whose code has been exchanged, oldest first."""
    used = where | {"code.usedAt": {"$ne": None}}
    return [with_scopes(grant) for grant in await grants.find(ctx, used, sort=("createdAt", "_id"))]


def with_scopes(grant: Grant) -> Grant:
    """Return a grant with its scopes: one stored before there were any allows all, or only reading."""
    grant["scopes"] = grant.get("scopes") or (["read"] if grant["readOnly"] else [*SCOPES])
    return grant


async def exists(ctx: Context, grant_id: ObjectId) -> bool:
    """Return whether the company has this grant and it has not expired."""
    return await grants.find_one(ctx, {"_id": grant_id, "expiresAt": {"$gt": now()}}, ("_id",)) is not None


async def delete(ctx: Context, where: Filter) -> bool:
    """Delete the grant of `where`; returns whether there was one."""
    return await grants.delete(ctx, where) is not None


async def delete_all(ctx: Context, coach_id: ObjectId) -> None:
    """Delete every grant of a coach, in the caller's transaction."""
    await grants.delete_many(ctx, {"coachId": coach_id})


async def find_by_code(services: Services, code_hash: str) -> StoredGrant | None:
    """Return the grant with this code, used or not, unless it has expired."""
    return await _find(services, {"code.hash": code_hash, "expiresAt": {"$gt": now()}})


async def find_by_family(services: Services, family_hash: str) -> StoredGrant | None:
    """Return the grant of a family of refresh tokens, unless it has expired."""
    return await _find(services, {"familyHash": family_hash, "expiresAt": {"$gt": now()}})


async def find_by_access(services: Services, access_hash: str) -> StoredGrant | None:
    """Return the grant with this access token, or None."""
    return await _find(services, {"access.hash": access_hash})


async def _find(services: Services, where: Filter) -> StoredGrant | None:
    grant: Any = await grants.across_companies(services).find_one(where)
    return grant  # type: ignore[no-any-return]  # the driver's documents are untyped


async def delete_by_id(services: Services, grant_id: ObjectId) -> None:
    """Delete a grant of any company that was found by one of its secrets."""
    await grants.across_companies(services).delete_one({"_id": grant_id})


async def exchange_code(
    services: Services, grant_id: ObjectId, access_hash: str, family_hash: str | None, refresh_hash: str | None
) -> bool:
    """Store the first tokens of a grant (None: no refresh token); returns whether its code was unused."""
    at = now()
    fields: Document = {
        "code.usedAt": at,
        "access": [{"hash": access_hash, "until": at + ACCESS_LIFETIME}],
        "expiresAt": at + (ACCESS_LIFETIME if family_hash is None else GRANT_LIFETIME),
        "updatedAt": at,
    }
    if family_hash is not None:
        fields |= {"familyHash": family_hash, "refresh": [{"hash": refresh_hash, "spentAt": None}]}
    unused = {"_id": grant_id, "code.usedAt": None}
    return (await grants.across_companies(services).update_one(unused, {"$set": fields})).modified_count == 1


async def rotate(
    services: Services, grant_id: ObjectId, refresh_hash: str, new_refresh_hash: str, access_hash: str
) -> bool:
    """Replace a refresh token by new tokens; returns whether it was unspent, or spent within the grace period."""
    at = now()
    grace = at - REFRESH_GRACE
    valid = {"hash": refresh_hash, "$or": [{"spentAt": None}, {"spentAt": {"$gte": grace}}]}
    is_spent_now = {"$and": [{"$eq": ["$$each.hash", refresh_hash]}, {"$eq": ["$$each.spentAt", None]}]}
    marked = {
        "$map": {
            "input": "$refresh",
            "as": "each",
            "in": {"hash": "$$each.hash", "spentAt": {"$cond": [is_spent_now, at, "$$each.spentAt"]}},
        }
    }
    still_valid = {"$or": [{"$eq": ["$$each.spentAt", None]}, {"$gte": ["$$each.spentAt", grace]}]}
    refresh = {"$filter": {"input": marked, "as": "each", "cond": still_valid}}
    access = {"$filter": {"input": "$access", "as": "each", "cond": {"$gt": ["$$each.until", at]}}}
    change = {
        "refresh": _last({"$concatArrays": [refresh, [{"hash": new_refresh_hash, "spentAt": None}]]}),
        "access": _last({"$concatArrays": [access, [{"hash": access_hash, "until": at + ACCESS_LIFETIME}]]}),
        "expiresAt": at + GRANT_LIFETIME,
        "updatedAt": at,
    }
    where = {"_id": grant_id, "refresh": {"$elemMatch": valid}}
    return (await grants.across_companies(services).update_one(where, [{"$set": change}])).modified_count == 1


def _last(tokens: Document) -> Document:
    return {"$slice": [tokens, -_MAX_TOKENS]}


async def find_by_token_with_coach(services: Services, access_hash: str) -> GrantWithCoach | None:
    """Return the grant with this unexpired access token, its `coach` and `company`, in one round trip.

    None if there is none, or the coach or the company is deleted.
    """
    unexpired = {"$elemMatch": {"hash": access_hash, "until": {"$gt": now()}}}
    return await _find_with_coach(services, {"access.hash": access_hash, "access": unexpired})


async def find_with_coach(services: Services, grant_id: ObjectId) -> GrantWithCoach | None:
    """Return an unexpired grant with its `coach` and `company`, as `find_by_token_with_coach` does."""
    return await _find_with_coach(services, {"_id": grant_id, "expiresAt": {"$gt": now()}})


async def _find_with_coach(services: Services, where: Filter) -> GrantWithCoach | None:
    grant: GrantWithCoach | None = await credentials.find_with_coach(
        grants, services, where, without=("code", "access", "refresh", "familyHash")
    )
    return grant


async def set_last_used(services: Services, grant: Grant) -> None:
    """Record that a grant was used, at most once a minute."""
    await credentials.set_last_used(grants, services, grant)
