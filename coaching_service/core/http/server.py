"""The HTTP server below the application.

Errors it raises by itself have the service's error shape and never repeat parts of the request (aiohttp's own error
pages quote the offending line, including credentials).
"""

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


def protocol_error(status: int) -> web.Response:
    """Returns the response to a request that never reached the application."""
    message, reason = _MESSAGES.get(status, ("Internal server error", "Internal Server Error"))
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "X-Request-Id": uuid.uuid4().hex,
        "X-Content-Type-Options": "nosniff",
        "Server": "coaching-service",
    }
    body = to_json({"statusCode": status, "message": message, "error": reason})
    return web.Response(status=status, body=body, headers=headers)


class _ConnectionHandler(RequestHandler):
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        response = protocol_error(status)
        response.force_close()
        return response


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _ConnectionHandler(self, loop=self._loop, **self._kwargs)


class Runner(AppRunner):
    """Runs the application on a server whose own errors have the service's shape."""

    async def _make_server(self) -> Any:
        server = await super()._make_server()
        server.__class__ = _Server  # aiohttp has no setting for the class of its connections
        handle_request = server.request_handler

        async def handle(request: Any) -> web.StreamResponse:
            try:
                return await handle_request(request)
            except web.HTTPException as error:  # raised before the middlewares, e.g. for an unknown Expect
                return protocol_error(error.status)

        server.request_handler = handle
        return server
