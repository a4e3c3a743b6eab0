"""The body of a mail: the same content as plain text, and as HTML from one template.

Names of companies, coaches and clients are untrusted: HTML is escaped, and no text can add a line to a mail.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, NotRequired, TypedDict

import jinja2

from coaching_service.core.text import DIRECTION_CONTROLS

_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_ADDRESS = re.compile(r"\w\.\w{2}|@|://|\bwww\b", re.IGNORECASE)


class MailBody(TypedDict):
    """What a mail consists of, without any markup; each text is one line.

    `company` is the header, `name` the recipient, `button` the label of the `link`; `notes` follow the link. `reason`
    is a sentence that states why the person receives the mail. `settings` is the address of the page where the
    recipient can turn such mails off, None if they cannot be turned off there. `decline` is the address of the page
    where a stranger declines further mails, `unsubscribe` of the one where the recipient turns such mails off without
    signing in; both stop them by a POST too.
    """

    company: str
    name: str
    paragraphs: list[str]
    button: str
    link: str
    notes: list[str]
    reason: str
    settings: str | None
    decline: NotRequired[str]
    unsubscribe: NotRequired[str]


def has_address(text: str) -> bool:
    """Return whether a text has a word that a mail program could show as a link: a domain, URL or e-mail address."""
    return _ADDRESS.search(unicodedata.normalize("NFKC", to_line(text)).replace("\u3002", ".")) is not None


def subject_with(name: str, subject: str, fixed: str) -> str:
    """Return `subject` with a name in place of `{}`, or the `fixed` one if the name has an address in it."""
    return fixed if has_address(name) else subject.format(name)


def to_line(text: str) -> str:
    """Return a text as one line that is read in its own direction.

    Line breaks and control characters become a space; characters that reverse what follows them are removed.
    """
    return DIRECTION_CONTROLS.sub("", _BREAKS.sub(" ", text)).strip()


def render_text(body: MailBody, addition: str | None = None) -> str:
    """Return a body as plain text; `addition` is a paragraph that only the plain text has, after the notes."""
    blocks = [
        f"Hello {to_line(body['name'])},",
        *(to_line(paragraph) for paragraph in body["paragraphs"]),
        f"{to_line(body['button'])}:",
        body["link"],
        *(to_line(note) for note in body["notes"]),
        *([] if addition is None else [to_line(addition)]),
        f"{to_line(body['company'])}\n{to_line(body['reason'])}",
    ]
    if body["settings"] is not None:
        blocks[-1] += f"\nTurn these mails off in your settings: {body['settings']}"
    if "decline" in body:
        blocks[-1] += f"\nThis was not meant for you, or you want no more of these invitations: {body['decline']}"
    return "\n\n".join(blocks) + "\n"


def render_html(body: MailBody, subject: str) -> str:
    """Return a body as an HTML document in English with inline styles, which refers to no other file."""
    return _template().render(body=body, subject=subject)


def _finalize(value: Any) -> Any:
    return to_line(value) if isinstance(value, str) else value


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "mail_templates"),
        autoescape=True,
        finalize=_finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("mail.html")
