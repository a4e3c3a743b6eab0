"""Handles messages with the SDK, which is imported with the first one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from multidict import CIMultiDictProxy

from coaching_service.core.database.context import Context
from coaching_service.mcp.replies import Reply

if TYPE_CHECKING:
    from coaching_service.mcp.transport import Servers

Handle = Callable[[Context, Any, CIMultiDictProxy[str]], Awaitable[Reply]]


class MessageHandler:
    """Handles messages with the servers that `make` returns, called on a thread with the first message.

    The SDK and the descriptions of the tools take 30 MB and a second: a process that no assistant uses saves the
    memory, and every start saves the time. Other requests are answered meanwhile.
    """

    def __init__(self, create_servers: Callable[[], Servers]) -> None:
        self._create_servers = create_servers
        self._handle: Handle | None = None
        self._loading = asyncio.Lock()

    async def handle(self, ctx: Context, decoded: Any, headers: CIMultiDictProxy[str]) -> Reply:
        """Return the reply to a decoded body."""
        if self._handle is None:
            async with self._loading:
                if self._handle is None:
                    self._handle = await asyncio.to_thread(self._load)
        return await self._handle(ctx, decoded, headers)

    def _load(self) -> Handle:
        from coaching_service.mcp.transport import handle_message

        handle = partial(handle_message, self._create_servers())
        if gc.get_freeze_count():  # the service has started, and these objects live as long as the others
            gc.freeze()
        return handle
