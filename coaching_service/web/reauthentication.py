"""A session that ends while somebody types: they sign in on the spot, and find the form as they left it.

The answer to such a form is a page that asks for the password and carries what was typed. It comes back to the same
address, and is answered with the form, filled: nothing is done before its own button is pressed once more. Only a form
from a page of ours is kept so.
"""

from __future__ import annotations

from marshmallow import fields
from multidict import MultiDict

from coaching_service.core.database.context import Context
from coaching_service.core.validation import Input
from coaching_service.people.sessions import web_sessions
from coaching_service.people.sessions.schemas import Credentials
from coaching_service.web.form_idempotency import SUBMISSION_FIELD
from coaching_service.web.forms import FormData, load

FORM, TEMPLATE = "ended", "sign_in/session_expired.html"
BACK = "You are signed in again. Nothing was changed yet: look at what you typed, and send it."
STALE = "This page was out of date, so nothing was changed. Look at what you typed, and send it once more."
_PREFIX = f"{FORM}."
_NEVER_KEPT = ("password", "currentPassword", SUBMISSION_FIELD)


class _Entry(Input):
    ended = fields.Nested(Credentials, required=True)


ENTRY = _Entry()


def typed_of(sent: FormData) -> FormData:
    """What was typed into the form itself, passwords left out."""
    kept = [(n, value) for n, value in sent.items() if n not in _NEVER_KEPT and not n.startswith(_PREFIX)]
    return MultiDict(kept)


def entry_of(sent: FormData) -> FormData:
    """What was typed to sign in again; empty when nobody was asked yet."""
    return MultiDict([(name, value) for name, value in sent.items() if name.startswith(_PREFIX)])


async def sign_in(ctx: Context, entry: FormData) -> str:
    """The token of a new session. Raises ValidationError, and what browser.sign_in does."""
    credentials = load(ENTRY, entry)["ended"]
    return await web_sessions.sign_in(ctx, credentials["email"], credentials["password"])
