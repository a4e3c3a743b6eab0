"""The HTTP server beneath the application: what it refuses by itself has our shape too, and repeats nothing of the
request (aiohttp's own answers quote the offending line, credentials included)."""

from __future__ import annotations

import uuid
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_runner import AppRunner

from coaching_service.core.http.responses import to_json

_MESSAGES = {
    400: ("The request is not valid HTTP", "Bad Request"),
    417: ("The expectation cannot be met", "Expectation Failed"),
}


def refusal(status: int) -> web.Response:
    """The answer to a request that never reached the application."""
    message, reason = _MESSAGES.get(status, ("Internal server error", "Internal Server Error"))
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "X-Request-Id": uuid.uuid4().hex,
        "X-Content-Type-Options": "nosniff",
        "Server": "coaching-service",
    }
    body = to_json({"statusCode": status, "message": message, "error": reason})
    return web.Response(status=status, body=body, headers=headers)


class _Handler(RequestHandler):
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the answer had begun")
        answer = refusal(status)
        answer.force_close()
        return answer


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Handler(self, loop=self._loop, **self._kwargs)


class Runner(AppRunner):
    """Runs the application on a server whose own refusals have our shape."""

    async def _make_server(self) -> Any:
        server = await super()._make_server()
        server.__class__ = _Server  # aiohttp has no setting for the class of its connections
        handle = server.request_handler

        async def handled(request: Any) -> web.StreamResponse:
            try:
                return await handle(request)
            except web.HTTPException as error:  # from before the middlewares: an unknown Expect
                return refusal(error.status)

        server.request_handler = handled
        return server
