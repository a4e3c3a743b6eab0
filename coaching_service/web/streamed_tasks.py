"""Pages that stream the progress of a long task; they need no script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

from coaching_service.core.http.middleware import REQUEST_ID
from coaching_service.web import rendering
from coaching_service.web.browser_sessions import BrowserSession
from coaching_service.web.error_pages import to_service_error
from coaching_service.web.pages import StreamedTask

_PLACEHOLDER = "<!--progress-->"
_MAX_UPDATES = 50


async def stream_task(
    request: web.Request,
    browser_session: BrowserSession,
    task: StreamedTask,
    check: Callable[[], Awaitable[object]],
) -> web.StreamResponse:
    """Run `task` and stream its page; each step appends a progress bar.

    The task continues when the browser disconnects. `check` is called between the steps: what it raises ends the task.
    """
    page = rendering.render_page(request, browser_session, task.template, task.variables | {"total": task.total})
    before, _, after = (page.text or "").partition(_PLACEHOLDER)
    headers = {**page.headers, "X-Request-Id": request[REQUEST_ID], "Server": "coaching-service"}
    headers.pop("Content-Length", None)
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    stream = _ProgressStream(request, response, task.total, check)
    await stream.write(before.encode() + stream.render_progress(0))
    variables: dict[str, Any] = {
        **task.variables,
        "csrf_token": browser_session.csrf_token,
        "return_url": task.return_url,
        "error": None,
        "result": None,
    }
    try:
        variables["result"] = await task.run(stream.report)
        await stream.write(stream.render_progress(task.total))
    except Exception as error:  # noqa: BLE001 - the response has started, so the page itself shows the error
        variables["error"] = to_service_error(request, error).message
    await stream.write(rendering.render_fragment(request, "result.html", variables) + after.encode())
    with suppress(ConnectionError):
        await response.write_eof()
    return response


class _ProgressStream:
    def __init__(
        self,
        request: web.Request,
        response: web.StreamResponse,
        total: int,
        check: Callable[[], Awaitable[object]],
    ) -> None:
        self.request, self.response, self.total, self.check = request, response, total, check
        self.reported = 0

    async def report(self, done: int) -> None:
        """Append a progress bar, at most `_MAX_UPDATES` in all. Raises what the check raises."""
        if done - self.reported >= self.total / _MAX_UPDATES:
            self.reported = done
            await self.check()
            await self.write(self.render_progress(done))

    def render_progress(self, done: int) -> bytes:
        return rendering.render_fragment(self.request, "progress_bar.html", {"done": done, "total": self.total})

    async def write(self, part: bytes) -> None:
        with suppress(ConnectionError):
            await self.response.write(part)
