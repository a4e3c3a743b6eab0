"""What a form shows when it is rejected: the submitted values, and messages in words for coaches or for clients."""

from __future__ import annotations

from collections.abc import Mapping

from marshmallow import ValidationError

from coaching_service.core.errors import (
    BadRequest,
    Conflict,
    LegacyFailure,
    NotFound,
    ServiceError,
    SignInRejected,
    TooManyRequests,
)
from coaching_service.web import uploads
from coaching_service.web.formatting import quantity
from coaching_service.web.forms import FormData, FormState, field_names, rejected_form
from coaching_service.web.pages import Page

# Errors shown in the form; all others have a page of their own. NotFound: a document chosen in the form was deleted.
FORM_ERRORS = (BadRequest, Conflict, LegacyFailure, NotFound, SignInRejected, TooManyRequests)
_MESSAGES_BY_CODE = {
    "PROPOSAL_CLOSED": "This was decided already, or has expired. Nothing was changed now.",
    "PROPOSAL_STALE": "The records have changed since. Ask your assistant to propose it again.",
    "ITEM_MOVED": "This item is no longer in the workout: it was moved or removed. Nothing was changed.",
    "ITEM_GONE": "Your coach has removed this from the workout, or moved it to another one, so nothing was saved.",
    "SWAPPED_SETS_LOGGED": "You have logged sets of the other exercise. Take them back, then change the exercise.",
}
_WORKOUT_CODES = frozenset({"WORKOUT_BLOCK_NOT_FOUND", "WORKOUT_ITEM_NOT_FOUND"})


def reject_form_of(page: Page, data: FormData, error: ValidationError | ServiceError) -> tuple[FormState, int]:
    """Return the state of the rejected form `page`, and the status of the response."""
    known_fields = field_names(page.schema) | (set(page.upload.file_fields) if page.upload else set())
    return reject(page.form_name, page.path, data, error, known_fields, uploads.file_messages(page.upload))


def reject(
    name: str,
    path: str,
    data: FormData,
    error: ValidationError | ServiceError,
    known_fields: set[str],
    field_messages: Mapping[str, str] | None = None,
) -> tuple[FormState, int]:
    """Return the state of a rejected form with this name that was sent to `path`, and the status of the response.

    `known_fields`: the names of its fields, without the names of rows. `field_messages`: messages by code that apply to
    this form only.
    """
    if isinstance(error, ValidationError):
        return rejected_form(name, data, error, known_fields, field_messages), BadRequest.status
    if message := _form_message(path, error):
        return FormState(name, data, form_errors=[message]), error.status
    return rejected_form(name, data, error, known_fields, field_messages), error.status


def _form_message(path: str, error: ServiceError) -> str | None:
    """Return the message of an error in a form; None if its own message serves."""
    if isinstance(error, NotFound):
        return describe_missing(path, error)
    if isinstance(error, TooManyRequests):
        minutes = -(-int(error.headers.get("Retry-After", 60)) // 60)
        return f"Too many attempts. Try again in {quantity(minutes, 'minute')}."
    return _MESSAGES_BY_CODE.get(error.code or "")


def describe_missing(path: str, error: NotFound) -> str:
    """Return the message about a missing document; one that a client cannot see may be on a day hidden by the coach."""
    if not path.startswith("/train/"):
        return f"{error.message}: it has been deleted. Nothing was changed, and your entries are still here."
    subject = "This workout" if error.code in _WORKOUT_CODES else "This"
    return f"{subject} is no longer available. Ask your coach."
