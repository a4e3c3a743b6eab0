"""Checks of the identities with which coaches and clients sign in, against the coaches and clients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any

from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.consistency._batches import iterate_batches, list_wrong

_SIGN_INS = ("identities", "identityClaims", "passwordResets")
_FIELDS = {"companyId": 1, "role": 1, "kind": 1, "subjectId": 1}
_USERS = {"coach": "coaches", "customer": "customers"}


async def find_without_user(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find identities, claims and resets of coaches and clients that do not exist, or are of another company."""
    for name in _SIGN_INS:
        occurrences = Occurrences()
        async for batch in iterate_batches(services, name, _FIELDS):
            for identifier in await list_wrong(services, name, batch, _without_user):
                occurrences.add(identifier)
            count_read(len(batch))
        problem = f"Documents of {name} whose coach or client does not exist"
        advice = "Restore the coach or client from a backup, or delete these documents: the address is in use by them"
        yield occurrences.finding(problem, advice)


async def find_without_identity(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find coaches who have no identity, so that they cannot sign in.

    A confirmed address displaces an unconfirmed one, so only the owner of a company that is confirmed must have one.
    Clients have none before their first access, and clients of an import had theirs in another company.
    """
    owners, employees = Occurrences(), Occurrences()
    async for batch in iterate_batches(services, "coaches", _FIELDS):
        missing = set(await list_wrong(services, "coaches", batch, _without_identity))
        exempt = await _unconfirmed_companies(services, batch) if missing else set()
        for coach in batch:
            if coach["_id"] in missing:
                is_owner = coach.get("role") == "OWNER" and coach["companyId"] not in exempt
                (owners if is_owner else employees).add(coach["_id"])
        count_read(len(batch))
    lost = "Restore the identity from a backup. Without one, set a password with `admin`, or create the company again"
    again = "Their address was confirmed by another user, or the identity is lost: invite them again"
    yield owners.finding("Owners who cannot sign in", lost)
    yield employees.finding("Coaches who cannot sign in", again, is_notice=True)


async def _without_user(services: Services, documents: Sequence[Document], session: Any) -> list[Document]:
    by_kind = defaultdict(list)
    for document in documents:
        by_kind[document.get("kind")].append(document["subjectId"])
    users = set()
    for kind, identifiers in by_kind.items():
        if kind in _USERS:
            where = {"_id": {"$in": identifiers}}
            cursor = services.collection(_USERS[kind]).find(where, {"companyId": 1}, session=session)
            users |= {(kind, each["companyId"], each["_id"]) async for each in cursor}
    return [each for each in documents if (each.get("kind"), each["companyId"], each["subjectId"]) not in users]


async def _without_identity(services: Services, documents: Sequence[Document], session: Any) -> list[Document]:
    where: Document = {"subjectId": {"$in": [document["_id"] for document in documents]}}
    subjects = set()
    for name in ("identities", "identityClaims"):
        cursor = services.collection(name).find(where, {"companyId": 1, "subjectId": 1}, session=session)
        subjects |= {(each["companyId"], each["subjectId"]) async for each in cursor}
    missing = [each for each in documents if (each["companyId"], each["_id"]) not in subjects]
    where = {"_id": {"$in": [each["companyId"] for each in missing]}, "sandboxOf": {"$ne": None}}
    cursor = services.collection("companies").find(where, {"_id": 1}, session=session)
    sandboxes = {each["_id"] async for each in cursor} if missing else set()
    return [each for each in missing if each["companyId"] not in sandboxes]


async def _unconfirmed_companies(services: Services, coaches: Sequence[Document]) -> set[ObjectId]:
    where = {"_id": {"$in": [coach["companyId"] for coach in coaches]}, "holdsMail": True}
    return {each["_id"] async for each in services.collection("companies").find(where, {"_id": 1})}


CHECKS = (
    Check("identities", "The coaches and clients of identities exist", find_without_user),
    Check("sign-ins", "Coaches can sign in", find_without_identity),
)
