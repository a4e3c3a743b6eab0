"""Sign-in sessions in the database: tokens are stored as hashes.

Each session is a family of refresh tokens; only the latest is valid.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coaching_service.core.database.collections import Unsharded
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.worker_thread import aggregate_all
from coaching_service.people.sessions.models import NewSession, Session, SessionWithSubject

ACCESS_LIFETIME = timedelta(hours=1)
FAMILY_LIFETIME = timedelta(days=30)
_MAX_ACCESS_TOKENS = 5

sessions = Documents[Session](
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
    placement=Unsharded("a token is unique among all companies, and found by its hash at each request"),
    transfer=NotExported("tokens"),
)


async def create(
    ctx: Context, session: NewSession, access_hash: str, access_lifetime: timedelta, lifetime: timedelta
) -> Session:
    """Store a session that ends after `lifetime`, with its first access token."""
    at = now()
    access = [{"hash": access_hash, "until": at + access_lifetime}]
    return await sessions.insert(ctx, {**session, "access": access, "expiresAt": at + lifetime})


async def find_by_access(
    services: Services, access_hash: str, application: str | None = None
) -> SessionWithSubject | None:
    """Return the session with this unexpired access token, in one round trip, or None.

    `application` is the one the session was created for; None: the REST interface.
    """
    unexpired = {"$elemMatch": {"hash": access_hash, "until": {"$gt": now()}}}
    return await _with_subject(services, {"access": unexpired, "application": application})


async def find_by_refresh(services: Services, family_hash: str, refresh_hash: str) -> SessionWithSubject | None:
    """Return the session whose valid refresh token has this hash, or None."""
    return await _with_subject(services, _valid_refresh(family_hash, refresh_hash))


def _valid_refresh(family_hash: str, refresh_hash: str) -> Filter:
    return {"familyHash": family_hash, "refreshHash": refresh_hash, "expiresAt": {"$gt": now()}}


async def _with_subject(services: Services, where: Filter) -> SessionWithSubject | None:
    stages: list[Document] = [
        {"$match": where},
        {"$project": {"access.hash": 0, "familyHash": 0, "refreshHash": 0}},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$lookup": {"from": "coaches", "localField": "subjectId", "foreignField": "_id", "as": "coach"}},
        {
            "$lookup": {
                "from": "customers",
                "localField": "subjectId",
                "foreignField": "_id",
                "let": {"companyId": "$companyId"},
                "as": "customer",
                "pipeline": [
                    {"$match": {"$expr": {"$eq": ["$companyId", "$$companyId"]}}},
                    {
                        "$project": {
                            "name": 1,
                            "email": 1,
                            "timezone": 1,
                            "loadUnit": 1,
                            "customerRoleData.assignedTo": 1,
                            "customerRoleData.isArchived": 1,
                        }
                    },
                ],
            }
        },
    ]
    result: list[Any] = await aggregate_all(sessions.across_companies(services), stages)
    return result[0] if result else None


async def rotate(
    services: Services, family_hash: str, refresh_hash: str, new_refresh_hash: str, access_hash: str
) -> bool:
    """Replace the refresh token of a family and add an access token; returns whether the refresh token was valid."""
    at = now()
    access = {"hash": access_hash, "until": at + ACCESS_LIFETIME}
    change = {
        "$set": {"refreshHash": new_refresh_hash, "expiresAt": at + FAMILY_LIFETIME, "updatedAt": at},
        "$push": {"access": {"$each": [access], "$slice": -_MAX_ACCESS_TOKENS}},
        "$inc": {"version": 1},
    }
    where = _valid_refresh(family_hash, refresh_hash)
    return (await sessions.across_companies(services).update_one(where, change)).modified_count == 1
