"""Grants in the database: one document a consent, holding its code and tokens as hashes only."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.ids import ObjectId

CODE_LIVES = timedelta(minutes=5)
ACCESS_LIVES = timedelta(hours=1)
GRANT_LIVES = timedelta(days=60)
# A client may present a spent refresh token again for so long: parallel calls and two addresses of one client do.
REFRESH_GRACE = timedelta(seconds=90)
_TOKENS_KEPT = 20
_LAST_USED_EVERY = timedelta(minutes=1)

grants = Documents[Document](
    "assistantGrants",
    (Index(("coachId", "createdAt")), Index(("createdAt", "_id"))),
    private=("companyId", "code", "familyHash", "refresh", "access", "expiresAt"),
    secret=True,
    global_indexes=(
        Index(("code.hash",), unique=True),
        Index(("familyHash",), unique=True, partial_filter=(("familyHash", {"$exists": True}),)),
        Index(("access.hash",)),
        Index(("expiresAt",), expire_after=0),
    ),
    cross_company_reason="a grant is found by the hash of its code or token before its company is known",
)


async def add(ctx: Context, grant: Document, code: Document) -> Document:
    """Store a consent whose `code` (hash and what it is bound to) has not been exchanged yet."""
    code = code | {"usedAt": None}
    return await grants.insert(ctx, grant | {"code": code, "lastUsedAt": None, "expiresAt": now() + CODE_LIVES})


async def in_use(ctx: Context, where: Filter) -> list[Document]:
    """The grants of `where` that have been taken up, the oldest first."""
    return await grants.find(ctx, where | {"code.usedAt": {"$ne": None}}, sort=("createdAt", "_id"))


async def remove(ctx: Context, where: Filter) -> Document | None:
    """End the grant that `where` names; gives what it was, or None."""
    return await grants.delete(ctx, where)


async def remove_all(ctx: Context, coach_id: ObjectId) -> None:
    """End every grant of a coach."""
    await grants.delete_many(ctx, {"coachId": coach_id})


async def by_code(services: Services, code_hash: str) -> Document | None:
    """The grant whose code has this hash, used or not, unless it has run out."""
    return await grants.across_companies(services).find_one({"code.hash": code_hash, "expiresAt": {"$gt": now()}})


async def by_family(services: Services, family_hash: str) -> Document | None:
    """The grant of a family of refresh tokens, or None."""
    return await grants.across_companies(services).find_one({"familyHash": family_hash, "expiresAt": {"$gt": now()}})


async def by_access(services: Services, access_hash: str) -> Document | None:
    """The grant with an access token of this hash, or None."""
    return await grants.across_companies(services).find_one({"access.hash": access_hash})


async def drop(services: Services, grant_id: ObjectId) -> None:
    """End a grant that has been found by one of its secrets."""
    await grants.across_companies(services).delete_one({"_id": grant_id})


async def take_up(
    services: Services, grant_id: ObjectId, access_hash: str, family_hash: str | None, refresh_hash: str | None
) -> bool:
    """Exchange a grant's code for its first tokens (None: no refresh token); whether nobody had before."""
    at = now()
    fields: Document = {
        "code.usedAt": at,
        "access": [{"hash": access_hash, "until": at + ACCESS_LIVES}],
        "expiresAt": at + (ACCESS_LIVES if family_hash is None else GRANT_LIVES),
        "updatedAt": at,
    }
    if family_hash is not None:
        fields |= {"familyHash": family_hash, "refresh": [{"hash": refresh_hash, "spentAt": None}]}
    unused = {"_id": grant_id, "code.usedAt": None}
    return (await grants.across_companies(services).update_one(unused, {"$set": fields})).modified_count == 1


async def rotate(
    services: Services, grant_id: ObjectId, refresh_hash: str, new_refresh_hash: str, access_hash: str
) -> bool:
    """Exchange a refresh token that is unspent, or was spent within the grace; whether it was such a one."""
    at = now()
    grace = at - REFRESH_GRACE
    good = {"hash": refresh_hash, "$or": [{"spentAt": None}, {"spentAt": {"$gte": grace}}]}
    spent_now = {"$and": [{"$eq": ["$$each.hash", refresh_hash]}, {"$eq": ["$$each.spentAt", None]}]}
    marked = {
        "$map": {
            "input": "$refresh",
            "as": "each",
            "in": {"hash": "$$each.hash", "spentAt": {"$cond": [spent_now, at, "$$each.spentAt"]}},
        }
    }
    still_good = {"$or": [{"$eq": ["$$each.spentAt", None]}, {"$gte": ["$$each.spentAt", grace]}]}
    refresh = {"$filter": {"input": marked, "as": "each", "cond": still_good}}
    access = {"$filter": {"input": "$access", "as": "each", "cond": {"$gt": ["$$each.until", at]}}}
    change = {
        "refresh": _last({"$concatArrays": [refresh, [{"hash": new_refresh_hash, "spentAt": None}]]}),
        "access": _last({"$concatArrays": [access, [{"hash": access_hash, "until": at + ACCESS_LIVES}]]}),
        "expiresAt": at + GRANT_LIVES,
        "updatedAt": at,
    }
    where = {"_id": grant_id, "refresh": {"$elemMatch": good}}
    return (await grants.across_companies(services).update_one(where, [{"$set": change}])).modified_count == 1


def _last(tokens: Document) -> Document:
    return {"$slice": [tokens, -_TOKENS_KEPT]}


async def resolve(services: Services, access_hash: str) -> Document | None:
    """The grant whose access token has this hash and has not ended, with its `coach` and `company`, in one round
    trip; None if any is gone."""
    found = grants.across_companies(services).aggregate(
        [
            {"$match": {"access.hash": access_hash, "access": _unended(access_hash)}},
            {"$project": {"code": 0, "access": 0, "refresh": 0, "familyHash": 0}},
            {"$lookup": {"from": "coaches", "localField": "coachId", "foreignField": "_id", "as": "coach"}},
            {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        ]
    )
    for grant in await found.to_list(1):
        if grant["coach"] and grant["company"]:
            return {**grant, "coach": grant["coach"][0], "company": grant["company"][0]}
    return None


def _unended(access_hash: str) -> Document:
    return {"$elemMatch": {"hash": access_hash, "until": {"$gt": now()}}}


async def touch(services: Services, grant: Document) -> None:
    """Remember that the grant was used, at most once a minute."""
    at, last = now(), grant["lastUsedAt"]
    if last is None or at - last >= _LAST_USED_EVERY:
        same = {"_id": grant["_id"], "lastUsedAt": last}
        await grants.across_companies(services).update_one(same, {"$set": {"lastUsedAt": at}})
