"""A client's personal records."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.web.pages import Pages
from coaching_service.web.views.activity_descriptions import RECORD_TYPES
from coaching_service.web.views.customer_layout import load_header

pages = Pages("/app/customers/{customerId}")


@pages.get("/records", access=coach(CUSTOMERS.VIEW), template="customer/records.html")
async def records_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """A client's personal records."""
    customer, records = await gather_reads(
        ctx, load_header(ctx, customer_id), personal_records.list_records(ctx, customer_id)
    )
    return {"customer": customer, "records": records, "record_types": RECORD_TYPES}
