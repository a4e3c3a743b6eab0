"""Reading the mails that the service has sent: both parts, and what every mail has in common."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import default
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.mail import SEND, send
from coaching_service.core.jobs.worker import run_due
from tests.support.service_process import until

# Nothing that a mail program would load, run or send.
_TAGS = {"html", "head", "meta", "title", "body", "div", "h1", "p", "table", "tr", "td", "a", "br"}
_ATTRIBUTES = {"lang", "style", "charset", "name", "content", "dir", "role", "href"} | {
    "border",
    "cellpadding",
    "cellspacing",
}
# It sends mails too, with links to its own address.
_APPLICATION_OF_BROWSERS = re.compile(r"http://127\.0\.0\.1:\d+")
_ONE_ADDRESS = re.compile(r"<https?://[\x21-\x3b=\x3f-\x7e]+>")
_ONLY_HTML = {"If the button does not work, open this address:", "."}


@dataclass
class MailParts:
    """A mail: its subject, its plain text, what a reader of its HTML sees, and the links of the HTML with their labels."""

    subject: str
    text: str
    html: str
    seen: list[str] = field(default_factory=list)
    links: dict[str, list[str]] = field(default_factory=dict)


class _Reader(HTMLParser):
    def __init__(self, parts: MailParts) -> None:
        super().__init__()
        self.parts = parts
        self.opened: list[str] = []
        self.link: str | None = None

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        assert tag in _TAGS, tag
        for name, value in attrs:
            assert name in _ATTRIBUTES, name
            assert "url(" not in (value or "")
        if tag == "html":
            assert ("lang", "en") in attrs
        if tag not in ("meta", "br"):
            self.opened.append(tag)
        if tag == "a":
            self.link = dict(attrs)["href"]
            assert self.link is not None

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag
        if tag == "a":
            self.link = None

    def handle_data(self, data: str) -> None:
        if not data.strip():
            return
        if self.opened[-1] == "title":
            assert data == self.parts.subject
            return
        self.parts.seen.append(data.strip())
        if self.link is not None:
            self.parts.links.setdefault(self.link, []).append(data.strip())


async def mails_once_sent(services: Services, folder: Path, **queued: ObjectId) -> list[EmailMessage]:
    """The mails in a folder, oldest first, once none is queued with these fields; the service sends them too."""

    async def is_sent() -> bool:
        await run_due(services, {SEND: send})
        return await services.db["jobs"].count_documents({"kind": SEND, **queued}) == 0

    await until(is_sent, "the mail to be sent")
    return await asyncio.to_thread(read_mails, folder)


def read_mails(folder: Path) -> list[EmailMessage]:
    """The mails in a folder, oldest first."""
    return [_parse(file) for file in sorted(folder.glob("*.eml"), key=_written_at)]


class _StoredMail(EmailMessage):
    """A mail that many tests look at: to parse one of its headers takes 0.15 ms, which is done once."""

    def __getitem__(self, name: str) -> Any:
        parsed: dict[str, Any] = self.__dict__.setdefault("_parsed", {})
        if name not in parsed:
            parsed[name] = super().__getitem__(name)
        return parsed[name]


@cache
def _written_at(file: Path) -> int:
    return file.stat().st_mtime_ns


@cache
def _parse(file: Path) -> EmailMessage:
    """Read a mail, which is written once: the folder of a run has thousands."""
    return message_from_bytes(file.read_bytes(), _class=_StoredMail, policy=default)


@cache
def part_of(mail: Message, kind: str) -> str:
    """The part of a mail that is `plain` or `html`."""
    assert isinstance(mail, EmailMessage)
    body = mail.get_body((kind,))
    assert body is not None, f"the mail has no part that is {kind}"
    content: str = body.get_content()
    return content.replace("\r\n", "\n")


def read_mail(mail: Message, base_url: str) -> MailParts:
    """Read a mail and check what applies to every one: its headers, its two parts, and that the HTML is inert."""
    assert mail.get_content_type() == "multipart/alternative"
    assert isinstance(mail, EmailMessage)
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"], (
        "the last is preferred"
    )
    assert mail["Auto-Submitted"] == "auto-generated"
    hosts = (
        base_url.partition("://")[2].partition(":")[0],
        "127.0.0.1",
    )  # of the application of browsers, which sends too
    assert mail["Message-ID"].endswith(tuple(f"@{host}>" for host in hosts))
    assert mail["Date"].datetime is not None
    for name in ("To", "From", "Subject", "Message-ID"):
        assert len(mail.get_all(name, [])) == 1
    plain, html = (_APPLICATION_OF_BROWSERS.sub(base_url, part_of(mail, kind)) for kind in ("plain", "html"))
    parts = MailParts(mail["Subject"], plain, html)
    reader = _Reader(parts)
    reader.feed(parts.html)
    reader.close()
    assert reader.opened == []
    assert parts.links
    for link in parts.links:
        assert link.startswith(f"{base_url}/")
        assert f"{link}\n" in parts.text, "the plain text has every link, each at the end of a line"
    missing = {seen for seen in parts.seen if seen not in parts.text} - _ONLY_HTML
    assert missing <= {label for labels in parts.links.values() for label in labels}
    check_headers(mail)
    return parts


def unsubscribe_link(mail: EmailMessage, base_url: str) -> str:
    """The address at which one click turns such mails off, as that of this application."""
    return _APPLICATION_OF_BROWSERS.sub(base_url, mail["List-Unsubscribe"])[1:-1]


def first_page(parts: MailParts) -> str:
    """The first link of a mail, without the name of the company that a client's link has."""
    return re.sub(r"\?company=[^#]*", "", next(iter(parts.links)))


def check_headers(mail: EmailMessage) -> None:
    """Check the headers as they are sent: lines that servers accept, and encoded words only where programs read them."""
    for name, value in mail.raw_items():
        assert all(len(line) <= 998 for line in f"{name}: {value}".splitlines())
        # Of an address header only the name of the person may be encoded.
        plain = "" if name == "Subject" else value.rpartition("<")[2] if name in ("From", "To") else value
        assert "=?" not in plain, f"{name}: {value}"
    unsubscribe = mail["List-Unsubscribe"]
    assert (mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click") == (unsubscribe is not None)
    assert unsubscribe is None or _ONE_ADDRESS.fullmatch(unsubscribe), unsubscribe
