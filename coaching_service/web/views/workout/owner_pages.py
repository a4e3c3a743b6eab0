"""The pages of a workout, declared once for clients' calendars, programs and templates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, NamedTuple

from marshmallow import Schema

from coaching_service.core.auth import Access, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.service import ScheduleOwner
from coaching_service.web.pages import Handler, Pages

BLOCK = "/blocks/{blockId}"
ITEM = f"{BLOCK}/items/{{witemId}}"
CIRCUIT_EXERCISE = f"{ITEM}/exercises/{{exerciseId}}"


@dataclass(frozen=True)
class WorkoutOwnerPages:
    """What the workout pages know about one type of owner.

    `pages` has the owner's identifier at the end of its prefix; `owner_parameter` is its argument name in handlers,
    and `owner_type` makes the owner from it. `view` and `edit` are permissions. `layout` is the template that
    surrounds each page, `layout_variables` loads what it shows. `place_form` is the schema of a date or day,
    `move_range` returns the first and last date or day between which items can be moved, and `overview_path` the
    page that shows a workout among the others. `is_single`: the owner is a workout itself, with the same
    identifier, such as a template; it is on no day, so it has no `place_form` and `move_range`. `load_comments`
    loads the comments on a workout, for owners who can be written to. `declared` are the pages of this owner by
    their handlers, and by None the page of a workout.
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
    declared: dict[Handler | None, Handler] = field(default_factory=dict)


class OpenedWorkout(NamedTuple):
    """The workout that a page is about, with its owner."""

    of: WorkoutOwnerPages
    owner_id: ObjectId
    block_id: ObjectId

    @property
    def owner(self) -> ScheduleOwner:
        """The owner of the workout."""
        return self.of.owner_type(self.owner_id)

    @property
    def path(self) -> str:
        """The path of the page of the workout."""
        owner_path = f"{self.of.pages.prefix.partition('{')[0]}{self.owner_id}"
        return owner_path if self.of.is_single else f"{owner_path}/blocks/{self.block_id}"

    async def read(self, ctx: Context) -> Block:
        """Return the workout. Raises NotFound, Forbidden."""
        return await workouts.get(ctx, self.owner, self.block_id)

    async def load_variables(self, ctx: Context) -> dict[str, Any]:
        """Load the variables that all pages of a workout share. Raises NotFound, Forbidden."""
        layout, block = await gather_reads(ctx, self.of.layout_variables(ctx, self.owner_id), self.read(ctx))
        return {
            **layout,
            "layout": self.of.layout,
            "edit_permission": self.of.edit,
            "overview_path": self.of.overview_path(self.owner_id, block),
            "block": block,
            "block_path": self.path,
        }


class WorkoutPages:
    """Pages and forms of a workout; their handlers receive an OpenedWorkout in place of the identifiers."""

    def __init__(self) -> None:
        self._declared: list[tuple[str, Callable[[WorkoutOwnerPages], Access], dict[str, Any], Handler]] = []

    def get(self, path: str, *, to_view: bool = False, **options: Any) -> Callable[[Handler], Handler]:
        """Declare a page; `to_view`: it needs the permission to view, not that to edit."""
        return partial(self._add, path, lambda of: coach(of.view if to_view else of.edit), options)

    def post(self, path: str, *, permission: str = "", **options: Any) -> Callable[[Handler], Handler]:
        """Declare a form of the page `on`, by default of the page of the workout.

        `permission` is required with that to view, in place of that to edit. `form_of` returns the form for an owner.
        """
        options.setdefault("on", None)
        return partial(
            self._add, path, lambda of: coach(of.view, permission) if permission else coach(of.edit), options
        )

    def _add(
        self,
        path: str,
        access_of: Callable[[WorkoutOwnerPages], Access],
        options: dict[str, Any],
        handler: Handler,
    ) -> Handler:
        self._declared.append((path, access_of, options, handler))
        return handler

    def declare_for(self, of: WorkoutOwnerPages) -> None:
        """Declare these pages for one type of owner."""
        pages_first = sorted(self._declared, key=lambda each: "on" in each[2])
        for path, access_of, declared, handler in pages_first:
            page, own_path = _with_workout(of, handler), path.removeprefix(BLOCK) if of.is_single else path
            options = {**declared, "access": access_of(of)}
            if form_of := options.pop("form_of", None):
                options["form"] = form_of(of)
            if "on" in options:
                of.pages.post(own_path, **{**options, "on": of.declared[options["on"]]})(page)
            else:
                of.declared[None if path == BLOCK else handler] = of.pages.get(own_path, **options)(page)


def _with_workout(of: WorkoutOwnerPages, handler: Handler) -> Handler:
    @wraps(handler)
    async def handle(ctx: Context, **arguments: Any) -> Any:
        owner_id = arguments.pop(of.owner_parameter)
        block_id = owner_id if of.is_single else arguments.pop("block_id")
        return await handler(ctx, OpenedWorkout(of, owner_id, block_id), **arguments)

    return handle
