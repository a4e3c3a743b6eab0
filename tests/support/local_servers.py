"""Servers of other services, on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler


@asynccontextmanager
async def receiving_posts(path: str, receive: Handler) -> AsyncIterator[str]:
    """The address of a server on a port of its own that hands over what is posted to `path`."""
    app = web.Application()
    app.router.add_post(path, receive)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
