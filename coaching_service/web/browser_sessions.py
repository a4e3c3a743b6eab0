"""Who visits: the session in the cookie, the token that every form carries, and where a form comes from."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from aiohttp import web

from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import new_token
from coaching_service.core.database.context import Services
from coaching_service.core.errors import Forbidden
from coaching_service.people.sessions import web_sessions

CSRF_FIELD = "csrf"
_LOCAL = re.compile(r"/(app|oauth)([/?][!-\[\]-~]*)?", re.ASCII)


class CrossSiteForm(Forbidden):
    """A form that another site's page sent."""

    def __init__(self) -> None:
        super().__init__("This form was sent from another site, so nothing was done.")


class StaleForm(Forbidden):
    """A form whose token is not this browser_session's: the session behind it has ended, or another has begun."""

    def __init__(self) -> None:
        super().__init__("This page was out of date, so nothing was changed.")


@dataclass
class BrowserSession:
    """One request of a browser: its cookies, and the coach behind them, if any.

    A form's token is a signature of a secret that only this browser's cookie holds: the session's token, or before
    there is one a `visitor` cookie of its own.
    """

    services: Services
    session: str | None
    principal: Principal | None
    visitor: str
    is_new: bool

    @classmethod
    async def from_request(cls, services: Services, request: web.Request) -> BrowserSession:
        """What a request's cookies say."""
        session = request.cookies.get(cookie_name(services, "session"))
        principal = await web_sessions.find_principal(services, session) if session else None
        visitor = request.cookies.get(cookie_name(services, "visitor"))
        return cls(services, session, principal, visitor or new_token(), is_new=not visitor)

    @classmethod
    def anonymous(cls, services: Services) -> BrowserSession:
        """A browser_session of which nothing is known, as when the database cannot be asked."""
        return cls(services, None, None, new_token(), is_new=False)

    async def signed_in(self, session: str) -> BrowserSession:
        """The same browser with a session that has just begun."""
        return replace(self, session=session, principal=await web_sessions.find_principal(self.services, session))

    @property
    def csrf(self) -> str:
        """What every form of this browser_session carries."""
        return self.services.vault.sign(self._bound)

    @property
    def _bound(self) -> str:
        return f"form of session:{self.session}" if self.principal else f"form of visitor:{self.visitor}"

    def is_same_site(self, request: web.Request) -> bool | None:
        """Whether a form was sent from a page of ours; None when the browser does not tell."""
        site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
        if site is not None:
            return None if site == "none" else site == "same-origin"
        if origin is not None:
            return urlsplit(origin).netloc in (request.host, urlsplit(self.services.base_url).netloc)
        return None

    def check_form_token(self, request: web.Request, token: str) -> None:
        """Raises CrossSiteForm for a form of another site, StaleForm for an old token."""
        if self.is_same_site(request) is False:
            raise CrossSiteForm()
        if not self.accepts(token):
            raise StaleForm()

    def accepts(self, token: str) -> bool:
        """Whether this is the token of a form drawn for this browser_session."""
        return self.services.vault.verify_signature(self._bound, token)

    def set_cookies(self, response: web.StreamResponse, *, session: str | None = None, ends: bool = False) -> None:
        """Give a response the cookies of this browser_session; `session` begins one, `ends` ends it."""
        if session is not None:
            self._set(response, "session", session, int(web_sessions.LIVES.total_seconds()))
        elif ends or (self.session and self.principal is None):
            self._drop(response, "session")
        if self.is_new and self.principal is None:
            self._set(response, "visitor", self.visitor, None)

    def set_notice(self, response: web.StreamResponse, notice: str) -> None:
        """Leave a sentence for the next page."""
        text = base64.urlsafe_b64encode(notice.encode()).decode()
        self._set(response, "notice", f"{text}.{self.services.vault.sign(f'notice:{text}')}", 60)

    def read_notice(self, request: web.Request) -> str:
        """The sentence that was left for this page, or an empty one."""
        text, _, signature = request.cookies.get(cookie_name(self.services, "notice"), "").partition(".")
        if not text or not self.services.vault.verify_signature(f"notice:{text}", signature):
            return ""
        return base64.urlsafe_b64decode(text).decode()

    def clear_notice(self, response: web.StreamResponse) -> None:
        """Forget it: it is read once."""
        self._drop(response, "notice")

    def _set(self, response: web.StreamResponse, name: str, value: str, seconds: int | None) -> None:
        response.set_cookie(
            cookie_name(self.services, name),
            value,
            max_age=seconds,
            path="/",
            httponly=True,
            secure=is_secure(self.services),
            samesite="Lax",
        )

    def _drop(self, response: web.StreamResponse, name: str) -> None:
        response.del_cookie(
            cookie_name(self.services, name), path="/", httponly=True, secure=is_secure(self.services), samesite="Lax"
        )


def is_secure(services: Services) -> bool:
    """Whether the service is known by an https address."""
    return services.base_url.startswith("https:")


def cookie_name(services: Services, name: str) -> str:
    """A cookie's name; with https one that browsers take from this host alone."""
    return f"__Host-{name}" if is_secure(services) else f"coach_{name}"


def local(path: str | None, otherwise: str = "/app") -> str:
    """`path` if it is an address of this application's, such as `/app/programs?page=2`; else `otherwise`."""
    if not path or not _LOCAL.fullmatch(path):
        return otherwise
    steps = unquote(path.partition("?")[0]).split("/")[1:]
    return otherwise if {"", ".", ".."} & set(steps) else path
