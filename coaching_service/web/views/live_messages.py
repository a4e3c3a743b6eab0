"""Messages that appear on an open page: what its script asks for, and waits for.

A request is held until a message is written, changed or deleted, at most 25 seconds: less than proxies wait. The page
itself has the messages: the script reads it again, as any browser would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypedDict

from aiohttp import web
from marshmallow import fields
from marshmallow.validate import Range

from coaching_service.core.auth.access import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.events import EventType
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.people.changes import service
from coaching_service.people.customers import service as customers
from coaching_service.web.pages import Pages

pages = Pages("")
_SHOWN: tuple[EventType, ...] = ("message.created", "message.updated", "message.deleted")
_WAIT_SECONDS = 25
_LAST = 10**15


class LiveQuery(TypedDict):
    """The number that the page continues from; without it, the answer is the last number, at once."""

    after: Annotated[int | None, fields.Integer(validate=Range(0, _LAST)), Default(None)]


@pages.get("/app/customers/{customerId}/messages/live", access=coach(CUSTOMERS.VIEW), template="", request_class="held")
async def follow_conversation(ctx: Context, customer_id: ObjectId, query: LiveQuery) -> web.StreamResponse:
    """Wait for the next message of a conversation; answers `{after, hasNews}`."""
    async with ctx.turn():
        await customers.get_visible(ctx, customer_id, customers.SCOPE_FIELDS)
    return await _follow(ctx, query, lambda client: client == customer_id)


@pages.get("/app/inbox/live", access=coach(CUSTOMERS.VIEW), template="", request_class="held")
async def follow_inbox(ctx: Context, query: LiveQuery) -> web.StreamResponse:
    """Wait for the next message of a client in the coach's scope; answers `{after, hasNews}`."""
    async with ctx.turn():
        in_scope = await customers.list_ids_in_scope(ctx)
    return await _follow(ctx, query, lambda client: in_scope is None or client in in_scope)


@pages.get("/train/messages/live", access=customer(), template="", request_class="held")
async def follow_own_conversation(ctx: Context, query: LiveQuery) -> web.StreamResponse:
    """Wait for the next message of the client's conversation; answers `{after, hasNews}`."""
    return await _follow(ctx, query, lambda client: client == ctx.caller.id)


async def _follow(ctx: Context, query: LiveQuery, is_shown: Callable[[ObjectId | None], bool]) -> web.StreamResponse:
    if query["after"] is None:
        async with ctx.turn():
            return _answer(await service.find_position(ctx), has_news=False)
    followed = await service.follow(ctx, query["after"], _SHOWN, is_shown, wait=_WAIT_SECONDS)
    return _answer(followed.position, has_news=followed.has_event)


def _answer(position: int, *, has_news: bool) -> web.Response:
    return web.json_response({"after": position, "hasNews": has_news}, headers={"Cache-Control": "no-store"})
