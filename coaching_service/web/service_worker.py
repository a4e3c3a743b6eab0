"""The service worker of the web application, with the static files that it saves."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from aiohttp import web

from coaching_service.web import static_files

PATH = "/service-worker.js"
# Of the pages of clients that open without a connection.
_SAVED = ("style.css", "train.css", "app.js", "train.js", "push.js", "icon.svg", "icons.svg", "icon-192.png")
# The browser compares the script with its own at each registration.
_HEADERS = {
    "Content-Type": "text/javascript; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}


@cache
def _script() -> bytes:
    source = (files(__package__) / "static" / "service_worker.js").read_text()
    saved = json.dumps([static_files.url_of(name) for name in _SAVED])
    icon = json.dumps(static_files.url_of("icon-192.png"))
    return f'"use strict";\nconst STATIC = {saved};\nconst ICON = {icon};\n{source}'.encode()


async def serve_script(_: web.Request) -> web.Response:
    """Serve the script. Its path gives it control of all pages."""
    return web.Response(body=_script(), headers=_HEADERS)
