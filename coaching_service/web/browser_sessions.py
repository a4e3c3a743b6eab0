"""Cookies of a browser: the sign-in session, the CSRF token of forms, and notices; and redirects with them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, TypedDict
from urllib.parse import SplitResult, unquote, urlencode, urlsplit

import orjson
from aiohttp import web
from marshmallow import Schema, ValidationError
from multidict import MultiDict

from coaching_service.core.auth import Principal, new_token
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import BadRequest, CompanySuspended, Forbidden
from coaching_service.core.fields import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text
from coaching_service.people.identities import models
from coaching_service.people.notifications import COMPANY
from coaching_service.people.second_factor import CHALLENGE_LIFETIME, Assertion, ChallengeAnswer
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions.models import Credentials
from coaching_service.web.forms import SUBMISSION_FIELD, FormData, load_form
from coaching_service.web.pages import Redirect

LIVE_HEADER = "X-Live"  # of requests that live.js sends by itself
# What a request of the service worker has that reads a page to save it: it must not use up the notice of the next page.
SAVES_PAGE = "X-Saves-Page"
_LOCAL_PATH = re.compile(r"/(app|oauth|train)([/?][!-\[\]-~]*)?", re.ASCII)
_SESSION_ENDED = "Your session has ended, so nothing was changed. Sign in and try again."
_NOTICE_SECONDS = 60
_NOTICE_BYTES = 2_700  # with its encoding and signature less than the 4,096 bytes beyond which browsers ignore a cookie
_DEVICE_TOKENS, _DEVICE_SEPARATOR = 5, "|"  # how many accounts of a browser are known
MAX_ANSWER = 50_000  # characters of the answer of a passkey
_NONCE_BYTES, _NONCE_LENGTH = 9, 12  # bytes, and the characters that they are in base64


NO_REDIRECT = Redirect("")


class CrossSiteForm(Forbidden):
    """A form that was sent from another site."""

    default_code = "CROSS_SITE_FORM"
    default_message = "This form was sent from another site, so nothing was changed."


class StaleForm(Forbidden):
    """A form whose CSRF token belongs to another session, or to one that has ended."""

    default_code = "STALE_FORM"
    default_message = "This page was out of date, so nothing was changed."


class Notice(NamedTuple):
    """A sentence that a page shows once, and the change that it reports, if any."""

    text: str
    change_id: ObjectId | None


@dataclass
class BrowserSession:
    """The cookies of one request and the coach or client they identify, if any.

    A form's CSRF token is a random number and its signature with a secret that only this browser's cookies hold: the
    session token or, before sign-in, the `visitor` cookie. `is_suspended`: the session is one of a suspended company,
    and continues when that is resumed. `device_tokens`: of the accounts that signed in on this browser.
    `known_company`: the name of the company of the last client who was signed in, until the client signs out, or of the
    one whose mail has led here. `is_automatic`: a script sent the request by itself. Its response sets no cookie, since
    another session may have begun while it was on its way.
    """

    services: Services
    token: str | None
    principal: Principal | None
    visitor_id: str
    is_new_visitor: bool
    is_suspended: bool = False
    device_tokens: tuple[str, ...] = ()
    known_company: str = ""
    is_automatic: bool = False

    @classmethod
    async def from_request(cls, services: Services, request: web.Request) -> BrowserSession:
        """Read the session of a request from its cookies.

        Only what a user does extends it, not what the script of an open page asks for by itself.
        """
        token = request.cookies.get(cookie_name(services, "session"))
        principal, is_suspended = None, False
        is_automatic = LIVE_HEADER in request.headers or SAVES_PAGE in request.headers
        try:
            principal = await sessions.find_web_principal(services, token, extends=not is_automatic) if token else None
        except CompanySuspended:
            is_suspended = True
        visitor_id = request.cookies.get(cookie_name(services, "visitor"))
        return cls(
            services,
            token,
            principal,
            visitor_id or new_token(),
            is_new_visitor=not visitor_id,
            is_suspended=is_suspended,
            device_tokens=device_tokens_of(services, request),
            known_company=_read_signed(services, request, COMPANY)
            or services.vault.open_value(COMPANY, request.query.get(COMPANY, ""))
            or "",
            is_automatic=is_automatic,
        )

    @classmethod
    def anonymous(cls, services: Services) -> BrowserSession:
        """Return a session without cookies, for errors that occur before they are read."""
        return cls(services, None, None, new_token(), is_new_visitor=False)

    @property
    def csrf_token(self) -> str:
        """A token for the forms of a page of this session: another one each time, so that compression reveals none."""
        nonce = secrets.token_urlsafe(_NONCE_BYTES)
        return nonce + self.services.vault.sign(self._csrf_subject(nonce))

    def _csrf_subject(self, nonce: str) -> str:
        who = f"session:{self.token}" if self.principal else f"visitor:{self.visitor_id}"
        return f"form {nonce} of {who}"

    def is_same_site(self, request: web.Request) -> bool | None:
        """Return whether a form was sent from a page of this application; None when the browser does not report it."""
        site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
        if site is not None:
            return None if site == "none" else site == "same-origin"
        if origin is not None:
            return split_address(origin).netloc in (request.host, urlsplit(self.services.base_url).netloc)
        return None

    def check_form_token(self, request: web.Request, token: str, *, has_mailed_token: bool = False) -> None:
        """Raise CrossSiteForm for a form sent from another site, StaleForm for one with another session's token.

        `has_mailed_token`: its page sends no referrer, so that browsers without `Sec-Fetch-Site` send a null origin.
        """
        headers = request.headers
        is_without_origin = has_mailed_token and headers.get("Origin") == "null" and "Sec-Fetch-Site" not in headers
        if self.is_same_site(request) is False and not is_without_origin:
            raise CrossSiteForm()
        if not self.accepts_form_token(token):
            raise StaleForm()

    def accepts_form_token(self, token: str) -> bool:
        """Return whether `token` is a CSRF token of this session."""
        nonce, signature = token[:_NONCE_LENGTH], token[_NONCE_LENGTH:]
        return self.services.vault.verify_signature(self._csrf_subject(nonce), signature)

    def set_cookies(self, response: web.StreamResponse, redirect: Redirect = NO_REDIRECT) -> None:
        """Set the cookies of this session on a response, and what a redirect says about them.

        The cookie of a client lasts as long as the session, which each request extends.
        """
        if self.is_automatic:
            return
        session, ends_session, device_token = redirect.session, redirect.ends_session, redirect.device_token
        if added := session.device_token if session is not None else device_token:
            tokens = (added, *self.device_tokens)[:_DEVICE_TOKENS]
            lifetime = int(models.LIFETIME.total_seconds())
            self._set_cookie(response, "device", _DEVICE_SEPARATOR.join(tokens), lifetime)
        if session is not None:
            self._set_cookie(response, "session", session.token, int(session.cookie_lifetime.total_seconds()))
        elif ends_session or (self.token and self.principal is None and not self.is_suspended):
            self._delete_cookie(response, "session")
            if ends_session:
                response.headers["Clear-Site-Data"] = '"storage"'
                self._delete_cookie(response, COMPANY)
        elif self.token and self.principal is not None and not self.principal.is_coach:
            lifetime = int(sessions.CUSTOMER_LIFETIME.total_seconds())
            self._set_cookie(response, "session", self.token, lifetime)
            if self.principal.company.name != self.known_company:
                replace(self, known_company=self.principal.company.name).remember_company(response)
        if self.is_new_visitor and self.principal is None:
            self._set_cookie(response, "visitor", self.visitor_id, None)

    def remember_company(self, response: web.StreamResponse) -> None:
        """Set the cookie with the name of the known company."""
        self._set_signed(response, COMPANY, self.known_company, int(models.LIFETIME.total_seconds()))

    def set_notice(self, response: web.StreamResponse, notice: str, change_id: ObjectId | None = None) -> None:
        """Store a sentence that the next page shows, cut if it is too long, with the change that it reports, if any."""
        short = notice.encode()[:_NOTICE_BYTES].decode(errors="ignore")
        stored = [short if short == notice else f"{short} …", change_id and str(change_id)]
        self._set_signed(response, "notice", stored, _NOTICE_SECONDS)

    def read_notice(self, request: web.Request) -> Notice:
        """Return the sentence stored for this page; it may be empty."""
        notice, change_id = _read_signed(self.services, request, "notice") or ("", None)
        return Notice(notice, ObjectId(change_id) if change_id else None)

    def set_provider_state(self, response: web.StreamResponse, state: str) -> None:
        """Store what the browser keeps of a sign-in at the OpenID provider; empty: nothing more."""
        if state:
            self._set_cookie(response, "provider", state, int(CHALLENGE_LIFETIME.total_seconds()))
        else:
            self._delete_cookie(response, "provider")

    def clear_notice(self, response: web.StreamResponse) -> None:
        """Delete the stored sentence, which has been shown."""
        self._delete_cookie(response, "notice")

    def _set_signed(self, response: web.StreamResponse, name: str, value: object, max_age: int) -> None:
        self._set_cookie(response, name, self.services.vault.seal_value(name, value), max_age)

    def _set_cookie(self, response: web.StreamResponse, name: str, value: str, max_age: int | None) -> None:
        response.set_cookie(
            cookie_name(self.services, name),
            value,
            max_age=max_age,
            path="/",
            httponly=True,
            secure=is_secure(self.services),
            samesite="Lax",
        )

    def _delete_cookie(self, response: web.StreamResponse, name: str) -> None:
        response.del_cookie(
            cookie_name(self.services, name), path="/", httponly=True, secure=is_secure(self.services), samesite="Lax"
        )


def _read_signed(services: Services, request: web.Request, name: str) -> Any:
    """Return the value of a signed cookie; None without one, or if another service has written it."""
    return services.vault.open_value(name, request.cookies.get(cookie_name(services, name), ""))


def is_secure(services: Services) -> bool:
    """Return whether the service's public URL is https."""
    return services.base_url.startswith("https:")


def cookie_name(services: Services, name: str) -> str:
    """Return the name of a cookie; over https it has the `__Host-` prefix, which ties it to this host."""
    return f"__Host-{name}" if is_secure(services) else f"coach_{name}"


def local_path(path: str | None, default: str = "/app") -> str:
    """Return `path` if it is a path of this application such as `/app/programs?page=2`, else `default`."""
    if not path or not _LOCAL_PATH.fullmatch(path):
        return default
    segments = unquote(path.partition("?")[0]).split("/")[1:]
    return default if {"", ".", ".."} & set(segments) else path


def split_address(address: str) -> SplitResult:
    """Return the parts of an address that a header has; none of one that is not valid."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def device_tokens_of(services: Services, request: web.Request) -> tuple[str, ...]:
    """Return the tokens by which a browser that signed in before has counters of failures of its own."""
    cookie = request.cookies.get(cookie_name(services, "device"), "")
    return tuple(cookie.split(_DEVICE_SEPARATOR)[:_DEVICE_TOKENS]) if cookie else ()


def provider_state_of(services: Services, request: web.Request) -> str:
    """Return what the browser has kept of a sign-in at the OpenID provider; empty: nothing."""
    return request.cookies.get(cookie_name(services, "provider"), "")


def home_of(user: Principal | None) -> str:
    """Return the start page of a user; None: there is no session."""
    return "/app" if user is None or user.is_coach else "/train"


def is_client_path(path: str) -> bool:
    """Return whether a path, with or without a query, is one of the pages for clients."""
    return path.partition("?")[0].split("/")[1] == "train"


def landing_path(kind: models.SubjectKind, next_path: str | None) -> str:
    """Return where a user goes after signing in: `next_path` if it is a page for them, else the start page."""
    home = "/app" if kind == "coach" else "/train"
    path = local_path(next_path, home)
    return path if is_client_path(path) == (kind == "customer") else home


def redirect_to_sign_in(request: web.Request, browser_session: BrowserSession) -> web.Response:
    """Redirect to the sign-in page, which returns to the page requested, or to the one a form was sent from."""
    is_read = request.method in ("GET", "HEAD")
    if is_read or request.path.startswith("/oauth/"):  # the consent form is sent to the URL of its page
        target = request.path_qs
    else:
        referrer = split_address(request.headers.get("Referer", ""))
        target = referrer._replace(scheme="", netloc="").geturl() if referrer.netloc == request.host else ""
    target = local_path(target.replace("\\", "%5C"), "")
    response = see_other("/app/sign-in" + (f"?{urlencode({'next': target})}" if target not in ("", "/app") else ""))
    browser_session.set_cookies(response)
    if COMPANY in request.query and browser_session.known_company:
        browser_session.remember_company(response)
    if not is_read:
        browser_session.set_notice(response, _SESSION_ENDED)
    return response


def redirect_response(
    browser_session: BrowserSession, redirect: Redirect, change_id: ObjectId | None = None
) -> web.Response:
    """Return the response of a page's Redirect, with its notice and session cookies; `change_id`: what was changed."""
    response = see_other(redirect.location)
    browser_session.set_cookies(response, redirect)
    if redirect.provider_state is not None:
        browser_session.set_provider_state(response, redirect.provider_state)
    if redirect.notice:
        browser_session.set_notice(response, redirect.notice, change_id)
    return response


def see_other(location: str) -> web.Response:
    """Return a 303 to `location`, which is sent unchanged: `web.HTTPSeeOther` would encode its query again."""
    return web.Response(
        status=303, headers={"Location": location, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    )


# --- Signing in again when a session has ended while a form was being filled in ---------------------------------------
# The response to such a form is a sign-in page that carries the submitted values in hidden fields. It is sent to the
# same
# URL and answered with the original form, filled in: nothing is changed until the form itself is submitted again. Only
# forms from pages of this application are treated in this way.


FORM_NAME, TEMPLATE = "reauthentication", "sign_in/session_expired.html"
SIGNED_IN_AGAIN = "You are signed in again. Nothing has been changed yet: check your entries and submit the form."
STALE_FORM = "This page was out of date, so nothing was changed. Check your entries and submit the form again."
PREFIX = f"{FORM_NAME}."
_NOT_CARRIED_OVER = ("password", "currentPassword", SUBMISSION_FIELD)


class _Reauthentication(TypedDict):
    reauthentication: Credentials


class CodeForm(TypedDict):
    """A challenge, and a code of the application, a recovery code, or the answer of a passkey as JSON.

    `methods`: what the page has asked for, separated by spaces; empty for a sign-in without a password.
    """

    challenge: Annotated[str, Text(max_length=1000)]
    methods: Annotated[str | None, Text(max_length=100)]
    code: Annotated[str | None, Text(max_length=50)]
    assertion: Annotated[str | None, Text(max_length=MAX_ANSWER)]


class _ReauthenticationCode(TypedDict):
    reauthentication: CodeForm


SCHEMA, CODE_SCHEMA = input_of(_Reauthentication)(), input_of(_ReauthenticationCode)()
ASSERTION = input_of(Assertion, name="AssertionInput")()
_APPLICATION_CODE = re.compile(r"[\s\d]{6,20}")


def read_answer(schema: Schema, text: str) -> Any:
    """Return the answer of a passkey that the script of a page has sent. Raises BadRequest for any other text."""
    try:
        return schema.load(orjson.loads(text))
    except (orjson.JSONDecodeError, ValidationError):
        raise BadRequest("The passkey was not accepted. Try again.") from None


async def answer_challenge(ctx: Context, form: CodeForm, device: str) -> sessions.StartedSession:
    """Start a session of the user whom a challenge asks. Raises what `verify_answer` raises."""
    answer: ChallengeAnswer = {"challenge": form["challenge"]}
    if assertion := form["assertion"]:
        answer["assertion"] = read_answer(ASSERTION, assertion)
    elif code := form["code"]:
        answer["code" if _APPLICATION_CODE.fullmatch(code) else "recoveryCode"] = code
    identity, principal = await sessions.verify_answer(ctx, answer)
    return await sessions.start_web(ctx, principal, identity.kind, device, has_second_factor=True)


def original_values(data: FormData) -> FormData:
    """Return the values of the original form, without passwords."""
    values = [
        (name, value) for name, value in data.items() if name not in _NOT_CARRIED_OVER and not name.startswith(PREFIX)
    ]
    return MultiDict(values)


async def sign_in(ctx: Context, data: FormData, device: str, device_tokens: Iterable[str]) -> sessions.StartedSession:
    """Start a session as web_sessions.sign_in does, or with the code that it has asked for.

    Raises ValidationError, and what web_sessions.sign_in_web raises.
    """
    if f"{PREFIX}challenge" in data:
        return await answer_challenge(ctx, load_form(CODE_SCHEMA, data)[FORM_NAME], device)
    credentials = load_form(SCHEMA, data)[FORM_NAME]
    return await sessions.sign_in_web(ctx, credentials["email"], credentials["password"], device, device_tokens)
