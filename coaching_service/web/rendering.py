"""Rendering of pages: a template in the layout, with the headers of every page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, get_args

import aiohttp_jinja2
import jinja2
from aiohttp import web

from coaching_service.core.auth import EXERCISES, Principal, new_token
from coaching_service.core.dates import TIMEZONES
from coaching_service.core.fields import Description, Label, declarations_of
from coaching_service.core.http.responses import COMPRESSIBLE
from coaching_service.core.media import IMAGE_TYPES, MEDIA_TYPES, PDF, UploadLimits
from coaching_service.people.notifications import COMPANY
from coaching_service.progress.conversation import service as conversation
from coaching_service.training.workouts.blocks.models import WorkoutSettings
from coaching_service.web import static_files
from coaching_service.web.browser_sessions import SAVES_PAGE, BrowserSession, home_of, is_client_path, is_secure
from coaching_service.web.formatting import EMBEDDED_SITES, FILTERS
from coaching_service.web.forms import FormState, accepted_files

_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; media-src 'self' blob:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
    f"frame-src {' '.join(EMBEDDED_SITES)}"
)
CLIENT_LAYOUT = "train/layout.html"
_HEADERS = {
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# The areas of the time zones that are offered; the database also has aliases such as US/Pacific.
_TIMEZONE_AREAS = frozenset(
    {"Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific", "UTC"}
)
_TIMEZONES = sorted(name for name in TIMEZONES if name.partition("/")[0] in _TIMEZONE_AREAS)


def configure_templates(app: web.Application, limits: UploadLimits) -> None:
    """Set up Jinja for `app`; templates state next to file inputs what is accepted, and the upload `limits`."""
    environment = aiohttp_jinja2.setup(
        app,
        loader=jinja2.PackageLoader(__package__, "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        default_helpers=False,
        filters=FILTERS,
    )
    environment.globals.update(
        static=static_files.url_of,
        icon_url=static_files.url_of_icon,
        library_files=static_files.files_of_libraries,
        new_token=new_token,
        timezones=_TIMEZONES,
        workout_settings=list(_controls_of(WorkoutSettings)),
        limits=limits,
        accepted={
            "photo": accepted_files(IMAGE_TYPES),
            "plan": accepted_files((PDF, *IMAGE_TYPES)),
            "media": accepted_files(MEDIA_TYPES),
            "attachment": accepted_files(conversation.ATTACHMENT_TYPES),
        },
    )


def _controls_of(model: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, label, type and hint of the control of each field of a TypedDict, for `settings_fields`."""
    for each in declarations_of(model).values():
        label, description = each.find(Label) or Label(each.name), each.find(Description) or Description()
        types = [name for kind, name in ((int, "whole"), (float, "decimal")) if kind in get_args(each.hint)]
        yield each.name, label.text, (types or ["text"])[0], description.text or ""


def content_security_policy(browser_session: BrowserSession, *, external_redirect: bool) -> str:
    """Return the Content-Security-Policy of a page.

    `external_redirect`: its forms may redirect to another site, or to an application on the user's device by http.
    """
    if external_redirect:
        return _CONTENT_SECURITY_POLICY
    policy = f"{_CONTENT_SECURITY_POLICY}; form-action 'self'"
    return f"{policy}; upgrade-insecure-requests" if is_secure(browser_session.services) else policy


def render_page(
    request: web.Request,
    browser_session: BrowserSession,
    template: str,
    variables: Mapping[str, Any],
    *,
    form_state: FormState | None = None,
    status: int = 200,
    external_redirect: bool = False,
) -> web.Response:
    """Render a page in the layout.

    Besides `variables` templates have `current_user` (the coach or client, or None), `home` (the user's start page),
    `layout` (the template of the layout for the user), `csrf_token`, `path`, `path_with_query`,
    `notice`, `undoable_change` (what the notice reports, if the coach may undo it), `unread_messages` (how many a
    client has not read), `company_name` (empty if it is not known whose page it is), `picker_path` (of the search of
    exercises, empty without the permission), `waiting_proposals` (how many wait for the coach), `can(permission)`,
    `submitted_form` (the rejected form, or None), `form(name)`: the submitted values and errors of that form if it was
    rejected, else an empty state, and `seal_company(name)` for the address of the manifest.
    """
    is_saved_only = SAVES_PAGE in request.headers
    notice = "" if is_saved_only else browser_session.read_notice(request).text
    user = browser_session.principal
    context = {
        "current_user": user,
        "home": home_of(user),
        "csrf_token": browser_session.csrf_token,
        "path": request.path,
        "notice": notice,
        "can": lambda permission: user is not None and permission in user.permissions,
        "form": lambda name: form_state if form_state is not None and form_state.name == name else FormState(name),
        "submitted_form": form_state,
        "seal_company": partial(browser_session.services.vault.seal_value, COMPANY),
    }
    replaceable = {
        "path_with_query": request.path_qs,
        "picker_path": _picker_path(user),
        "layout": CLIENT_LAYOUT if is_for_client(request, user) else "layout.html",
        "undoable_change": None,
        "unread_messages": 0,
        "waiting_proposals": 0,
        "company_name": user.company.name if user else browser_session.known_company,
    }
    # `dict` refuses variables of a page that have the name of something else.
    response = aiohttp_jinja2.render_template(
        template, request, replaceable | dict(**context, **variables), status=status
    )
    response.headers.update(_HEADERS)
    response.headers["Content-Security-Policy"] = content_security_policy(
        browser_session, external_redirect=external_redirect
    )
    if status < 500:  # otherwise the session may be unknown
        is_client = user is not None and not user.is_coach
        response.headers["Offline-Session"] = str(user.credential_id) if user is not None and is_client else "none"
    browser_session.set_cookies(response)
    response[COMPRESSIBLE] = is_client_path(request.path) or not _is_from_elsewhere(request)
    if notice:
        browser_session.clear_notice(response)
    return response


def _picker_path(user: Principal | None) -> str:
    """Return the path of the page that searches exercises; empty for a coach who may not see them."""
    if user is None or (user.is_coach and EXERCISES.VIEW not in user.permissions):
        return ""
    return "/app/pick-exercise" if user.is_coach else "/train/pick-exercise"


def _is_from_elsewhere(request: web.Request) -> bool:
    """Return whether another site opened the page: it may have chosen a part of it, such as what is searched."""
    return request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")


def is_for_client(request: web.Request, user: Principal | None) -> bool:
    """Return whether a page is shown to a client; without a user the path decides."""
    return is_client_path(request.path) if user is None else not user.is_coach
