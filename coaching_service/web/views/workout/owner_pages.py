"""What the pages of a workout know about its owner: a client's calendar or a program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from marshmallow import Schema

from coaching_service.core.auth.access import coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.owners import ScheduleOwner
from coaching_service.web.pages import Pages

BLOCK = "/blocks/{blockId}"
ITEM = f"{BLOCK}/items/{{witemId}}"
Handler = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class WorkoutOwnerPages:
    """Declares the workout pages of one type of owner.

    `pages` has the owner's identifier at the end of its prefix; `owner_parameter` is its argument name in handlers,
    and `owner_type` makes the owner from it. `view` and `edit` are permissions. `layout` is the template that
    surrounds each page, `layout_variables` loads what it shows. `place_form` is the schema of a date or day,
    `move_range` returns the first and last date or day between which items can be moved, and `overview_path` the
    page that shows a workout among the others. `is_single`: the owner is a workout itself, with the same
    identifier, such as a template; it is on no day, so it has no `place_form` and `move_range`. `load_comments`
    loads the comments on a workout, for owners who can be written to.
    """

    pages: Pages
    owner_type: Callable[[ObjectId], ScheduleOwner]
    owner_parameter: str
    view: str
    edit: str
    layout: str
    layout_variables: Callable[[Context, ObjectId], Awaitable[dict[str, Any]]]
    overview_path: Callable[[ObjectId, Block], str]
    place_form: type[Schema] | None = None
    move_range: Callable[[Block], tuple[str, str] | tuple[int, int]] | None = None
    load_comments: Callable[[Context, ObjectId, ObjectId], Awaitable[dict[str, Any]]] | None = None
    is_single: bool = False

    def get(self, path: str, *, permission: str, template: str, query: Any = None) -> Callable[[Handler], Handler]:
        """Declare a page; its handler receives the owner's identifier as `owner_id`."""

        def declare(handler: Handler) -> Handler:
            page = self._with_owner_id(handler)
            self.pages.get(self._path(path), access=coach(permission), template=template, query=query)(page)
            return page

        return declare

    def post(
        self, path: str, *, on: Handler, form: Any = None, query: Any = None, permission: str = ""
    ) -> Callable[[Handler], Handler]:
        """Declare a form of the page `on`; its handler receives the owner's identifier as `owner_id`.

        `permission` is required with that to view, in place of that to edit.
        """
        access = coach(self.view, permission) if permission else coach(self.edit)

        def declare(handler: Handler) -> Handler:
            page = self._with_owner_id(handler)
            self.pages.post(self._path(path), access=access, form=form, query=query, on=on)(page)
            return page

        return declare

    def _with_owner_id(self, handler: Handler) -> Handler:
        @wraps(handler)
        async def handle(ctx: Context, **arguments: Any) -> Any:
            owner_id = arguments.pop(self.owner_parameter)
            if self.is_single:
                arguments["block_id"] = owner_id
            return await handler(ctx, owner_id=owner_id, **arguments)

        return handle

    def block_path(self, owner_id: ObjectId, block_id: ObjectId) -> str:
        """Return the path of a workout's page."""
        owner_path = f"{self.pages.prefix.partition('{')[0]}{owner_id}"
        return owner_path if self.is_single else f"{owner_path}/blocks/{block_id}"

    def _path(self, path: str) -> str:
        """Return the path of a page after the prefix of `pages`."""
        return path.removeprefix(BLOCK) if self.is_single else path

    async def load_variables(self, ctx: Context, owner_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
        """Load the variables that all pages of a workout share. Raises NotFound, Forbidden."""
        layout_variables, block = await gather_reads(
            ctx, self.layout_variables(ctx, owner_id), workouts.get(ctx, self.owner_type(owner_id), block_id)
        )
        return {
            **layout_variables,
            "layout": self.layout,
            "edit_permission": self.edit,
            "overview_path": self.overview_path(owner_id, block),
            "block": block,
            "block_path": self.block_path(owner_id, block_id),
        }
