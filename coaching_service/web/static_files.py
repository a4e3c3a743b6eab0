"""The stylesheet, the script and the icon: each under an address that changes with its content, so kept for long."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files

from aiohttp import web

PREFIX = "/app/static/"
_FOR_LONG = "public, max-age=31536000, immutable"
_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
# One stylesheet is served; it is kept in parts that can be read.
_PARTS = {"style.css": ("base.css", "components.css", "charts.css"), "app.js": ("app.js",), "icon.svg": ("icon.svg",)}


@cache
def _content(name: str) -> bytes:
    folder = files(__package__) / "static"
    return b"\n".join((folder / part).read_bytes() for part in _PARTS[name])


@cache
def url_of(name: str) -> str:
    """Where `style.css`, `app.js` or `icon.svg` is served."""
    stem, _, ending = name.partition(".")
    return f"{PREFIX}{stem}.{hashlib.sha256(_content(name)).hexdigest()[:12]}.{ending}"


def routes() -> list[web.RouteDef]:
    """What to serve."""
    return [web.get(url_of(name), _serve(name)) for name in _PARTS]


def _serve(name: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    headers = {"Content-Type": f"{_KINDS[name.partition('.')[2]]}; charset=utf-8", "Cache-Control": _FOR_LONG}

    async def serve(_: web.Request) -> web.StreamResponse:
        return web.Response(body=_content(name), headers=headers)

    return serve
