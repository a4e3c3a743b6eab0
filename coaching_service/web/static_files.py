"""Static files: the stylesheet, the script and the icon, each at a URL that contains a hash of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files

from aiohttp import web

PREFIX = "/app/static/"
_CACHE_CONTROL = "public, max-age=31536000, immutable"
_CONTENT_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_SOURCES = {
    "style.css": ("base.css", "components.css", "charts.css"),
    "app.js": ("app.js",),
    "icon.svg": ("icon.svg",),
}


@cache
def _read_content(name: str) -> bytes:
    folder = files(__package__) / "static"
    return b"\n".join((folder / source).read_bytes() for source in _SOURCES[name])


@cache
def url_of(name: str) -> str:
    """Return the URL path of `style.css`, `app.js` or `icon.svg`."""
    stem, _, extension = name.partition(".")
    return f"{PREFIX}{stem}.{hashlib.sha256(_read_content(name)).hexdigest()[:12]}.{extension}"


def routes() -> list[web.RouteDef]:
    """Return the aiohttp routes of all static files."""
    return [web.get(url_of(name), _create_handler(name)) for name in _SOURCES]


def _create_handler(name: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    content_type = _CONTENT_TYPES[name.partition(".")[2]]
    headers = {"Content-Type": f"{content_type}; charset=utf-8", "Cache-Control": _CACHE_CONTROL}

    async def serve_file(_: web.Request) -> web.StreamResponse:
        return web.Response(body=_read_content(name), headers=headers)

    return serve_file
