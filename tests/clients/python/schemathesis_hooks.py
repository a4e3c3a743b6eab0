"""Hooks for schemathesis: identifiers of stored documents in the requests, and checks of the responses.

COACHING_IDENTIFIERS is a JSON object with the identifiers for the requests of the coach and of the client, each by path
parameter, or by `programId/` and that one. COACHING_SESSIONS has the access tokens of the requests, separated by spaces.
"""

import json
import os
import re
import zlib
from typing import Any

import schemathesis

CODES = {
    "METRICS_SET_MISSING",
    "NUTRITION_PLAN_FILE_MISSING",
    "PERSONAL_RECORD_ID_INVALID",
    "WITEM_MOVE_INCOMPLETE",
}
IDENTIFIERS: dict[str, dict[str, str]] = json.loads(os.environ["COACHING_IDENTIFIERS"])
SESSIONS = {f"Bearer {token}" for token in os.environ["COACHING_SESSIONS"].split()}
_IDENTIFIER = re.compile("[0-9a-f]{24}")


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    """Replace generated identifiers by those of stored documents in two of three requests, unless it deletes them.

    Without `fields`, which leaves out fields that are required otherwise: the document says so in words only.
    """
    if case.query:
        case.query.pop("fields", None)
    is_stateful = case.meta is not None and case.meta.phase.name == "stateful"
    if is_stateful or case.method == "DELETE":
        return
    if zlib.crc32(repr((case.path_parameters, case.query)).encode()) % 3 == 0:
        return
    path = case.operation.path
    identifiers = IDENTIFIERS["customer" if path.startswith("/customer/") else "coach"]
    if "{programId}" in path:
        of_programs = {name: each for name, each in identifiers.items() if name.startswith("programId/")}
        identifiers = identifiers | {name.removeprefix("programId/"): each for name, each in of_programs.items()}
    case.path_parameters = _with_stored(case.path_parameters, identifiers)
    case.body = _with_stored(case.body, identifiers)


def _with_stored(value: Any, identifiers: dict[str, str], name: str = "") -> Any:
    """Return `value` with the identifiers of stored documents in place of the valid identifiers in it."""
    if isinstance(value, dict):
        return {key: _with_stored(each, identifiers, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_stored(each, identifiers, name) for each in value]
    if isinstance(value, str) and _IDENTIFIER.fullmatch(value):
        return identifiers.get(name, value)
    return value


@schemathesis.hook
def after_call(context: schemathesis.HookContext, case: schemathesis.Case, response: schemathesis.Response) -> None:
    """Set the identifiers that are null in a dry run, which the document says in words only (docs/decisions/previews.md)."""
    if response.status_code == 200 and isinstance(case.body, dict) and case.body.get("dryRun") is True:
        response.content = response.content.replace(b'"_id":null', b'"_id":"%s"' % (b"0" * 24))


@schemathesis.check
def only_documented_server_errors(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """Fail for a 5xx response without one of the codes."""
    if response.status_code >= 500:
        assert response.status_code == 500
        assert response.json().get("code") in CODES


@schemathesis.check
def credentials_stay_valid(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """Fail for a 401 response to a request with the session: the requests after it would test nothing."""
    has_session = response.request.headers.get("Authorization") in SESSIONS
    assert response.status_code != 401 or not has_session or not case.operation.definition.raw.get("security")
