"""Database access for calendar links: at most one for each client."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.collections import Unsharded
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.calendar_feed.models import StoredCalendarLink

links = Documents[StoredCalendarLink](
    "calendarLinks",
    (Index(("customerId",), unique=True),),
    client_field="customerId",
    secret=True,
    cross_company_reason="a link is found before its company is known",
    placement=Unsharded("calendars ask for a link by its identifier, every hour"),
    transfer=NotExported("links of this company, which others have"),
)


async def find_in_any_company(services: Services, link_id: ObjectId) -> StoredCalendarLink | None:
    """Return the company and the client of a link whose signature is valid, or None if it was revoked."""
    fields = {"companyId": 1, "customerId": 1}
    link: Any = await links.across_companies(services).find_one({"_id": link_id}, fields)
    return link  # type: ignore[no-any-return]  # the driver's documents are untyped
