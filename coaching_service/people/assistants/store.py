"""Grants in the database: one document for each consent; its code and tokens are stored as hashes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coaching_service.core.database.collections import Unsharded
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.assistants.models import SCOPES, Grant, GrantWithCoach, StoredGrant
from coaching_service.people.team import service

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


async def list_in_use(ctx: Context, where: Filter) -> list[Grant]:
    """Return the grants of `where` whose code has been exchanged, oldest first."""
    used = where | {"code.usedAt": {"$ne": None}}
    return [with_scopes(grant) for grant in await grants.find(ctx, used, sort=("createdAt", "_id"))]


def with_scopes(grant: Grant) -> Grant:
    """Return a grant with its scopes: one stored before there were any allows all, or only reading."""
    grant["scopes"] = grant.get("scopes") or (["read"] if grant["readOnly"] else [*SCOPES])
    return grant


def is_unexpired() -> Filter:
    """Return the condition of grants that have not expired, which are still stored for a while."""
    return {"expiresAt": {"$gt": now()}}


async def find(services: Services, where: Filter) -> StoredGrant | None:
    """Return the unexpired grant of `where`, of any company, or None."""
    grant: Any = await grants.across_companies(services).find_one(where | is_unexpired())
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
    """Replace a refresh token by new tokens; returns whether it was unspent, or spent within the grace period.

    One whose successor has been spent has none: the application has received the successor.
    """
    at = now()
    grace = at - REFRESH_GRACE
    valid = {"hash": refresh_hash, "$or": [{"spentAt": None}, {"spentAt": {"$gte": grace}}]}
    is_spent_now = {"$and": [{"$eq": ["$$each.hash", refresh_hash]}, {"$eq": ["$$each.spentAt", None]}]}
    marked = {
        "$map": {
            "input": "$refresh",
            "as": "each",
            "in": {"$mergeObjects": ["$$each", {"spentAt": {"$cond": [is_spent_now, at, "$$each.spentAt"]}}]},
        }
    }
    still_valid = {"$or": [{"$eq": ["$$each.spentAt", None]}, {"$gte": ["$$each.spentAt", grace]}]}
    refresh = {"$filter": {"input": marked, "as": "each", "cond": still_valid}}
    access = {"$filter": {"input": "$access", "as": "each", "cond": {"$gt": ["$$each.until", at]}}}
    change = {
        "refresh": _last(
            {"$concatArrays": [refresh, [{"hash": new_refresh_hash, "spentAt": None, "of": refresh_hash}]]}
        ),
        "access": _last({"$concatArrays": [access, [{"hash": access_hash, "until": at + ACCESS_LIFETIME}]]}),
        "expiresAt": at + GRANT_LIFETIME,
        "updatedAt": at,
    }
    spent_successor = {"of": refresh_hash, "spentAt": {"$ne": None}}
    where = {"_id": grant_id, "refresh": {"$elemMatch": valid, "$not": {"$elemMatch": spent_successor}}}
    return (await grants.across_companies(services).update_one(where, [{"$set": change}])).modified_count == 1


def _last(tokens: Document) -> Document:
    return {"$slice": [tokens, -_MAX_TOKENS]}


async def find_with_coach(services: Services, where: Filter) -> GrantWithCoach | None:
    """Return the grant of `where`, its `coach` and `company`, in one round trip.

    None if there is none, or the coach or the company is deleted.
    """
    grant: GrantWithCoach | None = await service.find_with_coach(
        grants, services, where, without=("code", "access", "refresh", "familyHash")
    )
    return grant
