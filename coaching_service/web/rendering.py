"""Drawing a page: its template in the layout, with the headers that every page has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import aiohttp_jinja2
import jinja2
from aiohttp import web

from coaching_service.core.auth.secrets import new_token
from coaching_service.core.errors import ServiceError
from coaching_service.core.http.handlers import UploadLimits
from coaching_service.core.validation import TIMEZONES
from coaching_service.web import static_files
from coaching_service.web.browser_sessions import BrowserSession, CrossSiteForm, StaleForm, is_secure
from coaching_service.web.forms import FormState

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# The names people know; the database of time zones has others for the sake of old programs.
_PARTS_OF_THE_WORLD = (
    *("Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific", "UTC"),
)
_HEADERS = {
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def configure_templates(app: web.Application, limits: UploadLimits) -> None:
    """Make `app` able to draw pages; `limits` are told beside files."""
    aiohttp_jinja2.setup(
        app,
        loader=jinja2.PackageLoader(__package__, "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        default_helpers=False,
        filters=_FILTERS,
    ).globals.update(static=static_files.url_of, new_token=new_token, zones=_ZONES, limits=limits)


def policy(browser_session: BrowserSession, *, external_redirect: bool) -> str:
    """Return the Content-Security-Policy of a page.

    `external_redirect`: its forms may redirect to another site, or to an application on the user's device by http.
    """
    if external_redirect:
        return _POLICY
    return f"{_POLICY}; form-action 'self'" + (
        "; upgrade-insecure-requests" if is_secure(browser_session.services) else ""
    )


def render_page(
    request: web.Request,
    browser_session: BrowserSession,
    template: str,
    variables: Mapping[str, Any],
    *,
    typed: FormState | None = None,
    status: int = 200,
    external_redirect: bool = False,
) -> web.Response:
    """A page of the application, in the layout, for whoever visits.

    Templates also have `who` (the coach, or None), `csrf`, `path`, `notice`, `may(permission)`, and `form(name)`:
    what was typed into the form of that name if it was not accepted, else an empty one.
    """
    notice = browser_session.read_notice(request)
    who = browser_session.principal
    known = {
        "current_user": who,
        "csrf_token": browser_session.csrf,
        "path": request.path,
        "path_with_query": request.path_qs,
        "notice": notice,
        "can": lambda permission: who is not None and permission in who.permissions,
        "form": lambda name: typed if typed is not None and typed.name == name else FormState(name),
        "submitted_form": typed,
    }
    response = aiohttp_jinja2.render_template(template, request, known | dict(variables), status=status)
    response.headers.update(_HEADERS)
    response.headers["Content-Security-Policy"] = policy(browser_session, external_redirect=external_redirect)
    browser_session.set_cookies(response)
    if notice:
        browser_session.clear_notice(response)
    return response


def render_fragment(request: web.Request, template: str, variables: Mapping[str, Any]) -> bytes:
    """A piece of a page, without the layout."""
    return aiohttp_jinja2.render_string(template, request, variables).encode()


_ZONES = sorted(name for name in TIMEZONES if name.partition("/")[0] in _PARTS_OF_THE_WORLD)
_ADVICE: dict[Any, tuple[str, str]] = {
    StaleForm: ("Send it once more", "Open the page again and send the form from there. Cookies must be allowed."),
    CrossSiteForm: ("That came from another site", "If it was you, open the page here and send the form from there."),
    401: ("Sign in first", "Your session has ended."),
    403: ("This is not for you", "Ask the owner of your company for the permission, or go back."),
    404: ("Nothing is here", "It may have been deleted, or the address is mistyped."),
    405: ("That is not how this page is used", "Redirect back and use the page's own buttons."),
    408: ("That took too long", "Check your connection and send it again."),
    409: ("Somebody was faster", "Redirect back, load the page again, and repeat your change."),
    413: ("That is too much at once", "Send less in one go."),
    429: ("Slow down", "There were too many attempts."),
    503: ("Back in a moment", "The database cannot be reached. Nothing was lost; try again shortly."),
}


# Who is not signed in as a coach has no owner to ask.
_NO_COACH = (
    "This is not for you",
    "If you are a client: you sign in where your training is shown to you, and your coach can tell you where that is.",
)
_PERMISSION = re.compile(r"\b[a-z]+\.(view|create|edit|delete)\b")


def render_error(request: web.Request, browser_session: BrowserSession, error: ServiceError) -> web.Response:
    """The page of a failure: what happened, and what to do next."""
    title, advice = _ADVICE.get(
        type(error) if type(error) in _ADVICE else error.status,
        ("Something went wrong", "It is our mistake. Try again; if it stays, tell us when it happened."),
    )
    if error.status == 403 and browser_session.principal is None:
        title, advice = _ADVICE.get(type(error), _NO_COACH)
    if error.status == 400:
        title, advice = "That could not be read", "Redirect back and try again."
    sentences = [error.message] if isinstance(error.message, str) else error.message
    told = [_PERMISSION.sub(lambda name: f"“{_permission(name[0])}”", each) for each in sentences]
    told = told if error.status not in (404, 405, 500) else []
    variables = {"title": title, "advice": advice, "sentences": told, "status": error.status}
    response = render_page(request, browser_session, "error.html", variables, status=error.status)
    response.headers.update(error.headers)
    return response


def _day(value: str | date | None) -> str:
    """`2026-03-02` as `Mon 2 Mar 2026`."""
    if value is None:
        return "–"
    day = date.fromisoformat(value[:10]) if isinstance(value, str) else value
    return f"{day:%a} {day.day} {day:%b %Y}"


@jinja2.pass_context
def _moment(context: jinja2.runtime.Context, value: datetime | None) -> str:
    """A stored time as `2 Mar 2026, 09:30 CET`: where the page's client is, else the company."""
    if value is None:
        return "–"
    who, client = context.get("current_user"), context.get("customer") or {}
    zone = client.get("timezone") or (who.company.timezone if who is not None else "UTC")
    at = value.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    return f"{at.day} {at:%b %Y, %H:%M %Z}"


def _number(value: float | None, unit: str = "") -> str:
    """A number without idle zeros, thousands set apart, with its unit."""
    if value is None:
        return "–"
    text = f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return f"{text} {unit}".rstrip()


def file_size(count: int) -> str:
    """A number of bytes: `40 bytes`, `1.2 kB`, `3.4 MB`."""
    if count < 1_000:
        return quantity(count, "byte")
    return _number(round(count / 1e6, 1), "MB") if count >= 1_000_000 else _number(round(count / 1e3, 1), "kB")


def quantity(count: int, one: str) -> str:
    """So many of them: `1 workout`, `2 workouts`."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def _options(documents: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Records as what a choice offers: identifier and name."""
    return [(str(each["_id"]), each["name"]) for each in documents]


def _worded(words: Sequence[str]) -> list[tuple[str, str]]:
    """A few words as what a choice offers."""
    return [(word, word.capitalize()) for word in words]


def _area(name: str) -> str:
    """An area of permissions as the pages call it."""
    return {"customers": "Clients"}.get(name, name.capitalize())


def _permission(name: str) -> str:
    """A permission as the pages call it: `customers.create` is `Clients: create`."""
    area, _, action = name.partition(".")
    return f"{_area(area)}: {action}"


def _local(address: str) -> str:
    """An address of ours without the host, so that it is asked for where the page came from."""
    return urlsplit(address)._replace(scheme="", netloc="").geturl()


_FILTERS: dict[str, Any] = {
    "date": _day,
    "datetime": _moment,
    "quantity": quantity,
    "file_size": file_size,
    "number": _number,
    "document_options": _options,
    "word_options": _worded,
    "relative_url": _local,
    "permission_area": _area,
    "permission_label": _permission,
}
