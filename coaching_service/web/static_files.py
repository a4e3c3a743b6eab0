"""Static files: stylesheets, scripts, libraries, icons and the manifest, each at a URL with a hash of its content.

And the service worker of the web application, with the static files that it saves.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from importlib.resources import files

from aiohttp import hdrs, web

from coaching_service.core.http.responses import accepts_gzip

PREFIX = "/app/static/"
_CACHE_CONTROL = "public, max-age=31536000, immutable"
_CONTENT_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
    "png": "image/png",
    "woff2": "font/woff2",
}
_SCRIPTS = (
    *("calendar", "today", "clients", "picker", "imports", "own_workout", "questions", "charts", "photos"),
    *("media", "live", "push", "passkeys"),
)
_IMAGES = ("icon.svg", "icon-192.png", "icon-512.png", "icon-maskable-512.png", "apple-touch-icon.png")
# Each static file with its sources, which are joined. Those in `vendor` are written by scripts/vendor.
_SOURCES = {
    **{name: (name,) for name in (*(f"{script}.js" for script in _SCRIPTS), *_IMAGES)},
    "app.js": ("app.js", "find.js"),
    "style.css": tuple(
        f"{name}.css"
        for name in (
            *("base", "components", "lists", "find", "schedule", "editor", "review", "photos", "media", "charts"),
            "print",
        )
    ),
    "train.css": (
        "train.css",
        *(f"train_{name}.css" for name in ("account", "days", "progress", "workout", "queue")),
    ),
    "train.js": tuple(
        f"train/{name}.js"
        for name in (
            *("store", "forms", "queue", "progress", "sets", "extra_sets", "media", "queue_bar", "drafts"),
            *("rest_timer", "sign_out", "offline", "start"),
        )
    ),
    "icons.svg": ("vendor/lucide/icons.svg",),
    **{name: (f"vendor/inter/{name}",) for name in ("inter.woff2", "inter-extended.woff2")},
    "htmx.js": ("vendor/htmx/htmx.min.js", "fragments.js"),
    "sortable.js": ("vendor/sortable/Sortable.min.js",),
    "combobox.js": ("vendor/combobox-nav/index.js", "combobox_global.js"),
    "uplot.js": ("vendor/uplot/uPlot.iife.min.js",),
    "uplot.css": ("vendor/uplot/uPlot.min.css",),
    "editor.js": ("editor/rows.js", "editor/saving.js", "editor/start.js"),
}
# What a template names in `libraries` and is more than one script, with the static files that its page loads.
_LIBRARIES = {
    "charts": ("uplot.css", "uplot.js", "charts.js"),
    "picker": ("combobox.js", "picker.js"),
}
_MODULES = frozenset({"combobox.js"})  # published as a JavaScript module only


@cache
def _read_content(name: str) -> bytes:
    folder = files(__package__) / "static"
    content = b"\n".join((folder / source).read_bytes() for source in _SOURCES[name])
    if name != "style.css":
        return content
    return re.sub(rb'url\("([\w.-]+)"\)', lambda file: f'url("{url_of(file[1].decode())}")'.encode(), content)


def create_manifest(name: str) -> bytes:
    """Return the web application manifest of the pages for clients, with which a phone installs them by a name."""
    icons = [
        {"src": url_of("icon-192.png"), "sizes": "192x192", "type": "image/png"},
        {"src": url_of("icon-512.png"), "sizes": "512x512", "type": "image/png"},
        {"src": url_of("icon-maskable-512.png"), "sizes": "512x512", "type": "image/png", "purpose": "maskable"},
    ]
    manifest = {
        "id": "/train",
        "name": name,
        "short_name": name,
        "description": "Your workouts, measurements and messages.",
        "start_url": "/train",
        "scope": "/",  # with the sign-in page, which is shown when a session has ended
        "display": "standalone",
        "background_color": "#f6f7f5",
        "theme_color": "#0b6e4f",
        "icons": icons,
    }
    return json.dumps(manifest).encode()


@cache
def _compressed(name: str) -> bytes:
    return gzip.compress(_read_content(name), 9, mtime=0)


@cache
def url_of(name: str) -> str:
    """Return the URL path of a static file, such as `style.css`. Raises KeyError for an unknown one."""
    stem, _, extension = name.partition(".")
    return f"{PREFIX}{stem}.{hashlib.sha256(_read_content(name)).hexdigest()[:12]}.{extension}"


@cache
def url_of_icon(name: str) -> str:
    """Return the URL of an icon in the sprite. Raises KeyError for a name that is not in scripts/icons.txt."""
    if name not in _icon_names():
        raise KeyError(name)
    return f"{url_of('icons.svg')}#{name}"


def files_of_libraries(names: Iterable[str]) -> Sequence[tuple[str, str]]:
    """Return the files of libraries: `stylesheet`, `script` or `module`, and the URL path.

    Raises KeyError for an unknown library.
    """
    found = [file for name in names for file in _LIBRARIES.get(name, (f"{name}.js",))]
    kinds = {
        file: "module" if file in _MODULES else "script" if file.endswith(".js") else "stylesheet" for file in found
    }
    return [(kinds[file], url_of(file)) for file in found]


def routes() -> list[web.RouteDef]:
    """Return the aiohttp routes of all static files, and of the service worker."""
    served = [web.get(url_of(name), partial(_serve_file, name)) for name in _SOURCES]
    return [*served, web.get(_SERVICE_WORKER, _serve_service_worker)]


@cache
def _icon_names() -> frozenset[str]:
    return frozenset(re.findall(r'<symbol id="([^"]+)"', _read_content("icons.svg").decode()))


async def _serve_file(name: str, request: web.Request) -> web.StreamResponse:
    content_type = _CONTENT_TYPES[name.partition(".")[2]]
    headers = {"Content-Type": content_type, "Cache-Control": _CACHE_CONTROL, "Vary": "Accept-Encoding"}
    if accepts_gzip(request) and not name.endswith((".png", ".woff2")):
        return web.Response(body=_compressed(name), headers=headers | {hdrs.CONTENT_ENCODING: "gzip"})
    return web.Response(body=_read_content(name), headers=headers)


_SERVICE_WORKER = "/service-worker.js"  # its path gives it control of all pages
# Of the pages of clients that open without a connection.
_SAVED = (
    *("style.css", "train.css", "app.js", "train.js", "push.js", "combobox.js", "picker.js", "own_workout.js"),
    *("icon.svg", "icons.svg", "icon-192.png", "inter.woff2"),
)
# The browser compares the script with its own at each registration.
_SERVICE_WORKER_HEADERS = {
    "Content-Type": "text/javascript; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}


# After which a saved page is shown while the network does not answer.
PATIENCE_MILLISECONDS = 3_000


async def _serve_service_worker(_: web.Request) -> web.Response:
    source = (files(__package__) / "static" / "service_worker.js").read_text()
    saved, icon = json.dumps([url_of(name) for name in _SAVED]), json.dumps(url_of("icon-192.png"))
    constants = f"const STATIC = {saved};\nconst ICON = {icon};\nconst PATIENCE = {PATIENCE_MILLISECONDS};"
    return web.Response(body=f'"use strict";\n{constants}\n{source}'.encode(), headers=_SERVICE_WORKER_HEADERS)
