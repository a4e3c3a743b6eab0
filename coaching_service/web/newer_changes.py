"""Who changed a document that a form was opened for, and what: shown when the form is based on an older version."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from zoneinfo import ZoneInfo

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.changes import service as changes
from coaching_service.people.changes.models import ChangeSummary
from coaching_service.web.formatting import format_date
from coaching_service.web.views.operation_names import describe_operation

_MOST = 3
_USES = {"apiKey": " (API key)", "assistant": " (assistant)"}
_UNKNOWN = "by another user or in another window"


async def describe_newer_changes(
    ctx: Context, customer_id: ObjectId | None, document_ids: Sequence[ObjectId], version: int
) -> str:
    """Describe the changes after `version`: `by Kim Coach on Mon 2 Mar 2026 at 09:30 (workout changed)`.

    The document is the last of `document_ids` that was changed. For clients it does not name anyone of the company.
    """
    if not ctx.caller.is_coach:
        return _UNKNOWN
    for document_id in reversed(document_ids):
        if newer := await changes.list_newer(ctx, customer_id, document_id, version, _MOST):
            return ", and ".join(_describe(ctx, change) for change in reversed(newer))
    return _UNKNOWN


def _describe(ctx: Context, change: ChangeSummary) -> str:
    caller = ctx.caller
    actor = change["actor"]
    is_own = actor is not None and actor["_id"] == caller.id and change["via"] == "session"
    name = actor["name"] if actor else "another user"
    author = "in another tab of yours" if is_own else f"by {name}{_USES.get(change['via'], '')}"
    at = change["at"].replace(tzinfo=UTC).astimezone(ZoneInfo(caller.timezone or caller.company.timezone))
    what = describe_operation(change["operation"])
    return f"{author} on {format_date(at.date())} at {at:%H:%M} ({what[:1].lower()}{what[1:]})"
