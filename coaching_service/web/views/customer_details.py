"""A client's details and files: editing, inviting, archiving and deleting; photos by date, and nutrition plans."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import CUSTOMERS, NUTRITION, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import NotFound, invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES, PDF
from coaching_service.core.validation import Text, patch_of
from coaching_service.integrations.calendar_feed import service as calendar_feed
from coaching_service.people.customer_access import service as customer_access
from coaching_service.people.customers import listing, service
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerChange, WrittenDetails
from coaching_service.people.sessions import web_sessions
from coaching_service.people.team import service as team
from coaching_service.progress.customer_profile import service as customer_profile
from coaching_service.progress.nutrition_plans import service as nutrition_plans
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.progress.progress_photos.models import ProgressPhoto
from coaching_service.web.page_queries import PageQuery
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect
from coaching_service.web.uploads import ReceivedFiles
from coaching_service.web.views.customer_layout import customer_path, get_today, load_header
from coaching_service.web.views.photos import (
    PHOTOS_FORM,
    SIDES,
    PhotosForm,
    add_received,
    has_photos,
    load_weights,
    missing_sides,
    pair_photos,
)
from coaching_service.web.views.unusual_values import require_past_date

pages = Pages("/app/customers/{customerId}")
_MAX_PHOTO_DATES = 50
_PLANS_PER_PAGE = 25
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
        "customer": header,
        "details": customer,
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


@pages.post("/calendar-link/revoke", access=coach(CUSTOMERS.EDIT), on=details_page, deletes=True)
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


@pages.confirm(
    "/delete", access=coach(CUSTOMERS.DELETE), template="customer/delete.html", deletes_customer=True, deletes=True
)
async def delete(ctx: Context, customer_id: ObjectId) -> ConfirmedAction:
    """Permanently delete a client with all of their data."""
    customer = await load_header(ctx, customer_id)
    done = Redirect("/app/customers", f"{customer['name']} deleted.")
    return ConfirmedAction({"customer": customer}, partial(customers.erase, ctx, customer_id), done)


def _details_path(customer_id: ObjectId) -> str:
    return customer_path(customer_id, "/details")


class _CompareQuery(TypedDict):
    """The two dates to compare; the first and the latest if absent."""

    left: Annotated[str, Text(allow_blank=True), Default("")]
    right: Annotated[str, Text(allow_blank=True), Default("")]


@pages.get("/photos", access=coach(CUSTOMERS.VIEW), template="customer/photos.html")
async def photos_page(ctx: Context, customer_id: ObjectId, query: _CompareQuery) -> dict[str, Any]:
    """Compare the photos of two dates, with the weight at the time."""
    customer, page, weights = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        progress_photos.list_photos(ctx, customer_id, page=1, size=_MAX_PHOTO_DATES),
        load_weights(ctx, customer_id),
    )
    records = page["docs"]
    by_date = {record["createdAt"]: record for record in records}
    compared: list[ProgressPhoto] = []
    if records:
        with_photos = [record for record in records if has_photos(record)] or records
        compared = [by_date.get(query["left"], with_photos[-1]), by_date.get(query["right"], with_photos[0])]
    return {
        "customer": customer,
        "dates": list(by_date),
        "compared": compared,
        "pairs": pair_photos(compared[0], compared[1], customer["name"], weights) if compared else [],
        "today": ctx.caller.today(customer["timezone"]),
    }


@pages.post("/photos", access=coach(CUSTOMERS.EDIT), form=PHOTOS_FORM, on=photos_page)
async def add_photos(ctx: Context, customer_id: ObjectId, form: PhotosForm, files: ReceivedFiles) -> Redirect:
    """Add the photos of a date, replacing the photos of the same sides."""
    require_past_date("createdAt", form["createdAt"], await get_today(ctx, customer_id), or_tomorrow=True)
    _, notice = await add_received(ctx, customer_id, form["createdAt"], files)
    return Redirect(f"{customer_path(customer_id, '/photos')}?right={form['createdAt']}", notice)


@pages.confirm(
    "/photos/{photoId}/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_photos.html", deletes=True
)
async def delete_photos(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> ConfirmedAction:
    """Delete the photos of a date."""
    customer, record = await gather_reads(
        ctx, load_header(ctx, customer_id), progress_photos.get(ctx, customer_id, photo_id)
    )
    missing = missing_sides(record)
    shown = {"customer": customer, "record": record, "sides": [side for side in SIDES if side not in missing]}
    done = Redirect(customer_path(customer_id, "/photos"), "Photos deleted.")
    return ConfirmedAction(shown, partial(progress_photos.delete, ctx, customer_id, photo_id), done)


@pages.get("/plans", access=coach(NUTRITION.VIEW), template="customer/plans.html")
async def plans_page(ctx: Context, customer_id: ObjectId, query: PageQuery) -> dict[str, Any]:
    """The versions of a client's nutrition plan."""
    customer, page = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        nutrition_plans.list_plans(ctx, customer_id, page=query["page"], size=_PLANS_PER_PAGE),
    )
    path = customer_path(customer_id, "/plans")
    return {"customer": customer, "page": page, "address": lambda page: f"{path}?page={page}"}


@pages.post(
    "/plans",
    access=coach(NUTRITION.CREATE),
    form=MultipartBody("file", (PDF, *IMAGE_TYPES), size_limit="plan"),
    on=plans_page,
)
async def upload_plan(ctx: Context, customer_id: ObjectId, file: StoredFile) -> Redirect:
    """Store a new version of the client's nutrition plan."""
    plan = await nutrition_plans.upload(ctx, customer_id, file)
    return Redirect(customer_path(customer_id, "/plans"), f"{plan['fileName']} saved as version {plan['number']}.")


@pages.confirm(
    "/plans/{planId}/delete", access=coach(NUTRITION.DELETE), template="customer/delete_plan.html", deletes=True
)
async def delete_plan(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> ConfirmedAction:
    """Delete a version of the client's nutrition plan."""
    customer, plan = await gather_reads(
        ctx, load_header(ctx, customer_id), nutrition_plans.get(ctx, customer_id, plan_id)
    )
    done = Redirect(customer_path(customer_id, "/plans"), "Version deleted.")
    act = partial(nutrition_plans.delete, ctx, customer_id, plan_id)
    return ConfirmedAction({"customer": customer, "plan": plan}, act, done)


@pages.post(
    "/profile-photo",
    access=coach(CUSTOMERS.EDIT),
    form=MultipartBody("profilePhotoFile", IMAGE_TYPES),
    on=details_page,
)
async def set_profile_photo(ctx: Context, customer_id: ObjectId, file: StoredFile) -> Redirect:
    """Set or replace the client's profile photo."""
    await service.set_profile_photo(ctx, customer_id, file)
    return Redirect(customer_path(customer_id, "/details"), "Photo saved.")
