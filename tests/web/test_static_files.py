"""Libraries and icons: as published, licensed, served at hashed URLs and compressed; only where a template asks."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp_jinja2 import get_env

from coaching_service.core.media import UploadLimits
from coaching_service.web import rendering, static_files
from tests.support.visitor import Visitor

ROOT = Path(__file__).parents[2]
WEB = ROOT / "coaching_service" / "web"
VENDOR = WEB / "static" / "vendor"
ALL_TEMPLATES = "\n".join(path.read_text("utf-8") for path in sorted((WEB / "templates").rglob("*.html")))
MANIFEST = json.loads((VENDOR / "manifest.json").read_text("utf-8"))
CONTENT_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
HTMX_CONFIG = {
    "allowEval": False,
    "allowScriptTags": False,
    "includeIndicatorStyles": False,
    "selfRequestsOnly": True,
    "historyCacheSize": 0,
    "refreshOnHistoryMiss": True,
    "attributesToSettle": [],
}


def render_macro(name: str, *arguments: object) -> str:
    """The HTML of a macro of macros.html."""
    app = web.Application()
    rendering.configure_templates(app, UploadLimits())
    macros = get_env(app).get_template("macros.html").module
    return str(getattr(macros, name)(*arguments))


def library_tags(*names: str) -> str:
    """The tags that the layout has for a page with these libraries."""
    return render_macro("library_tags", names)


def test_each_library_is_unchanged_licensed_and_pinned() -> None:
    pinned = json.loads((ROOT / "scripts" / "vendor.json").read_text("utf-8"))
    assert {library["name"]: (library["version"], library["integrity"]) for library in MANIFEST} == {
        name: (library["version"], library["integrity"]) for name, library in pinned.items()
    }
    recorded: dict[str, str] = {}
    for library in MANIFEST:
        assert library["license"] in {"MIT", "0BSD", "ISC", "OFL-1.1"}
        folders = {path.partition("/")[0] for path in library["files"]}
        assert any(f"{folder}/LICENSE" in library["files"] for folder in folders), library["name"]
        recorded |= library["files"]
    files = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert files == recorded, "run scripts/vendor"


def test_the_sprite_has_the_listed_icons() -> None:
    lines = (ROOT / "scripts" / "icons.txt").read_text("utf-8").splitlines()
    names = [line for line in lines if not line.startswith("#")]
    assert names == sorted(set(names))
    sprite = (VENDOR / "lucide" / "icons.svg").read_text("utf-8")
    assert re.findall(r'<symbol id="([^"]+)" viewBox="0 0 24 24"><', sprite) == names, "run scripts/vendor"
    assert "style" not in sprite
    assert "script" not in sprite


@pytest.mark.parametrize("name", ["style.css", "app.js", "icons.svg", "htmx.js", "combobox.js", "uplot.css"])
async def test_static_files_are_compressed_for_who_accepts_it(visitor: Visitor, name: str) -> None:
    path = static_files.url_of(name)
    assert re.fullmatch(r"/app/static/[a-z]+\.[0-9a-f]{12}\.(css|js|svg)", path)
    plain = (await visitor.get(path, headers={"Accept-Encoding": "identity"})).ok()
    packed = (await visitor.get(path, headers={"Accept-Encoding": "gzip"})).ok()
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"])
    for answer in (plain, packed):
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert answer.headers["Content-Type"] == f"{CONTENT_TYPES[path.rpartition('.')[2]]}; charset=utf-8"
    assert packed.html == plain.html


async def test_the_typeface_is_our_own_and_small(visitor: Visitor) -> None:
    """Its files are in the style sheet by their hashes; a page in English loads the first one, and all are small."""
    style = (await visitor.get(static_files.url_of("style.css"))).ok().html
    addresses = [static_files.url_of(name) for name in ("inter.woff2", "inter-extended.woff2")]
    assert re.findall(r'url\("([^"]+)"\)', style) == addresses
    sizes = []
    for address in addresses:
        file = (await visitor.get(address, headers={"Accept-Encoding": "gzip"})).ok()
        assert file.headers["Content-Type"] == "font/woff2"
        assert file.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert "Content-Encoding" not in file.headers, "it is compressed already"
        sizes.append(int(file.headers["Content-Length"]))
    assert sizes[0] < 30_000
    assert sum(sizes) < 60_000
    page = (await visitor.get("/app/sign-in")).ok()
    assert f'<link rel="preload" href="{addresses[0]}" as="font" type="font/woff2" crossorigin>' in page.html
    assert "font-src 'self'" in page.headers["Content-Security-Policy"]


def test_libraries_and_icons_together_are_small() -> None:
    """A first page with every library stays under 120 kB; later ones load none of this again."""
    names = (
        "style.css",
        "app.js",
        "icons.svg",
        "htmx.js",
        "sortable.js",
        "combobox.js",
        "uplot.js",
        "uplot.css",
        "charts.js",
    )
    sizes = {name: len(gzip.compress(static_files._read_content(name), 9)) for name in names}
    assert sum(sizes.values()) < 90_000, sizes


async def test_a_page_loads_no_library_unless_its_template_names_it(visitor: Visitor) -> None:
    page = (await visitor.get("/app/forgotten-password")).ok()
    assert len(re.findall(r"<script\b", page.html)) == 1
    assert "htmx" not in page.html
    assert library_tags() == ""


def test_htmx_runs_no_code_of_pages_and_stays_on_this_site() -> None:
    tags = library_tags("htmx")
    config = re.search(r"""<meta name="htmx-config" content='([^']+)'>""", tags)
    assert config is not None
    assert json.loads(config[1]) == HTMX_CONFIG
    assert "htmx-config" not in library_tags("sortable", "charts")
    assert f'<script src="{static_files.url_of("htmx.js")}" defer></script>' in tags
    assert f'<script src="{static_files.url_of("combobox.js")}" type="module"></script>' in library_tags("combobox")
    with pytest.raises(KeyError):
        library_tags("jquery")


def test_htmx_ignores_html_of_users() -> None:
    """Text that is inserted as HTML is the only content of an element with hx-disable."""
    inserted = re.findall(r"\{\{[^}]*\|\s*safe\b[^}]*\}\}", ALL_TEMPLATES)
    disabled = re.findall(r"<[a-z]+\b[^>]*\bhx-disable>(\{\{[^}]*\|\s*safe\b[^}]*\}\})", ALL_TEMPLATES)
    assert inserted
    assert inserted == disabled


def test_icons_of_templates_are_in_the_sprite() -> None:
    for name in re.findall(r'\bicon\("([^"]+)"', ALL_TEMPLATES):
        assert static_files.url_of_icon(name).endswith(f"#{name}")


def test_unknown_icons_are_errors() -> None:
    with pytest.raises(KeyError):
        static_files.url_of_icon("unicorn")
