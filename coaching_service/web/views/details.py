"""Who a client is: what is noted of them, inviting, archiving, deleting."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import BadRequest, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.people.customer_access import service as customer_access
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.schemas import CustomerDetails
from coaching_service.people.team import service as team
from coaching_service.progress.customer_profile import service as customer_profile
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer import head

pages = Pages("/app/customers/{customerId}")
_CHANGE = patch_of(CustomerDetails, name="CustomerForm")


@pages.get("/details", access=coach(CUSTOMERS.VIEW), template="customer/details.html")
async def details_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """What is noted of a client."""
    top, customer, groups, coaches = await gather_reads(
        ctx,
        head(ctx, customer_id),
        customer_profile.read(ctx, customer_id),
        customers.list_groups(ctx),
        team.list_coaches(ctx),
    )
    return {"customer": top | customer, "version": customer["version"], "groups": groups, "coaches": coaches}


@pages.post("/details", access=coach(CUSTOMERS.EDIT), form=_CHANGE, on=details_page)
async def change_details(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Change what is noted of a client."""
    await customers.get_visible(ctx, customer_id)
    try:
        customer = await customers.update(ctx, customer_id, form)
    except NotFound:
        raise BadRequest(["assignedTo must be a coach of your team: this one has left it"]) from None
    trainer = customer["customerRoleData"]["assignedTo"]
    if ctx.caller.customers_scope == "assigned" and trainer != ctx.caller.id:
        return Redirect("/app/customers", f"The changes are kept. {customer['name']} is not assigned to you any more.")
    return Redirect(f"/app/customers/{customer_id}/details", "The changes are kept.")


@pages.post("/invite", access=coach(CUSTOMERS.EDIT), on=details_page)
async def invite(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Send the client a mail by which they choose a password."""
    await customer_access.invite(ctx, customer_id)
    return Redirect(f"/app/customers/{customer_id}/details", "The invitation is on its way.")


@pages.post("/archive", access=coach(CUSTOMERS.EDIT), on=details_page, idempotent=True)
async def archive(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Archive the client; repeating is harmless."""
    customer = await customers.set_archived(ctx, customer_id, archived=True)
    return Redirect(f"/app/customers/{customer_id}/details", f"{customer['name']} is archived and cannot sign in.")


@pages.post("/restore", access=coach(CUSTOMERS.EDIT), on=details_page, idempotent=True)
async def restore(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Bring the client back; repeating is harmless."""
    customer = await customers.set_archived(ctx, customer_id, archived=False)
    return Redirect(f"/app/customers/{customer_id}/details", f"{customer['name']} is active again.")


@pages.get("/delete", access=coach(CUSTOMERS.DELETE), template="customer/delete.html")
async def delete_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """What is lost with a client."""
    return {"customer": await head(ctx, customer_id)}


@pages.post("/delete", access=coach(CUSTOMERS.DELETE), on=delete_page, deletes_customer=True)
async def delete(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Erase a client and all that is theirs."""
    customer = await customers.read(ctx, customer_id)
    await customers.erase(ctx, customer_id)
    return Redirect("/app/customers", f"{customer['name']} is deleted.")
