"""Which clients and companies are being erased: until that is complete, some of their documents are gone."""

from __future__ import annotations

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import inspection
from coaching_service.lifecycle.erasure.service import ERASE_CUSTOMER
from coaching_service.people.account.service import ERASE


async def find_erasing(services: Services) -> set[ObjectId]:
    """Return the identifiers of the clients and companies whose erasure is queued."""
    erasing = set()
    async for arguments in inspection.iterate_arguments(services, (ERASE_CUSTOMER, ERASE)):
        erasing.add(arguments.get("customerId") or arguments["companyId"])
    return erasing
