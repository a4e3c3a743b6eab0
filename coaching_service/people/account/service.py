"""What an owner does with the company."""

from __future__ import annotations

from coaching_service.core.auth.principal import Company
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, version_conflict
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Conflict, Forbidden, NotFound
from coaching_service.core.jobs import queue
from coaching_service.people.account import store
from coaching_service.people.identities import service as identities

ERASE = "erase_company"


async def create(ctx: Context) -> None:
    """Store the company of the principal, who is its first owner."""
    await store.add(ctx, ctx.caller.company)


def to_company(document: Document) -> Company:
    """A stored company as principals carry it."""
    return Company(
        document["_id"],
        document["companyName"],
        document["timezone"],
        document["loadUnit"],
        document["keepsLoads"],
    )


async def read(ctx: Context) -> Document:
    """The company of the one asking. Raises NotFound when it is being erased."""
    if (company := await store.own(ctx)) is None:
        raise NotFound("company")
    return company


async def update(ctx: Context, details: Document) -> Document:
    """Change what is sent of the company: companyName, timezone, loadUnit.

    Raises Conflict when it has been changed since `version`, or for another `loadUnit` once any load is stored.
    """
    fields = dict(details)
    version = fields.pop("version", None)
    before = await read(ctx)
    if not fields:
        if version not in (None, before["version"]):
            raise version_conflict()
        return before
    other_unit = fields.get("loadUnit", before["loadUnit"]) != before["loadUnit"]
    changed = await store.change(ctx, fields, version, only_without_loads=other_unit)
    if changed is None:
        await read(ctx)
        raise Conflict("loadUnit can no longer change: loads are stored in it")
    return changed


async def lock_load_unit(ctx: Context) -> None:
    """Called before loads are stored: from now on the company's unit of load stays.

    Raises Conflict when the unit has just been changed under the request.
    """
    company = ctx.caller.company
    if not company.has_stored_loads and not await store.keep_unit(ctx, company.load_unit):
        raise Conflict("The company's unit of load has just been changed; try again")


async def erase(ctx: Context, password: str) -> None:
    """Erase the company: locked at once for everybody, removed in the background.

    Raises Forbidden when `password` is not the asking owner's.
    """
    if not await identities.check_password(ctx, ctx.caller.id, password):
        raise Forbidden("The password is wrong")

    async def removed(tx: Context) -> None:
        if not await store.remove(tx):
            raise NotFound("company")
        await queue.enqueue(tx, ERASE, {"companyId": ctx.company_id})

    await in_transaction(ctx, removed)
