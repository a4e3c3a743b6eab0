"""Who a client is: what is noted of them, inviting, archiving, deleting."""

from __future__ import annotations

from typing import Any

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import CUSTOMERS
from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.validation import Text, patch_of
from coaching_service.people.customer_access import service as customer_access
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.schemas import CustomerDetails
from coaching_service.people.team import service as team
from coaching_service.web.pages import Go, Pages
from coaching_service.web.views.customers import words

pages = Pages("/app/customers/{customerId}")


class _Details(CustomerDetails):
    groupNames = Text(blank=True, allow_none=True)


_CHANGE = patch_of(_Details, name="CustomerForm")


@pages.get("/details", access=coach(CUSTOMERS.VIEW), template="customer/details.html")
async def details_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """What is noted of a client."""
    customer, groups, coaches = await together(
        ctx, customers.read_with_figures(ctx, customer_id), customers.groups(ctx), team.everybody(ctx)
    )
    return {"customer": customer, "groups": groups, "coaches": coaches}


@pages.post("/details", access=coach(CUSTOMERS.EDIT), form=_CHANGE, on=details_page)
async def change_details(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Go:
    """Change what is noted of a client."""
    form["groups"] = words(form.pop("groupNames", None))
    await customers.change(ctx, customer_id, form)
    return Go(f"/app/customers/{customer_id}/details", "The changes are kept.")


@pages.post("/invite", access=coach(CUSTOMERS.EDIT), on=details_page)
async def invite(ctx: Context, customer_id: ObjectId) -> Go:
    """Send the client a mail by which they choose a password."""
    await customer_access.invite(ctx, customer_id)
    return Go(f"/app/customers/{customer_id}/details", "The invitation is on its way.")


@pages.post("/archive", access=coach(CUSTOMERS.EDIT), on=details_page)
async def archive(ctx: Context, customer_id: ObjectId) -> Go:
    """Archive the client, or bring them back."""
    customer = await customers.read(ctx, customer_id)
    archived = not customer["customerRoleData"]["isArchived"]
    await customers.set_archived(ctx, customer_id, archived=archived)
    notice = "is archived and cannot sign in" if archived else "is active again"
    return Go(f"/app/customers/{customer_id}/details", f"{customer['name']} {notice}.")


@pages.get("/delete", access=coach(CUSTOMERS.DELETE), template="customer/delete.html")
async def delete_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """What is lost with a client."""
    return {"customer": await customers.read(ctx, customer_id)}


@pages.post("/delete", access=coach(CUSTOMERS.DELETE), on=delete_page)
async def delete(ctx: Context, customer_id: ObjectId) -> Go:
    """Erase a client and all that is theirs."""
    customer = await customers.read(ctx, customer_id)
    await customers.erase(ctx, customer_id)
    return Go("/app/customers", f"{customer['name']} is deleted.")
