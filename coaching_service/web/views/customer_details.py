"""A client's details: editing, inviting, archiving, restoring and deleting."""

from __future__ import annotations

from functools import partial
from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import NotFound, invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.integrations.calendar_feed import service as calendar_feed
from coaching_service.people.customer_access import service as customer_access
from coaching_service.people.customers import listing
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerChange, WrittenDetails
from coaching_service.people.sessions import web_sessions
from coaching_service.people.team import service as team
from coaching_service.progress.customer_profile import service as customer_profile
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect
from coaching_service.web.views.customer_layout import customer_path, load_header

pages = Pages("/app/customers/{customerId}")
_DETAILS_FORM = patch_of(input_of(WrittenDetails), name="CustomerForm")


@pages.get("/details", access=coach(CUSTOMERS.VIEW), template="customer/details.html")
async def details_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """A client's details."""
    header, customer, groups, coaches, last_use = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        customer_profile.get(ctx, customer_id),
        listing.list_groups(ctx),
        team.list_coaches(ctx),
        web_sessions.find_last_use(ctx, customer_id),
    )
    times = [time for time in (customer["lastActivityDate"], last_use) if time is not None]
    may_share = CUSTOMERS.EDIT in ctx.caller.permissions
    return {
        "customer": header | customer,
        "version": customer["version"],
        "groups": groups,
        "coaches": coaches,
        "last_seen": max(times, default=None),
        "calendar_url": await calendar_feed.find_url(ctx, customer_id) if may_share else None,
    }


@pages.post("/details", access=coach(CUSTOMERS.EDIT), form=_DETAILS_FORM, on=details_page)
async def change_details(ctx: Context, customer_id: ObjectId, form: CustomerChange) -> Redirect:
    """Change a client's details."""
    await customers.get_visible(ctx, customer_id)
    try:
        customer = await customers.update(ctx, customer_id, form)
    except NotFound:
        raise invalid_field("assignedTo", "must be a coach of your team; this coach has left it") from None
    trainer_id = customer["customerRoleData"]["assignedTo"]
    if ctx.caller.customers_scope == "assigned" and trainer_id != ctx.caller.id:
        return Redirect("/app/customers", f"Changes saved. {customer['name']} is no longer assigned to you.")
    return Redirect(_details_path(customer_id), "Changes saved.")


@pages.post("/invite", access=coach(CUSTOMERS.EDIT), on=details_page)
async def invite(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Send the client an invitation to choose a password."""
    await customer_access.invite(ctx, customer_id)
    return Redirect(_details_path(customer_id), "Invitation sent.")


@pages.post("/calendar-link", access=coach(CUSTOMERS.EDIT), on=details_page, idempotent=True)
async def create_calendar_link(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Create a link to the client's calendar; has no effect if there is one."""
    await calendar_feed.create(ctx, customer_id)
    return Redirect(_details_path(customer_id), "Calendar link created.")


@pages.post("/calendar-link/revoke", access=coach(CUSTOMERS.EDIT), on=details_page)
async def delete_calendar_link(ctx: Context, customer_id: ObjectId) -> Redirect:
    """End the link to the client's calendar."""
    await calendar_feed.revoke(ctx, customer_id)
    return Redirect(_details_path(customer_id), "Calendar link revoked.")


@pages.post("/archive", access=coach(CUSTOMERS.EDIT), on=details_page, idempotent=True)
async def archive(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Archive the client; has no effect on an archived client."""
    customer = await customers.set_archived(ctx, customer_id, archived=True)
    return Redirect(_details_path(customer_id), f"{customer['name']} is archived and cannot sign in.")


@pages.post("/restore", access=coach(CUSTOMERS.EDIT), on=details_page, idempotent=True)
async def restore(ctx: Context, customer_id: ObjectId) -> Redirect:
    """Restore an archived client; has no effect on an active one."""
    customer = await customers.set_archived(ctx, customer_id, archived=False)
    return Redirect(_details_path(customer_id), f"{customer['name']} is active again.")


@pages.confirm("/delete", access=coach(CUSTOMERS.DELETE), template="customer/delete.html", deletes_customer=True)
async def delete(ctx: Context, customer_id: ObjectId) -> ConfirmedAction:
    """Permanently delete a client with all of their data."""
    customer = await load_header(ctx, customer_id)
    done = Redirect("/app/customers", f"{customer['name']} deleted.")
    return ConfirmedAction({"customer": customer}, partial(customers.erase, ctx, customer_id), done)


def _details_path(customer_id: ObjectId) -> str:
    return customer_path(customer_id, "/details")
