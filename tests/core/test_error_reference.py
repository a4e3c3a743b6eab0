"""docs/errors.md lists every error code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from coaching_service.core import errors
from scripts import event_reference, privacy_reference
from scripts.error_reference import _PACKAGE, _RESOURCES, _name, _sources, _text, describe_errors
from tests.support.client import UNKNOWN, CoachClient

REFERENCE = Path(__file__).parents[2] / "docs" / "errors.md"


def test_the_reference_is_up_to_date() -> None:
    """Renewed with `python -m scripts.error_reference > docs/errors.md`."""
    assert REFERENCE.read_text("utf-8") == describe_errors()
    assert "|  |" not in REFERENCE.read_text("utf-8"), "every code has a meaning"


@pytest.mark.parametrize(
    "code", ["VERSION_CONFLICT", "CUSTOMER_NOT_FOUND", "ROUTE_NOT_FOUND", "METRICS_SET_MISSING", "INVALID_DATE"]
)
def test_codes_of_every_origin_are_listed(code: str) -> None:
    """A code of a function, of a resource, of a class, of a permanent failure, and of a field."""
    assert f"| `{code}` |" in REFERENCE.read_text("utf-8")


def list_passed_on_codes() -> set[tuple[str, str]]:
    """Return the places whose code is not written there, so that the reference cannot list it: (path, expression)."""
    places = set()
    for path, nodes in _sources().items():
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            if (expression := _computed_code(call)) is not None and _text(expression) is None:
                places.add((path.relative_to(_PACKAGE).as_posix(), ast.unparse(expression)))
    return places


def _computed_code(call: ast.Call) -> ast.expr | None:
    """Return the expression of the code, or of the resource that it is made from, in a call that makes an error."""
    name = _name(call)
    if name in _RESOURCES and len(call.args) > _RESOURCES[name]:
        return call.args[_RESOURCES[name]]
    if name in ("Message", "invalid", "InvalidFile") and len(call.args) == 2:
        return call.args[1]
    values = (keyword.value for keyword in call.keywords if keyword.arg == "code")
    return next((value for value in values if not isinstance(value, ast.Constant)), None)


def test_codes_that_are_passed_on_are_listed_where_they_are_written() -> None:
    """Every other code is a literal, which the reference reads; CoachClient compares each response with the reference.

    Add a place here only if its code comes from an error, a message or a table with literal codes.
    """
    assert list_passed_on_codes() == {
        ("core/errors.py", "code"),  # the constructors
        ("core/errors.py", "resource"),  # of require_by_id
        ("core/http/request_parsing.py", "error.code"),  # of InvalidFile
        ("core/query.py", "validation.DEFAULT_CODE"),  # INVALID, in the reference by validation_messages
        ("core/validation.py", "code"),
        ("core/validation.py", "self.code"),
        ("integrations/commands.py", "error.code"),
        ("integrations/company_import/_archive_import.py", "code"),
        ("integrations/history_import/importing.py", "PermissionMissing.default_code"),
        ("integrations/history_import/importing.py", "error.code"),  # of ImportRefused
        ("integrations/history_import/measurement_import.py", "PermissionMissing.default_code"),
        ("integrations/proposals/service.py", "idempotency.IdempotencyKeyReused.default_code"),
        ("integrations/proposals/tool_calls.py", "error.code"),  # of Conflict
        ("mcp/server.py", "types.INVALID_PARAMS"),  # of JSON-RPC
        ("people/webhooks/service.py", "problem.code"),  # of OutboundClient, one of _URL_MESSAGES
        ("progress/metrics/service.py", "error.code"),  # of Conflict
        ("training/workouts/items/service.py", "error.details['resource']"),  # of NotFound
        ("training/workouts/items/descriptions.py", "first['code']"),  # of Message
        ("web/views/assistants.py", "first['code']"),  # of InvalidFields
        ("web/views/history.py", "error.code"),
        ("web/views/history.py", "gone.code"),  # of NotFound
        ("web/views/messages.py", "wrong.code"),  # of find_wrong_time
    }


@pytest.mark.parametrize("code", ["MALFORMED_HTTP", "STALE_FORM", "RATE_LIMIT_EXCEEDED"])
def test_codes_of_the_server_and_of_constructors_are_listed(code: str) -> None:
    assert f"| `{code}` |" in REFERENCE.read_text("utf-8")


def test_every_4xx_class_has_a_code() -> None:
    exceptions = {errors.Unauthorized, errors.InvalidApiKey, errors.InvalidQueryType}
    classes = [errors.ServiceError]
    while classes:
        error = classes.pop()
        classes += error.__subclasses__()
        assert error.default_code or error in exceptions or error.status >= 500, error


async def test_invalid_fields_are_listed_with_codes(coach: CoachClient) -> None:
    """Contract 3: 400s for fields `errors: [{field, code, message}]`, in a body, a path and a query."""
    error = (await coach.post("/coach/customers", {"name": " ", "email": 7, "groups": [None]})).refused(400)
    assert error["code"] == "INVALID_FIELDS"
    assert {(each["field"], each["code"]) for each in error["errors"]} == {
        ("name", "EMPTY"),
        ("email", "NOT_A_STRING"),
        ("groups.0", "NULL"),
    }
    assert error["message"] == [f"{each['field']} {each['message']}" for each in error["errors"]]
    error = (await coach.post("/coach/customers", {})).refused(400)
    assert error["errors"] == [{"field": "name", "code": "REQUIRED", "message": "is required"}]
    error = (await coach.get("/coach/customers/x")).refused(400)
    assert [(each["field"], each["code"]) for each in error["errors"]] == [("customerId", "INVALID_ID")]
    path = f"/coach/customers/{UNKNOWN}/wblock"
    error = (await coach.get(path, startDate="2026-03-02", endDate="2026-02-30")).refused(400)
    assert [(each["field"], each["code"]) for each in error["errors"]] == [("endDate", "INVALID_DATE")]


def test_the_record_of_processing_is_up_to_date_and_has_all_data_of_clients() -> None:
    """A new collection of clients needs its line in `privacy_reference`, which is renewed as its docstring says."""
    assert privacy_reference.list_undescribed() == []
    assert (REFERENCE.parent / "privacy.md").read_text("utf-8") == privacy_reference.describe_processing()


def test_the_catalogue_of_events_is_up_to_date() -> None:
    """Renewed with `python -m scripts.event_reference > docs/events.md`."""
    assert (REFERENCE.parent / "events.md").read_text("utf-8") == event_reference.describe_events()
