"""Database access for calendar links: at most one for each client."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.calendar_feed.models import StoredCalendarLink

_links = Documents[StoredCalendarLink](
    "calendarLinks",
    (Index(("customerId",), unique=True),),
    client_field="customerId",
    secret=True,
    cross_company_reason="a link is found before its company is known",
    placement=Unsharded("calendars ask for a link by its identifier, every hour"),
    transfer=NotExported("links of this company, which others have"),
)


async def find_or_create(ctx: Context, customer_id: ObjectId) -> StoredCalendarLink:
    """Return the link of a client, which is created if it is missing."""
    return await _links.upsert(ctx, {"customerId": customer_id}, {})


async def find(ctx: Context, customer_id: ObjectId) -> StoredCalendarLink | None:
    """Return the link of a client, or None."""
    return await _links.find_one(ctx, {"customerId": customer_id})


async def find_in_any_company(services: Services, link_id: ObjectId) -> StoredCalendarLink | None:
    """Return the company and the client of a link whose signature is valid, or None if it was revoked."""
    fields = {"companyId": 1, "customerId": 1}
    link: Any = await _links.across_companies(services).find_one({"_id": link_id}, fields)
    return link  # type: ignore[no-any-return]  # the driver's documents are untyped


async def delete(ctx: Context, customer_id: ObjectId) -> bool:
    """Delete the link of a client; returns whether there was one."""
    return await _links.delete_many(ctx, {"customerId": customer_id}) > 0
