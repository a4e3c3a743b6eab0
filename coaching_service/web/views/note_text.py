"""Notes as plain text for a form: an empty line starts a new paragraph."""

from __future__ import annotations

import re

from markupsafe import escape

from coaching_service.progress.notes.html import remove_tags, sanitise

_LINE_END = re.compile(r"<br>|</li>|</tr>")
_BLOCK_END = re.compile(r"</(p|div|h[1-6]|ul|ol|table|pre|blockquote)>|<hr>")


def to_html(text: str) -> str:
    """Return plain text as paragraphs of HTML."""
    paragraphs = re.split(r"\n{2,}", text.replace("\r\n", "\n"))
    return "".join(f"<p>{str(escape(part)).replace(chr(10), '<br>')}</p>" for part in paragraphs if part.strip())


def to_text(html: str) -> str:
    """Return the text of a note's sanitised HTML, with a line for each line, and an empty line between paragraphs."""
    marked = _BLOCK_END.sub("\n\n", _LINE_END.sub("\n", html.replace("\n", " ").replace("<li>", "- ")))
    lines = "\n".join(line.strip() for line in remove_tags(marked).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def is_formatted(html: str) -> bool:
    """Return whether a note has more than paragraphs, such as bold words or a list, which its text does not have."""
    text = to_text(html)
    return html not in {sanitise(to_html(text)), str(escape(text)).replace("\n", "<br>")}
