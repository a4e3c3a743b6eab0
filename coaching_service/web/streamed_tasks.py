"""A page that grows while work goes on: no script is needed to see how far it is."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from aiohttp import web

from coaching_service.core.http.middleware import REQUEST_ID
from coaching_service.web import rendering
from coaching_service.web.browser_sessions import BrowserSession
from coaching_service.web.error_pages import to_service_error
from coaching_service.web.pages import StreamedTask

_PLACE = "<!--progress-->"
_STEPS = 50


async def work(request: web.Request, browser_session: BrowserSession, working: StreamedTask) -> web.StreamResponse:
    """Do the work; after each step another line of the page says how far it is. It goes on if nobody looks any more."""
    drawn = rendering.render_page(
        request, browser_session, working.template, working.variables | {"total": working.total}
    )
    before, _, after = (drawn.text or "").partition(_PLACE)
    headers = {**drawn.headers, "X-Request-Id": request[REQUEST_ID], "Server": "coaching-service"}
    headers.pop("Content-Length", None)
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    told_at = 0

    async def say(part: bytes) -> None:
        with suppress(ConnectionError):
            await response.write(part)

    def line(done: int) -> bytes:
        return rendering.render_fragment(request, "progress_bar.html", {"done": done, "total": working.total})

    async def told(result: Any) -> None:
        nonlocal told_at
        done = result.ok + len(result.failed)
        if done - told_at >= working.total / _STEPS:
            told_at = done
            await say(line(done))

    await say(before.encode() + line(0))
    variables: dict[str, Any] = {**working.variables, "back": working.return_url, "error": None, "result": None}
    try:
        variables["result"] = await working.work(told)
    except Exception as error:  # noqa: BLE001 - the page has begun: what went wrong is told on it
        variables["error"] = to_service_error(request, error).message
    end = rendering.render_fragment(request, "result.html", variables)
    await say((line(working.total) if variables["result"] else b"") + end + after.encode())
    with suppress(ConnectionError):
        await response.write_eof()
    return response
