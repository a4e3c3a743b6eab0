"""Form responses in the database: at most one for a workout item."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, PipelineStage
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import DatedCount
from coaching_service.progress.form_responses.models import StoredResponse

INBOX_ORDER = ("-date", "-_id")

responses = Documents[StoredResponse](
    "formResponses",
    (
        Index(("customerId", "-date", "-_id")),
        Index(("customerId", "witemId"), unique=True),
        Index((*INBOX_ORDER, "customerId")),
        Index((*INBOX_ORDER, "customerId", "formId"), partial_filter=(("reviewedAt", {"$eq": None}),)),
        Index(("formId", *INBOX_ORDER)),
        Index(("customerId", "updatedAt"), partial_filter=(("reviewedAt", {"$eq": None}),)),
    ),
    client_field="customerId",
    history=History("form_response"),
    transfer=Portable(
        StoredResponse,
        RECORDS,
        references={"customerId": "customers"},
        keeps=("updatedAt",),  # when it was answered
    ),
)
_NOT_REVIEWED = responses.index_name("customerId", "updatedAt")


async def count_not_reviewed(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[DatedCount]:
    """Return how many responses no coach has reviewed, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "reviewedAt": None}
    group = {"_id": "$customerId", "count": {"$sum": 1}, "newest": {"$max": "$updatedAt"}}
    return await responses.aggregate(ctx, where, {"$group": group}, hint=_NOT_REVIEWED)


async def find_newest_unreviewed(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[StoredResponse]:
    """Return the newest response that no coach has reviewed, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "reviewedAt": None}
    order: PipelineStage = {"$sort": {"customerId": 1, "updatedAt": 1}}
    group: PipelineStage = {"$group": {"_id": "$customerId", "newest": {"$last": "$$ROOT"}}}
    newest: PipelineStage = {"$replaceRoot": {"newRoot": "$newest"}}
    return await responses.aggregate(ctx, where, order, group, newest, hint=_NOT_REVIEWED)
