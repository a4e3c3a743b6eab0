"""Reads whole lists, page by page, while others insert and delete.

Every list with `nextCursor` can be read: those with `page_size` and `page_num`, and those with `limit`. An entry that
exists all the time is met exactly once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, ParamSpec, Protocol, TypeVar

from coaching_service_client.models import CredentialError, Error
from coaching_service_client.results import ok

P = ParamSpec("P")
Entry = TypeVar("Entry")


class Page(Protocol[Entry]):
    """A part of a list, and the cursor of the next part."""

    docs: list[Entry]

    @property
    def next_cursor(self) -> str | None:
        """The cursor to send as `after`, or None after the last part."""


Response = Page[Entry] | CredentialError | Error | None


def walk(operation: Callable[P, Response[Entry]], *arguments: P.args, **filters: P.kwargs) -> Iterator[Entry]:
    """Each entry of a list: `walk(list_customers.sync, client=client, archived=False, page_size=50, page_num=1)`.

    The arguments are those of the operation's first page. Raises RequestFailed.
    """
    for page in pages(operation, *arguments, **filters):
        yield from page.docs


def pages(operation: Callable[P, Response[Entry]], *arguments: P.args, **filters: P.kwargs) -> Iterator[Page[Entry]]:
    """Each page of a list. For lists that never end, such as the events, until there is nothing more for now."""
    following: Any = filters
    while True:
        page = ok(operation(*arguments, **following))
        yield page
        if is_last(page):
            return
        following = {**filters, "after": page.next_cursor}


async def walk_async(
    operation: Callable[P, Awaitable[Response[Entry]]], *arguments: P.args, **filters: P.kwargs
) -> AsyncIterator[Entry]:
    """The same as `walk` for the functions named `asyncio`."""
    async for page in pages_async(operation, *arguments, **filters):
        for entry in page.docs:
            yield entry


async def pages_async(
    operation: Callable[P, Awaitable[Response[Entry]]], *arguments: P.args, **filters: P.kwargs
) -> AsyncIterator[Page[Entry]]:
    """The same as `pages` for the functions named `asyncio`."""
    following: Any = filters
    while True:
        page = ok(await operation(*arguments, **following))
        yield page
        if is_last(page):
            return
        following = {**filters, "after": page.next_cursor}


def is_last(page: Page[Any]) -> bool:
    """Whether no page follows. The list of events always has a cursor, and `has_more`."""
    return page.next_cursor is None or getattr(page, "has_more", None) is False
