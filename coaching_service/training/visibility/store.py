"""Hidden days in the database: one document for each client and hidden day."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.training.visibility.models import HiddenDay

hidden_days = Documents[HiddenDay](
    "hiddenDays",
    (Index(("customerId", "date"), unique=True),),
    client_field="customerId",
    history=History("hidden_day"),
    transfer=Portable(HiddenDay, RECORDS, references={"customerId": "customers"}),
)


async def find_hidden(ctx: Context, customer_id: ObjectId, first: str, last: str) -> set[str]:
    """Return the days from `first` to `last` that are hidden from a client whose access has been checked."""
    condition = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}
    return {day["date"] for day in await hidden_days.find(ctx, condition, fields=("date",))}
