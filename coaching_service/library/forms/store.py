"""Forms in the database."""

from __future__ import annotations

from collections.abc import Callable

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.ids import ObjectId

forms = Documents[Document]("forms", (Index(("sortName", "_id")), Index(("_id",))), private=("companyId", "sortName"))


async def everything(ctx: Context) -> list[Document]:
    """The company's forms by name."""
    return await forms.find(ctx, {}, sort=("sortName", "_id"))


async def one(ctx: Context, form_id: ObjectId) -> Document | None:
    """The form, or None."""
    return await forms.find_one(ctx, {"_id": form_id})


async def add(ctx: Context, form: Document) -> Document:
    """Store a new form."""
    return await forms.insert(ctx, form)


async def rewrite(
    ctx: Context, form_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change a form by a function of what is stored; None when there is no such form."""
    return await forms.rewrite(ctx, {"_id": form_id}, mutate, version=version)


async def remove(ctx: Context, form_id: ObjectId) -> bool:
    """Remove a form; whether there was one."""
    return await forms.delete(ctx, {"_id": form_id}) is not None
