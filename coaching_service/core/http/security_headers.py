"""Headers that protect browsers, added to every response before it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

_STRICT_TRANSPORT_SECURITY = "max-age=31536000"
# What pages and their libraries do not use; the rest timer keeps the screen on, and buttons write to the clipboard.
_PERMISSIONS_POLICY = (
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), "
    "midi=(), payment=(), usb=()"
)
# Pages of other sites may show these: files by their signed links, and the icon of the MCP server.
_EMBEDDABLE = ("/files/", "/app/static/")
_OAUTH = "/oauth/"


def adding_security_headers(base_url: str) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Return the signal handler that adds the headers; over https browsers must not use http for a year."""
    is_secure = base_url.startswith("https:")

    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        headers = response.headers
        if is_secure:
            headers["Strict-Transport-Security"] = _STRICT_TRANSPORT_SECURITY
        headers["Cross-Origin-Resource-Policy"] = (
            "cross-origin" if request.path.startswith(_EMBEDDABLE) else "same-origin"
        )
        if "token" in request.query:
            headers["Referrer-Policy"] = "no-referrer"
        if response.content_type == "text/html":
            headers["Permissions-Policy"] = _PERMISSIONS_POLICY
            if not _is_part_of_oauth(request):
                headers["Cross-Origin-Opener-Policy"] = "same-origin"

    return add_headers


def _is_part_of_oauth(request: web.Request) -> bool:
    """Return whether an application that asks for access may have opened the page and waits for its window."""
    return request.path.startswith(_OAUTH) or request.query.get("next", "").startswith(_OAUTH)
