"""Metric sets in the database. Deleted ones remain for the history and the items that refer to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import LIBRARY, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.errors import invalid_field
from coaching_service.core.list_selection import UPDATED
from coaching_service.core.text import normalize
from coaching_service.core.validation import Text
from coaching_service.library.metric_sets.models import UNITS, StoredMetricSet


def _event(_: Action, known: Mapping[str, Any], paths: Collection[str]) -> EventData | None:
    if "deletedAt" not in paths or known["deletedAt"] is None:
        return None
    return {"type": "metrics_set.deleted", "data": {"metricsSetId": known["_id"]}}


def _complete_imported(metric_set: dict[str, Any]) -> dict[str, Any]:
    """Return an imported set with its private fields. Raises InvalidFields for unknown units."""
    if any(metric["metricUnitId"] not in UNITS for metric in metric_set["metrics"]):
        raise invalid_field("metrics.metricUnitId", "is not the identifier of a unit", code="NOT_FOUND")
    return {**metric_set, "sortName": normalize(metric_set["name"])}


metric_sets = Documents[StoredMetricSet](
    "metricSets",
    (
        Index(("deletedAt", "sortName", "_id")),
        Index(("deletedAt", "assignAutomatically")),
        Index(("_id",)),
        Index(("deletedAt", UPDATED)),
    ),
    private=("companyId", "sortName", "deletedAt"),
    history=History("metrics_set", _event, ("deletedAt",)),
    transfer=Portable(
        StoredMetricSet,
        LIBRARY,
        extra={"deletedAt": datetime | None},
        checks={"metrics.name": Text()},
        complete=_complete_imported,
    ),
)
_BY_UPDATE = metric_sets.index_name("deletedAt", UPDATED)


async def find_all(ctx: Context, *, updated_since: datetime | None = None) -> list[StoredMetricSet]:
    """Return the company's metric sets, or those changed at `updated_since` (UTC) or later, sorted by name."""
    where, hint = ({}, None) if updated_since is None else ({UPDATED: {"$gte": updated_since}}, _BY_UPDATE)
    return await metric_sets.find(ctx, {"deletedAt": None, **where}, sort=("sortName", "_id"), hint=hint)
