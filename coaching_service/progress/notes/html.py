"""The HTML of notes: sanitised before it is stored."""

from __future__ import annotations

import re
from html import unescape

import nh3

from coaching_service.core.errors import invalid_field
from coaching_service.progress.notes.models import CONTENT_LENGTH

_BLOCK_TAG = re.compile(r"<(?!/?(a|b|code|em|i|s|span|strong|sub|sup|u)\b)")  # every other tag separates words
_ALLOWED_TAGS = {
    *("p", "br", "div", "span", "b", "strong", "i", "em", "u", "s", "sub", "sup", "code", "pre", "blockquote", "hr"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"),
}


def sanitise(html: str) -> str:
    """Return `html` without anything a browser would run or load.

    Raises InvalidFields if no text is left, or if it is too long then: characters are escaped, and open tags closed.
    """
    clean = nh3.clean(
        html,
        tags=_ALLOWED_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto", "tel"},
        link_rel="noopener noreferrer nofollow",
    ).strip()
    if not plain_text(clean):
        raise invalid_field("content", "should not be empty", code="EMPTY")
    if len(clean) > CONTENT_LENGTH:
        message = f"must not be longer than {CONTENT_LENGTH} characters as HTML with escaped characters and closed tags"
        raise invalid_field("content", message, code="TOO_LONG")
    return clean


def plain_text(clean_html: str) -> str:
    """Return the text of sanitised HTML in one line."""
    return " ".join(remove_tags(_BLOCK_TAG.sub(" <", clean_html)).split())


def remove_tags(clean_html: str) -> str:
    """Return the text between the tags of sanitised HTML."""
    return unescape(nh3.clean(clean_html, tags=set()))
