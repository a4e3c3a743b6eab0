"""Rendering of pages and of errors: a template in the layout, with the headers of every page, and JSON for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

import aiohttp_jinja2
import jinja2
import structlog
from aiohttp import web
from marshmallow import ValidationError

from coaching_service.core import errors as core_errors
from coaching_service.core.auth import EXERCISES, Principal, new_token
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.dates import TIMEZONES
from coaching_service.core.fields import Description, Label, declarations_of
from coaching_service.core.http.handlers import REQUEST_ID, reported
from coaching_service.core.http.responses import COMPRESSIBLE, to_json
from coaching_service.core.media import IMAGE_TYPES, MEDIA_TYPES, PDF, UploadLimits
from coaching_service.core.rate_limits import RateLimitExceeded
from coaching_service.people.notifications import COMPANY
from coaching_service.progress.conversation import service as conversation
from coaching_service.training.workouts.blocks.models import WorkoutSettings
from coaching_service.web import browser_sessions, charts, forms, static_files
from coaching_service.web.formatting import EMBEDDED_SITES, FILTERS, label_day, permission_label, quantity
from coaching_service.web.pages import Redirect

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
    # The name, label, type and hint of the control of each field, for `settings_fields`.
    workout_settings = []
    for each in declarations_of(WorkoutSettings).values():
        label, description = each.find(Label) or Label(each.name), each.find(Description) or Description()
        types = [name for kind, name in ((int, "whole"), (float, "decimal")) if kind in get_args(each.hint)]
        workout_settings.append((each.name, label.text, (types or ["text"])[0], description.text or ""))
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
        draw=charts,
        timezones=_TIMEZONES,
        workout_settings=workout_settings,
        limits=limits,
        accepted={
            "photo": forms.accepted_files(IMAGE_TYPES),
            "plan": forms.accepted_files((PDF, *IMAGE_TYPES)),
            "media": forms.accepted_files(MEDIA_TYPES),
            "attachment": forms.accepted_files(conversation.ATTACHMENT_TYPES),
        },
    )


def render_page(
    request: web.Request,
    browser_session: browser_sessions.BrowserSession,
    template: str,
    variables: Mapping[str, Any],
    *,
    form_state: forms.FormState | None = None,
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
    rejected, else an empty state, `label_day(date)`, and `seal_company(name)` for the address of the manifest.
    Pages also have `unit` (of loads) and `today` (both of the user), `query`, and `preview` (None).
    `external_redirect`: its forms may redirect to another site, or to an application on the user's device by http.
    """
    is_saved_only = browser_sessions.SAVES_PAGE in request.headers
    notice = "" if is_saved_only else browser_session.read_notice(request).text
    user, picker_path = browser_session.principal, ""
    if user is not None and (not user.is_coach or EXERCISES.VIEW in user.permissions):
        picker_path = "/app/pick-exercise" if user.is_coach else "/train/pick-exercise"
    context = {
        "current_user": user,
        "home": browser_sessions.home_of(user),
        "csrf_token": browser_session.csrf_token,
        "path": request.path,
        "notice": notice,
        "can": lambda permission: user is not None and permission in user.permissions,
        "form": lambda name: (
            form_state if form_state is not None and form_state.name == name else forms.FormState(name)
        ),
        "submitted_form": form_state,
        "seal_company": partial(browser_session.services.vault.seal_value, COMPANY),
    }
    replaceable = {
        "path_with_query": request.path_qs,
        "picker_path": picker_path,
        "layout": CLIENT_LAYOUT if is_for_client(request, user) else "layout.html",
        "undoable_change": None,
        "unread_messages": 0,
        "waiting_proposals": 0,
        "label_day": partial(label_day, today=user.today()) if user else None,
        "company_name": user.company.name if user else browser_session.known_company,
    }
    # `dict` refuses variables of a page that have the name of something else.
    response = aiohttp_jinja2.render_template(
        template, request, replaceable | dict(**context, **variables), status=status
    )
    response.headers.update(_HEADERS)
    policy = _CONTENT_SECURITY_POLICY + ("" if external_redirect else "; form-action 'self'")
    is_upgraded = browser_sessions.is_secure(browser_session.services) and not external_redirect
    response.headers["Content-Security-Policy"] = f"{policy}; upgrade-insecure-requests" if is_upgraded else policy
    if status < 500:  # otherwise the session may be unknown
        is_client = user is not None and not user.is_coach
        response.headers["Offline-Session"] = str(user.credential_id) if user is not None and is_client else "none"
    browser_session.set_cookies(response)
    # Another site that opened the page may have chosen a part of it, such as what is searched.
    is_from_elsewhere = request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
    response[COMPRESSIBLE] = browser_sessions.is_client_path(request.path) or not is_from_elsewhere
    if notice:
        browser_session.clear_notice(response)
    return response


def is_for_client(request: web.Request, user: Principal | None) -> bool:
    """Return whether a page is shown to a client; without a user the path decides."""
    return browser_sessions.is_client_path(request.path) if user is None else not user.is_coach


# --- What users read about errors: error pages, rejected forms with what was submitted, and both as JSON --------------


log = structlog.get_logger("coaching_service.web")

_BY_TYPE: dict[type[core_errors.ServiceError], tuple[str, str]] = {
    browser_sessions.StaleForm: (
        "Please try again",
        "Open the page again and submit the form from there. Cookies must be enabled.",
    ),
    browser_sessions.CrossSiteForm: (
        "Request blocked",
        "The form was sent from another site. If it was you, open the page here and submit the form from there.",
    ),
    core_errors.CompanySuspended: (
        "Suspended",
        "Nobody of your company can use the service for now. All data is still there.",
    ),
    core_errors.LoadsConverting: (
        "Loads are being converted",
        "Your company changes the unit of its loads. Usually this takes less than a minute; then reload the page.",
    ),
    core_errors.OutcomeUnknown: (
        "It may have been saved",
        "The connection to the database was lost meanwhile. Look before you try again: go back and reload the page.",
    ),
    RateLimitExceeded: ("Too many requests", "Wait a moment, then reload the page. Nothing was changed."),
}
_BY_STATUS = {
    400: ("Invalid request", "Go back and try again."),
    401: ("Sign in", "Your session has ended."),
    403: ("Access denied", "Ask the owner of your company for the permission."),
    404: ("Page not found", "It may have been deleted, or the address is wrong."),
    405: ("Action not available", "Go back and use the buttons on the page."),
    408: ("Request timed out", "Check your connection and try again."),
    409: ("Changed by another user", "Go back, reload the page and repeat your change."),
    413: ("Too much data", "Send less at a time."),
    429: ("Too many attempts", "Wait a moment before you try again."),
    503: ("Temporarily unavailable", "Try again shortly."),
    507: ("No space left", "Nothing was changed. Pages can still be read."),
}
# What clients read instead: they have no permissions, and their support is the coach.
_FOR_CLIENTS = {
    403: ("Access denied", "Go back. If you need this, ask your coach."),
    404: ("Page not found", "Your coach may have moved or removed it, or the address is wrong."),
    409: ("Changed meanwhile", "Go back, reload the page and repeat your change."),
    500: ("Something went wrong", "This is our fault. Try again; if it happens again, tell your coach."),
}
_DEFAULT = ("Something went wrong", "This is our fault. Try again; if the problem persists, contact support.")
_WITHOUT_MESSAGE = (404, 405, 500)


def to_service_error(request: web.Request, error: Exception) -> core_errors.ServiceError:
    """Return the error to show for an exception; an unexpected one is logged and shown as InternalError.

    A documented 500 of REST is a bad request in the web application.
    """
    if isinstance(error, core_errors.LegacyFailure):
        return core_errors.BadRequest(error.message)
    service_error = error if isinstance(error, core_errors.ServiceError) else as_service_error(error)
    if service_error is None:
        log.error("unexpected_error", request_id=request[REQUEST_ID], route=request.path, exc_info=error)
        return core_errors.InternalError()
    service_error = reported(request, service_error)
    return (
        core_errors.OutcomeUnknown() if isinstance(service_error, core_errors.OutcomeUnknown) else service_error
    )  # users see no keys


def render_error(
    request: web.Request, browser_session: browser_sessions.BrowserSession, error: core_errors.ServiceError
) -> web.Response:
    """Render the page of an error."""
    title, advice = _BY_STATUS.get(error.status, _DEFAULT)
    if type(error) in _BY_TYPE:
        title, advice = _BY_TYPE[type(error)]
    elif is_for_client(request, browser_session.principal):
        title, advice = _FOR_CLIENTS.get(error.status, (title, advice))
    messages = [error.message] if isinstance(error.message, str) else error.message
    if permission := error.details.get("permission"):
        messages = [f"The permission “{permission_label(permission)}” is missing"]
    if error.status in _WITHOUT_MESSAGE or isinstance(error, core_errors.OutcomeUnknown):
        messages = []
    variables = {"title": title, "advice": advice, "messages": messages, "status": error.status}
    response = render_page(request, browser_session, "error.html", variables, status=error.status)
    response.headers.update(error.headers)
    return response


# Errors shown in the form; all others have a page of their own. NotFound: a document chosen in the form was deleted.
FORM_ERRORS = (
    core_errors.BadRequest,
    core_errors.Conflict,
    core_errors.LegacyFailure,
    core_errors.NotFound,
    core_errors.SignInRejected,
    core_errors.TooManyRequests,
)
_MESSAGES_BY_CODE = {
    "CHALLENGE_REJECTED": "That took too long. Sign in again.",
    "SECOND_FACTOR_REJECTED": "The code is wrong, or has been used. Wait for the next one.",
    "PASSKEY_REJECTED": "This passkey is not known here. It may have been removed.",
    "PASSKEYS_UNAVAILABLE": "Passkeys cannot be used at this address.",
    "TOO_MANY_PASSKEYS": "You have 20 passkeys. Remove one first.",
    "PASSKEY_EXISTS": "This passkey was added already.",
    "SECOND_FACTOR_NOT_BEGUN": "There is nothing to confirm. To get new recovery codes, set it up again.",
    "SECOND_FACTOR_MISSING": "Set up two-step sign-in for yourself first, under Security. Nothing was changed.",
    "PROPOSAL_CLOSED": "This was decided already, or has expired. Nothing was changed now.",
    "PROPOSAL_STALE": "The records have changed since. Ask your assistant to propose it again.",
    "ITEM_MOVED": "This item is no longer in the workout: it was moved or removed. Nothing was changed.",
    "ITEM_GONE": "Your coach has removed this from the workout, or moved it to another one, so nothing was saved.",
    "SWAPPED_SETS_LOGGED": "You have logged sets of the other exercise. Take them back, then change the exercise.",
}
_WORKOUT_CODES = frozenset({"WORKOUT_BLOCK_NOT_FOUND", "WORKOUT_ITEM_NOT_FOUND"})


def reject(
    name: str,
    path: str,
    data: forms.FormData,
    error: ValidationError | core_errors.ServiceError,
    known_fields: set[str],
    field_messages: Mapping[str, str] | None = None,
) -> tuple[forms.FormState, int]:
    """Return the state of a rejected form with this name that was sent to `path`, and the status of the response.

    `known_fields`: the names of its fields, without the names of rows. `field_messages`: messages by code that apply to
    this form only.
    """
    if isinstance(error, ValidationError):
        return forms.rejected_form(name, data, error, known_fields, field_messages), core_errors.BadRequest.status
    message = _MESSAGES_BY_CODE.get(error.code or "")
    if isinstance(error, core_errors.NotFound):
        message = describe_missing(path, error)
    elif isinstance(error, core_errors.TooManyRequests):
        minutes = -(-int(error.headers.get("Retry-After", 60)) // 60)
        message = f"Too many attempts. Try again in {quantity(minutes, 'minute')}."
    if message:
        return forms.FormState(name, data, form_errors=[message]), error.status
    return forms.rejected_form(name, data, error, known_fields, field_messages), error.status


def describe_missing(path: str, error: core_errors.NotFound) -> str:
    """Return the message about a missing document; one that a client cannot see may be on a day hidden by the coach."""
    if not path.startswith("/train/"):
        return f"{error.message}: it has been deleted. Nothing was changed, and your entries are still here."
    subject = "This workout" if error.code in _WORKOUT_CODES else "This"
    return f"{subject} is no longer available. Ask your coach."


# --- Forms sent by a script of a page, with `Accept: application/json`: the same forms with the outcome as JSON -------
# A form that succeeded answers `{location, notice, data}`; any other `{code, message, errors}` with the status of the
# error, where `errors` has the message of each invalid field. A stale form of the same site also answers `csrf` and
# `user`, the present form token and the identifier of the present user, so that the script can send the form again.


_JSON_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def is_scripted(request: web.Request) -> bool:
    """Return whether a script sent the form and expects JSON."""
    return request.method == "POST" and request.headers.get("Accept") == "application/json"


def success_response(browser_session: browser_sessions.BrowserSession, redirect: Redirect) -> web.Response:
    """Return the outcome of a form that would redirect."""
    body = {"location": redirect.location, "notice": redirect.notice, "data": redirect.data}
    response = _respond(browser_session, 200, body, redirect=redirect)
    if redirect.ends_session:
        browser_session.set_notice(response, redirect.notice)  # the script leaves, and cannot store it
    return response


def rejection_response(
    browser_session: browser_sessions.BrowserSession,
    error: core_errors.ServiceError | ValidationError,
    form_state: forms.FormState,
    status: int,
) -> web.Response:
    """Return the messages of a form that was rejected, with the `status` of its page."""
    code = error.code if isinstance(error, core_errors.ServiceError) else "INVALID_FIELDS"
    message = " ".join([*form_state.form_errors, *form_state.errors.values()])
    return _respond(browser_session, status, {"code": code, "message": message, "errors": form_state.errors}, error)


def error_response(
    request: web.Request, browser_session: browser_sessions.BrowserSession, error: core_errors.ServiceError
) -> web.Response:
    """Return an error that concerns the whole request."""
    messages = [error.message] if isinstance(error.message, str) else error.message
    if isinstance(error, core_errors.NotFound) and request.path.startswith("/train/"):
        messages = [describe_missing(request.path, error)]
    body: dict[str, Any] = {"code": error.code, "message": " ".join(messages), "errors": {}}
    if isinstance(error, browser_sessions.StaleForm) and browser_session.is_same_site(request) is True:
        user = browser_session.principal
        body |= {"csrf": browser_session.csrf_token, "user": user.id if user is not None else None}
    return _respond(browser_session, error.status, body, error)


def _respond(
    browser_session: browser_sessions.BrowserSession,
    status: int,
    body: Mapping[str, Any],
    error: core_errors.ServiceError | ValidationError | None = None,
    redirect: Redirect = browser_sessions.NO_REDIRECT,
) -> web.Response:
    headers = _JSON_HEADERS | (error.headers if isinstance(error, core_errors.ServiceError) else {})
    response = web.Response(status=status, body=to_json(body), content_type="application/json", headers=headers)
    browser_session.set_cookies(response, redirect)
    return response
