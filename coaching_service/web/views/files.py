"""Files of a client: photos by date, and the versions of a plan."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, NUTRITION
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES, PDF
from coaching_service.core.validation import Date, Input, Integer, Text
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.schemas import NoFormFields
from coaching_service.progress.nutrition_plans import service as nutrition_plans
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.progress.progress_photos.schemas import PhotoReplacement
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer import head, require_likely
from coaching_service.web.views.details import details_page

pages = Pages("/app/customers/{customerId}")
SIDES = ("front", "side", "back")
_CHOICES = (("1", "Front"), ("3", "Side"), ("2", "Back"))


class _Dates(Input):
    left = Text(allow_blank=True, load_default="")
    right = Text(allow_blank=True, load_default="")


class _NewPhoto(PhotoReplacement):
    createdAt = Date(required=True)


class _Page(Input):
    page = Integer(minimum=1, load_default=1)


@pages.get("/photos", access=coach(CUSTOMERS.VIEW), query=_Dates(), template="customer/photos.html")
async def photos_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """Two dates side by side: the first and the latest unless others are chosen."""
    customer, page = await gather_reads(
        ctx, head(ctx, customer_id), progress_photos.list_photos(ctx, customer_id, page=1, size=50)
    )
    records = page["docs"]
    by_date = {record["createdAt"]: record for record in records}
    pair: list[Document] = []
    if records:
        seen = [record for record in records if any(record["photos"].values())] or records
        pair = [by_date.get(query["left"], seen[-1]), by_date.get(query["right"], seen[0])]
    return {
        "customer": customer,
        "dates": list(by_date),
        "pair": pair,
        "sides": SIDES,
        "choices": _CHOICES,
        "today": ctx.caller.today(customer["timezone"]),
    }


@pages.post(
    "/photos", access=coach(CUSTOMERS.EDIT), form=MultipartBody("imageFile", IMAGE_TYPES, _NewPhoto()), on=photos_page
)
async def add_photo(ctx: Context, customer_id: ObjectId, form: dict[str, Any], file: StoredFile) -> Redirect:
    """Put a photo to its date; a second one of a side takes the place of the first."""
    await require_likely(ctx, customer_id, "createdAt", form["createdAt"])
    await progress_photos.add(ctx, customer_id, form["createdAt"], form["imageSideIndex"], file)
    return Redirect(f"/app/customers/{customer_id}/photos?right={form['createdAt']}", "The photo is kept.")


@pages.get("/photos/{photoId}/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_photos.html")
async def delete_photos_page(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> dict[str, Any]:
    """The photos of a date that will be lost."""
    customer, record = await gather_reads(ctx, head(ctx, customer_id), progress_photos.read(ctx, customer_id, photo_id))
    return {"customer": customer, "record": record, "sides": [s for s in SIDES if record["photos"][f"{s}Url"]]}


@pages.post("/photos/{photoId}/delete", access=coach(CUSTOMERS.EDIT), on=delete_photos_page)
async def delete_photos(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> Redirect:
    """Delete the photos of a date."""
    await progress_photos.delete(ctx, customer_id, photo_id)
    return Redirect(f"/app/customers/{customer_id}/photos", "The photos of the date are deleted.")


@pages.get("/plans", access=coach(NUTRITION.VIEW), query=_Page(), template="customer/plans.html")
async def plans_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """The versions of a client's plan."""
    customer, page = await gather_reads(
        ctx, head(ctx, customer_id), nutrition_plans.list_plans(ctx, customer_id, page=query["page"], size=25)
    )
    here = f"/app/customers/{customer_id}/plans"
    return {"customer": customer, "page": page, "address": lambda page: f"{here}?page={page}"}


@pages.post(
    "/plans",
    access=coach(NUTRITION.CREATE),
    form=MultipartBody("file", (PDF, *IMAGE_TYPES), NoFormFields(), size_limit="plan"),
    on=plans_page,
)
async def upload_plan(ctx: Context, customer_id: ObjectId, form: dict[str, Any], file: StoredFile) -> Redirect:
    """Keep the next version of the client's plan."""
    del form
    plan = await nutrition_plans.upload(ctx, customer_id, file)
    return Redirect(f"/app/customers/{customer_id}/plans", f"{plan['fileName']} is kept as version {plan['number']}.")


@pages.get("/plans/{planId}/delete", access=coach(NUTRITION.DELETE), template="customer/delete_plan.html")
async def delete_plan_page(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> dict[str, Any]:
    """The version that will be lost."""
    customer, plan = await gather_reads(ctx, head(ctx, customer_id), nutrition_plans.read(ctx, customer_id, plan_id))
    return {"customer": customer, "plan": plan}


@pages.post("/plans/{planId}/delete", access=coach(NUTRITION.DELETE), on=delete_plan_page)
async def delete_plan(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> Redirect:
    """Delete a version of the client's plan."""
    await nutrition_plans.delete(ctx, customer_id, plan_id)
    return Redirect(f"/app/customers/{customer_id}/plans", "The version is deleted.")


@pages.post(
    "/profile-photo",
    access=coach(CUSTOMERS.EDIT),
    form=MultipartBody("profilePhotoFile", IMAGE_TYPES, NoFormFields()),
    on=details_page,
)
async def set_profile_photo(ctx: Context, customer_id: ObjectId, form: dict[str, Any], file: StoredFile) -> Redirect:
    """Give the client another profile photo."""
    del form
    await customers.set_profile_photo(ctx, customer_id, file)
    return Redirect(f"/app/customers/{customer_id}/details", "The photo is kept.")
