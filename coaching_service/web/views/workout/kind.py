"""What the pages of a workout need to know of whose it is: a client's, or a program's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.owners import Owner
from coaching_service.web.pages import Pages

BLOCK = "/blocks/{blockId}"
ITEM = f"{BLOCK}/items/{{witemId}}"
Handler = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Kind:
    """How the workouts of one kind of owner are shown and changed.

    `pages`: their prefix ends with the owner's identifier, of which `owner` makes the owner. `view` and `edit` are
    permissions. `frame` is the template around each page, `top` gives what it shows of the owner. `place` is the schema
    of where a copy goes, `near` the first and the last day between which items are moved, and `seen` the address at
    which a workout is seen among the others.
    """

    pages: Pages
    owner: Callable[[ObjectId], Owner]
    view: str
    edit: str
    frame: str
    top: Callable[[Context, ObjectId], Awaitable[Document]]
    place: type[Schema]
    near: Callable[[Document], tuple[object, object]]
    seen: Callable[[ObjectId, Document], str]

    def address(self, owner: Mapping[str, ObjectId], block_id: ObjectId) -> str:
        """The address of a workout's page."""
        (identifier,) = owner.values()
        return f"{self.pages.prefix.partition('{')[0]}{identifier}/blocks/{block_id}"

    def owner_of(self, owner: Mapping[str, ObjectId]) -> Owner:
        """The owner that the path names."""
        (identifier,) = owner.values()
        return self.owner(identifier)

    async def page(self, ctx: Context, owner: Mapping[str, ObjectId], block_id: ObjectId) -> dict[str, Any]:
        """What every page of a workout shows. Raises NotFound, Forbidden."""
        (identifier,) = owner.values()
        top, block = await gather_reads(
            ctx, self.top(ctx, identifier), workouts.read(ctx, self.owner(identifier), block_id)
        )
        more = {"frame": self.frame, "edit": self.edit, "seen": self.seen(identifier, block)}
        return {**top, **more, "block": block, "here": self.address(owner, block_id)}
