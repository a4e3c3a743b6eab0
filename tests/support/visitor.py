"""A browser without scripts: cookies, links and forms."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import unescape
from typing import Any

import aiohttp
from aiohttp.test_utils import BaseTestServer
from yarl import URL

Fields = list[tuple[str, str]]


@dataclass
class HtmlForm:
    """A form on a page with its present values."""

    action: str
    method: str = "post"
    multipart: bool = False
    fields: Fields = field(default_factory=list)
    controls: dict[str, dict[str, str | None]] = field(default_factory=dict)


@dataclass
class HtmlPage:
    """A received page."""

    status: int
    path: str
    headers: Any
    html: str
    cookies: list[str]
    is_html: bool

    # Most tests read only the text: to read the elements of a page takes ten times as long.

    @cached_property
    def text(self) -> str:
        """The text without tags, of another type all of it."""
        return " ".join((unescape(_TAG.sub(" ", self.html)) if self.is_html else self.html).split())

    @cached_property
    def _elements(self) -> _Reader:
        return _Reader(self)

    @cached_property
    def forms(self) -> list[HtmlForm]:
        """The forms in their order."""
        return self._elements.forms

    @cached_property
    def links(self) -> list[str]:
        """The addresses of the links in their order."""
        return self._elements.links

    def with_form(self, form: HtmlForm) -> HtmlPage:
        """The page with only this form, of several with the same action."""
        page = replace(self)
        page.forms = [form]
        return page

    def form(self, action: str, method: str = "post") -> HtmlForm:
        """The form with this action."""
        results = [form for form in self.forms if (form.action.partition("?")[0], form.method) == (action, method)]
        assert results, f"{self.status} at {self.path} has no form {action}: {self.text[:500]}"
        return results[0]

    def says(self, *sentences: str) -> HtmlPage:
        """Assert that the page's text has all of these."""
        for sentence in sentences:
            assert sentence in self.text, f"{sentence!r} is not in {self.text!r}"
        return self

    def ok(self, status: int = 200) -> HtmlPage:
        """Assert the status."""
        assert self.status == status, f"{self.status} at {self.path}: {self.text[:500]}"
        return self


_INSIDE = r"""(?:[^"'>]++|"[^"]*"|'[^']*')*+"""  # of a tag, to its end
_TAG = re.compile(rf"<!--.*?-->|<[/!?]?[a-z]{_INSIDE}>", re.DOTALL | re.IGNORECASE)
_ELEMENT = re.compile(rf"<!--.*?-->|<(/?)(a|form|select|option|textarea|input|button)\b({_INSIDE})>", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'))?""")


def _read_attributes(text: str) -> dict[str, str | None]:
    """The values of the attributes in a tag; None of one without a value."""
    pairs = [(each[1], each[2] if each[2] is not None else each[3]) for each in _ATTRIBUTE.finditer(text)]
    return {name: value and unescape(value) for name, value in pairs}


class _Reader:
    """The links and forms of a page as the service writes them: lower-case tags, and values in quotation marks."""

    def __init__(self, page: HtmlPage) -> None:
        self.path, self.select = page.path, ""
        self.forms: list[HtmlForm] = []
        self.links: list[str] = []
        self.elsewhere: dict[str, dict[str, dict[str, str | None]]] = {}  # controls by the id of their form
        self.form: HtmlForm | None = None
        if page.is_html:  # bytes of a picture may begin like a declaration
            self._read(page.html)

    def _read(self, html: str) -> None:
        for element in _ELEMENT.finditer(html):
            closing, tag, attributes = element.groups()
            if closing:
                self.form = None if tag == "form" else self.form
            elif tag:
                content = html[element.end() : html.index("</textarea", element.end())] if tag == "textarea" else ""
                self._start(tag, _read_attributes(attributes), unescape(content).removeprefix("\n"))

    def _start(self, tag: str, given: dict[str, str | None], content: str) -> None:
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif tag == "form":
            multipart = given.get("enctype") == "multipart/form-data"
            self.form = HtmlForm(given.get("action") or self.path, given.get("method") or "get", multipart)
            self.forms.append(self.form)
            self.form.controls.update(self.elsewhere.pop(given.get("id") or "", {}))
        elif owner := given.get("form"):  # of a form below
            self.elsewhere.setdefault(owner, {})[given.get("name") or ""] = given
        elif self.form is not None:
            self._control(tag, given, content)

    def _control(self, tag: str, given: dict[str, str | None], content: str) -> None:
        assert self.form is not None
        name = given.get("name")
        if tag == "select":
            self.select = name or ""
        elif tag == "option" and self.select and "selected" in given:
            self.form.fields.append((self.select, given.get("value") or ""))
        elif tag == "textarea" and name:
            self.form.fields.append((name, content))
        elif tag == "input" and name:
            self.form.controls[name] = given
            ticked = "checked" in given or given.get("type") not in ("checkbox", "radio")
            if ticked and given.get("type") != "submit":
                self.form.fields.append((name, given.get("value") or ""))


def _missing_references(html: str) -> set[str]:
    """Return the ids that labels and descriptions refer to and that are not on the page."""
    references = {
        each for ids in re.findall(r' aria-(?:describedby|labelledby)="([^"]*)"', html) for each in ids.split()
    }
    return (references | set(re.findall(r'<label[^>]* for="([^"]*)"', html))) - set(re.findall(r' id="([^"]*)"', html))


class Visitor:
    """One browser."""

    def __init__(self, server: BaseTestServer) -> None:
        self._http = aiohttp.ClientSession(
            base_url=server.make_url("/"), cookie_jar=aiohttp.CookieJar(unsafe=True), headers={"Accept": "text/html"}
        )

    async def close(self) -> None:
        """Close the browser."""
        await self._http.close()

    async def send(self, method: str, path: str | URL, *, follow: bool = True, **options: Any) -> HtmlPage:
        """Send a request."""
        async with self._http.request(method, path, allow_redirects=follow, **options) as response:
            html = await response.text(errors="replace")  # pages link to pictures and videos too
            page = HtmlPage(
                response.status,
                response.url.raw_path_qs,
                response.headers,
                html,
                [str(c) for r in (*response.history, response) for c in r.headers.getall("Set-Cookie", [])],
                response.content_type == "text/html",
            )
        missing = _missing_references(page.html) if page.is_html else set()
        assert not missing, f"{page.path} refers to missing ids: {missing}"
        return page

    async def get(self, path: str | URL, **options: Any) -> HtmlPage:
        """Open a page."""
        return await self.send("GET", path, **options)

    async def submit(self, page: HtmlPage, action: str, /, **typed: Any) -> HtmlPage:
        """Fill in a form of a page, send it, and follow redirects. A list fills a field several times, None leaves it out;
        a file is its name and its bytes."""
        return await self._submit(page, action, typed, follow=True)

    async def submit_only(self, page: HtmlPage, action: str, /, **typed: Any) -> HtmlPage:
        """Fill in a form of a page and send it, without following a redirect."""
        return await self._submit(page, action, typed, follow=False)

    async def _submit(self, page: HtmlPage, action: str, typed: dict[str, Any], *, follow: bool) -> HtmlPage:
        form = page.form(action)
        pairs = [(name, value) for name, value in form.fields if name.replace(".", "__") not in typed]
        chosen = {name: typed.pop(name) for name in [*typed] if isinstance(typed[name], tuple)}
        for name, value in typed.items():
            given = value if isinstance(value, list) else [value]
            pairs += [(name.replace("__", "."), each) for each in given if each is not None]
        headers = {"Sec-Fetch-Site": "same-origin", "Referer": str(self._http._base_url) + page.path.lstrip("/")}
        data = aiohttp.FormData(default_to_multipart=form.multipart, charset="utf-8")
        for name, value in pairs:
            if (form.controls.get(name) or {}).get("type") != "file":
                data.add_field(name, value)
        for name in [name for name, control in form.controls.items() if control.get("type") == "file"]:
            file_name, content = chosen.get(name, ("", b""))
            data.add_field(name, io.BytesIO(content), filename=file_name, content_type="application/octet-stream")
        return await self.send("POST", form.action, follow=follow, headers=headers, data=data)

    async def sign_in(self, email: str, password: str, at: str = "/app/sign-in") -> HtmlPage:
        """Open the sign-in page and sign in."""
        return await self.submit(await self.get(at), "/app/sign-in", email=email, password=password)

    def cookies(self) -> dict[str, str]:
        """The stored cookies."""
        return {cookie.key: cookie.value for cookie in self._http.cookie_jar}

    def keep(self, **cookies: str) -> None:
        """Put cookies into the jar."""
        self._http.cookie_jar.update_cookies(cookies, self._http._base_url or URL())
