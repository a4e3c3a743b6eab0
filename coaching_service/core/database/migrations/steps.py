"""How a step of migrations is declared, and changes that several of them make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database

Apply = Callable[[Database, Vault], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """One change of stored documents. `number` decides the order; neither it nor the name of the function changes.

    `release` is the minor version that brings it, such as "0.3". Another patch version of the same minor version may
    serve the changed documents, an earlier minor version may not: see docs/upgrading.md.
    """

    number: int
    apply: Apply
    release: str

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.apply.__name__

    @property
    def description(self) -> str:
        """What the stored documents are like afterwards: the first paragraph of the docstring, in one line."""
        return " ".join((self.apply.__doc__ or "").partition("\n\n")[0].split())


@dataclass(frozen=True)
class Release:
    """The steps of a minor version."""

    version: str
    steps: list[Step] = field(default_factory=list)

    def step(self, number: int) -> Callable[[Apply], Apply]:
        """Return the decorator that declares a step."""

        def declare(apply: Apply) -> Apply:
            self.steps.append(Step(number, apply, self.version))
            return apply

        return declare


async def set_missing(db: Database, collection: str, fields: Mapping[str, Any]) -> None:
    """Set each of the fields in the documents that lack it."""
    for name, value in fields.items():
        await db[collection].update_many({name: {"$exists": False}}, {"$set": {name: value}})


async def drop_indexes(db: Database, collection: str, *names: str) -> None:
    """Drop those indexes of a collection that it has."""
    if collection in await db.list_collection_names():
        for name in (await db[collection].index_information()).keys() & set(names):
            await db[collection].drop_index(name)
