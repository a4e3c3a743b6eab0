"""Companies. A company's own document carries its identifier as `companyId` too, so it is found like all else."""

from __future__ import annotations

from coaching_service.kernel.auth.principal import Company
from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.documents import Document, Documents
from coaching_service.kernel.storage.mongo import Index

companies = Documents("companies", (Index(()),))


async def add(ctx: Context, company: Company) -> Document:
    """Store the principal's own, new company."""
    fields = {"companyName": company.name, "timezone": company.timezone, "loadUnit": company.load_unit}
    return await companies.insert(ctx, {"_id": company.id, **fields})
