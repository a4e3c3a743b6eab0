"""A check for schemathesis: a server error is one of the documented failures, which have a permanent code."""

import schemathesis

CODES = {
    "METRICS_SET_MISSING",
    "NUTRITION_PLAN_FILE_MISSING",
    "PERSONAL_RECORD_ID_INVALID",
    "WITEM_MOVE_INCOMPLETE",
}


@schemathesis.check
def only_documented_server_errors(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """Fail for a 5xx response without one of the codes."""
    if response.status_code >= 500:
        assert response.status_code == 500
        assert response.json().get("code") in CODES
