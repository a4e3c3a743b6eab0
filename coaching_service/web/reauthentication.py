"""Signing in again when a session has ended while a form was being filled in.

The response to such a form is a sign-in page that carries the submitted values in hidden fields. It is sent to the same
URL and answered with the original form, filled in: nothing is changed until the form itself is submitted again. Only
forms from pages of this application are treated in this way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from multidict import MultiDict

from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.people.sessions import web_sessions
from coaching_service.people.sessions.models import Credentials
from coaching_service.people.sessions.web_sessions import StartedSession
from coaching_service.web.form_idempotency import SUBMISSION_FIELD
from coaching_service.web.forms import FormData, load_form

FORM_NAME, TEMPLATE = "reauthentication", "sign_in/session_expired.html"
SIGNED_IN_AGAIN = "You are signed in again. Nothing has been changed yet: check your entries and submit the form."
STALE_FORM = "This page was out of date, so nothing was changed. Check your entries and submit the form again."
_PREFIX = f"{FORM_NAME}."
_NOT_CARRIED_OVER = ("password", "currentPassword", SUBMISSION_FIELD)


class _Reauthentication(TypedDict):
    reauthentication: Credentials


SCHEMA = input_of(_Reauthentication)()


def original_values(data: FormData) -> FormData:
    """Return the values of the original form, without passwords."""
    values = [
        (name, value) for name, value in data.items() if name not in _NOT_CARRIED_OVER and not name.startswith(_PREFIX)
    ]
    return MultiDict(values)


def credential_values(data: FormData) -> FormData:
    """Return the values of the sign-in fields; empty when they have not been shown yet."""
    return MultiDict([(name, value) for name, value in data.items() if name.startswith(_PREFIX)])


async def sign_in(ctx: Context, data: FormData, device: str, device_tokens: Iterable[str]) -> StartedSession:
    """Start a session as web_sessions.sign_in does. Raises ValidationError, and what web_sessions.sign_in raises."""
    credentials = load_form(SCHEMA, data)[FORM_NAME]
    return await web_sessions.sign_in(ctx, credentials["email"], credentials["password"], device, device_tokens)
