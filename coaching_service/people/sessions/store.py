"""Sessions: tokens are stored as hashes only; each session is a family of refresh tokens of which one is good."""

from __future__ import annotations

from datetime import datetime, timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.ids import ObjectId

ACCESS_LIVES = timedelta(hours=1)
FAMILY_LIVES = timedelta(days=30)
_TOKENS_KEPT = 5

sessions = Documents[Document](
    "sessions",
    (Index(("subjectId",)),),
    client_field="subjectId",
    secret=True,
    global_indexes=(
        Index(("access.hash",), unique=True),
        Index(("familyHash",), unique=True, partial_filter=(("familyHash", {"$exists": True}),)),
        Index(("expiresAt",), expire_after=0),
    ),
    cross_company_reason="a session is found by the hash of its token before its company is known",
)


async def add(ctx: Context, session: Document, access_hash: str, lives: timedelta, family_lives: timedelta) -> Document:
    """Store a new session whose first access token ends after `lives`."""
    at = now()
    access = [{"hash": access_hash, "until": at + lives}]
    return await sessions.insert(ctx, {**session, "access": access, "expiresAt": at + family_lives})


async def resolve(services: Services, access_hash: str, door: str | None = None) -> Document | None:
    """The session whose access token has this hash and has not ended, with `company` and `coach` or `customer`
    (each a list of one, or empty), in one round trip.

    `door`: the one the session was begun at: None is REST's, whose sessions open no other.
    """
    good = {"access": {"$elemMatch": {"hash": access_hash, "until": {"$gt": now()}}}, "door": door}
    return await _with_bearer(services, good)


async def by_refresh(services: Services, family_hash: str, refresh_hash: str) -> Document | None:
    """The session whose good refresh token has this hash, with its bearer as `resolve` gives it, or None."""
    return await _with_bearer(services, _good_refresh(family_hash, refresh_hash))


def _good_refresh(family_hash: str, refresh_hash: str) -> Document:
    return {"familyHash": family_hash, "refreshHash": refresh_hash, "expiresAt": {"$gt": now()}}


async def _with_bearer(services: Services, match: Document) -> Document | None:
    found = sessions.across_companies(services).aggregate(
        [
            {"$match": match},
            {"$project": {"access.hash": 0, "familyHash": 0, "refreshHash": 0}},
            {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
            {"$lookup": {"from": "coaches", "localField": "subjectId", "foreignField": "_id", "as": "coach"}},
            {
                "$lookup": {
                    "from": "customers",
                    "localField": "subjectId",
                    "foreignField": "_id",
                    "as": "customer",
                    "pipeline": [{"$project": {"name": 1, "email": 1, "customerRoleData.isArchived": 1}}],
                }
            },
        ]
    )
    return next(iter(await found.to_list(1)), None)


async def rotate(
    services: Services, family_hash: str, refresh_hash: str, new_refresh_hash: str, access_hash: str
) -> Document | None:
    """Exchange the good refresh token of a family for new tokens; None when this is not the good one."""
    at = now()
    fresh = {"hash": access_hash, "until": at + ACCESS_LIVES}
    rotated: Document | None = await sessions.across_companies(services).find_one_and_update(
        _good_refresh(family_hash, refresh_hash),
        {
            "$set": {"refreshHash": new_refresh_hash, "expiresAt": at + FAMILY_LIVES, "updatedAt": at},
            "$push": {"access": {"$each": [fresh], "$slice": -_TOKENS_KEPT}},
            "$inc": {"version": 1},
        },
        return_document=True,
    )
    return rotated


async def prolong(services: Services, access_hash: str, until: datetime) -> None:
    """Let a session's only access token live until then."""
    await sessions.across_companies(services).update_one(
        {"access.hash": access_hash}, {"$set": {"access.0.until": until}}
    )


async def revoke_family(services: Services, family_hash: str) -> Document | None:
    """End a whole family; gives what it was, or None."""
    return await sessions.across_companies(services).find_one_and_delete({"familyHash": family_hash})


async def remove(ctx: Context, session_id: ObjectId) -> None:
    """End one session."""
    await sessions.delete(ctx, {"_id": session_id})


async def remove_all(ctx: Context, subject_id: ObjectId) -> None:
    """End every session of a coach or client."""
    await sessions.delete_many(ctx, {"subjectId": subject_id})


async def remove_others(ctx: Context, subject_id: ObjectId, session_id: ObjectId) -> None:
    """End every session of a coach or client but one."""
    await sessions.delete_many(ctx, {"subjectId": subject_id, "_id": {"$ne": session_id}})
