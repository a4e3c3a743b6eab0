"""A page that grows while work goes on: no script is needed to see how far it is."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from aiohttp import web

from coaching_service.core.http.middleware import REQUEST_ID
from coaching_service.web import drawing
from coaching_service.web.failures import known
from coaching_service.web.pages import Working
from coaching_service.web.visits import Visit

_PLACE = "<!--progress-->"
_STEPS = 50


async def work(request: web.Request, visit: Visit, working: Working) -> web.StreamResponse:
    """Do the work; after each step another line of the page says how far it is. It goes on if nobody looks any more."""
    drawn = drawing.draw(request, visit, working.template, working.variables | {"total": working.total})
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
        return drawing.draw_part(request, "progress.html", {"done": done, "total": working.total})

    async def told(result: Any) -> None:
        nonlocal told_at
        done = result.ok + len(result.failed)
        if done - told_at >= working.total / _STEPS:
            told_at = done
            await say(line(done))

    await say(before.encode() + line(0))
    variables: dict[str, Any] = {**working.variables, "back": working.back, "error": None, "result": None}
    try:
        variables["result"] = await working.work(told)
    except Exception as error:  # noqa: BLE001 - the page has begun: what went wrong is told on it
        variables["error"] = known(request, error).message
    end = drawing.draw_part(request, "result.html", variables)
    await say((line(working.total) if variables["result"] else b"") + end + after.encode())
    with suppress(ConnectionError):
        await response.write_eof()
    return response
