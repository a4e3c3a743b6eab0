"""New companies, each with an owner and an API key: by the services, or as copies of one, written many at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from string import ascii_uppercase
from typing import Any, TypedDict, Unpack

from time_machine import escape_hatch

from coaching_service.core.auth import Principal, new_api_key
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys, team

AT_ONCE = 25
_numbers = count(1)


class CompanyOptions(TypedDict, total=False):
    """Options of a company."""

    timezone: str
    load_unit: str


@dataclass(frozen=True)
class CompanyOwner:
    """The owner of a new company, as a caller with an API key, and the secret of the key."""

    owner: Principal
    key: str


async def create_company(services: Services, password_hash: str, **options: Unpack[CompanyOptions]) -> CompanyOwner:
    """Create a company with the services, as a sign-up does."""
    name = _letters(next(_numbers))
    owner = await team.create_company(
        Context(services), _company_name(name), "Olga Owner", _email(name), password_hash, **options
    )
    owner = replace(owner, via="apiKey")
    key = await api_keys.create(Context(services).acting_as(owner), "Test", {"outreach": True})
    return CompanyOwner(owner, key["key"])


class CompanyCopies:
    """Companies that equal one that the services have created, but for names, identifiers and the key.

    Most tests need a company of their own: created by the services, one takes 9 ms of CPU.
    """

    def __init__(self, services: Services, password_hash: str) -> None:
        self._services, self._password_hash = services, password_hash
        self._original: CompanyOwner | None = None
        self._documents: dict[str, list[dict[str, Any]]] = {}
        self._unused: list[CompanyOwner] = []

    async def take(self) -> CompanyOwner:
        """Return a company that no other test has."""
        if not self._unused:
            await self._insert_copies()
        return self._unused.pop()

    async def _insert_copies(self) -> None:
        if self._original is None:
            self._original = await create_company(self._services, self._password_hash)
            self._documents = await self._documents_of(self._original.owner.company.id)
        copies: dict[str, list[dict[str, Any]]] = {name: [] for name in self._documents}
        # A later test would get those of a moved clock: companies of the future.
        for _ in range(1 if escape_hatch.is_travelling() else AT_ONCE):
            self._unused.append(self._copy(self._original, copies))
        for name, documents in copies.items():
            await self._services.db[name].insert_many(documents)

    async def _documents_of(self, company_id: ObjectId) -> dict[str, list[dict[str, Any]]]:
        db, documents = self._services.db, {}
        for name in await db.list_collection_names(filter={"type": "collection"}):
            if of_company := await db[name].find({"companyId": company_id}).to_list(None):
                documents[name] = of_company
        return documents

    def _copy(self, original: CompanyOwner, copies: Mapping[str, list[dict[str, Any]]]) -> CompanyOwner:
        name, owner, vault = _letters(next(_numbers)), original.owner, self._services.vault
        secret, time = new_api_key(str(self._documents["apiKeys"][0]["prefix"])), now()
        new: dict[object, object] = {
            document["_id"]: ObjectId() for documents in self._documents.values() for document in documents
        }
        new |= {owner.company.name: _company_name(name), owner.email: _email(name)}
        for collection, documents in self._documents.items():
            for document in documents:
                copy = {field: new.get(value, value) if _is_name(value) else value for field, value in document.items()}
                copies[collection].append(copy | {"createdAt": time, "updatedAt": time})
        key = copies["apiKeys"][-1]
        key["lastFour"], key["hash"] = secret[-4:], vault.keyed_hash(secret)
        key["sealed"] = api_keys._SEALED.seal(vault, key["_id"], secret.encode())
        company_id, owner_id = (copies[each][-1]["_id"] for each in ("companies", "coaches"))
        company = replace(owner.company, id=company_id, name=_company_name(name))
        copied = replace(owner, id=owner_id, company=company, email=_email(name), credential_id=owner_id)
        return CompanyOwner(copied, secret)


def _is_name(value: object) -> bool:
    return isinstance(value, str | ObjectId)


def _company_name(letters: str) -> str:
    return f"Company {letters}"


def _email(letters: str) -> str:
    return f"owner-{letters.lower()}@coaching.test"


def _letters(number: int) -> str:
    """A for 1, Z for 26, AA for 27: a name without digits, because tests assert that a number is not on a page."""
    rest, last = divmod(number - 1, 26)
    return (_letters(rest) if rest else "") + ascii_uppercase[last]
