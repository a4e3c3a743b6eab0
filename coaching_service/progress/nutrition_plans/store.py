"""Plan versions in the database, numbered from 1 for each client."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.database.portable import RECORDS, FileRule, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.media import IMAGE_TYPES, PDF
from coaching_service.core.validation import Text
from coaching_service.progress.nutrition_plans.models import LowCounter, PlanCounter, StoredPlan

ORDER = ("-number",)
_REASON = "the numbers of all companies are checked"


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData | None:
    data = {"planId": known["_id"], "number": known["number"]}
    return {"type": "plan.deleted", "data": data} if action == "deleted" else None


plans = Documents[StoredPlan](
    "planVersions",
    (Index(("customerId", "-number"), unique=True),),
    client_field="customerId",
    history=History("nutrition_plan", _event, ("number",), undo="never"),
    transfer=Portable(
        StoredPlan,
        RECORDS,
        checks={"fileName": Text(max_length=250, allow_blank=True)},
        references={"customerId": "customers"},
        files=FileRule((PDF, *IMAGE_TYPES), "plan"),
    ),
    cross_company_reason=_REASON,
)
counters = Documents[PlanCounter](
    "planCounters",
    (Index(("customerId",), unique=True),),
    client_field="customerId",
    no_history_reason="the last number of a plan, which is never given twice",
    transfer=Portable(PlanCounter, RECORDS, references={"customerId": "customers"}, keeps=("version",)),
    cross_company_reason=_REASON,
)


# --- checks ----------------------------------------------------------------------------------------------------------


async def find_low_counters(services: Services, session: Any = None) -> list[LowCounter]:
    """Return the clients whose next plan version would have a number that is used already."""
    counter = {
        "from": counters.name,
        "let": {"companyId": "$_id.companyId", "customerId": "$_id.customerId"},
        "pipeline": [
            {
                "$match": {
                    "$expr": {
                        "$and": [
                            {"$eq": ["$companyId", "$$companyId"]},
                            {"$eq": ["$customerId", "$$customerId"]},
                        ]
                    }
                }
            }
        ],
        "as": "counter",
    }
    group = {"_id": {"companyId": "$companyId", "customerId": "$customerId"}, "number": {"$max": "$number"}}
    # The first version has the number 1 and the version 0 of its counter.
    stages: list[Document] = [
        {"$group": group},
        {"$lookup": counter},
        {"$set": {"last": {"$add": [{"$ifNull": [{"$first": "$counter.version"}, -1]}, 1]}}},
        {"$match": {"$expr": {"$gt": ["$number", "$last"]}}},
        {"$sort": {"_id": 1}},  # so that every check names the same client as its example
        {"$project": {"number": 1}},
    ]
    cursor = plans.across_companies(services).aggregate(stages, session=session, allowDiskUse=True)
    low: list[Any] = await cursor.to_list(None)
    return low


async def raise_counter(services: Services, low: LowCounter) -> None:
    """Let the numbers of a client's next plan versions follow the highest one."""
    at = now()
    metadata = {"createdAt": at, "updatedAt": at}
    change = {"$max": {"version": low["number"] - 1}, "$setOnInsert": metadata}
    await counters.across_companies(services).update_one(dict(low["_id"]), change, upsert=True)
