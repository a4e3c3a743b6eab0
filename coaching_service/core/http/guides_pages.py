"""The guides of docs/ as HTML pages below /docs/guides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

from coaching_service.core.http.docs_page import make_environment

if TYPE_CHECKING:
    from markdown_it.token import Token

PATH = "/docs/guides"
_MARKS = re.compile(r"[^\w\- ]")
_EXTERNAL = re.compile(r"https?://|mailto:")


@dataclass(frozen=True)
class Guide:
    """A guide: its name in the address, its title, and its text as Markdown."""

    name: str
    title: str
    text: str


@cache
def list_guides() -> tuple[Guide, ...]:
    """Return all guides, by title."""
    folder = files(__package__).joinpath("guides")
    texts = {file.name.removesuffix(".md"): file.read_text("utf-8") for file in folder.iterdir()}
    guides = [Guide(name, text.partition("\n")[0].removeprefix("# ").strip(), text) for name, text in texts.items()]
    return tuple(sorted(guides, key=lambda guide: guide.title))


def render_guide(guide: Guide) -> str:
    """Return the page of a guide."""
    template = make_environment().get_template("guide.html")
    return template.render(guide=guide, guides=list_guides(), path=PATH, content=_to_html(guide.text))


def _to_html(text: str) -> str:
    """Return Markdown as HTML; headings have the anchors that links between guides use.

    Links to files that are not guides, and pictures, are their text: these files are only in the repository.
    """
    from markdown_it import MarkdownIt  # not needed before a guide is read

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    _add_anchors(tokens)
    for token in tokens:
        _redirect_links(token.children or ())
    rendered: str = markdown.renderer.render(tokens, markdown.options, {})
    return rendered


def _add_anchors(tokens: Sequence[Token]) -> None:
    seen: Counter[str] = Counter()
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            anchor = _MARKS.sub("", content.content.lower()).replace(" ", "-")
            opening.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1


def _redirect_links(tokens: Sequence[Token]) -> None:
    names = {guide.name for guide in list_guides()}
    is_text = False
    for token in tokens:
        if token.type == "link_open":
            target, _, anchor = str(token.attrGet("href")).partition("#")
            name = target.rpartition("/")[2].removesuffix(".md")
            if target and not _EXTERNAL.match(target):
                is_text = name not in names or not target.endswith(".md")
                token.attrSet("href", f"{PATH}/{name}" + (f"#{anchor}" if anchor else ""))
        if token.type in ("link_open", "link_close") and is_text:
            token.tag, token.attrs = "span", {}
        if token.type == "link_close":
            is_text = False
        if token.type == "image":
            token.type, token.tag, token.content = "text", "", token.content
