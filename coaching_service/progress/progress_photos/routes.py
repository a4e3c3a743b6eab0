"""Progress photos over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.http.routes import Form, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import PICTURES
from coaching_service.core.pagination import Page, PageQuery, page_of
from coaching_service.progress.progress_photos import service
from coaching_service.progress.progress_photos.schemas import NewPhoto, OtherPhoto, ProgressPhoto

routes = Routes("/coach/customers/{customerId}/progress-photos", tag="Progress photos")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=PageQuery(), returns=page_of(ProgressPhoto))
async def list_photos(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> Page[dict[str, Any]]:
    """List a client's progress photos, newest first.

    One record a date, with three sides.
    """
    return await service.page(ctx, customer_id, page=query["pageNum"], size=query["pageSize"])


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    form=Form("imageFile", PICTURES, NewPhoto()),
    returns=ProgressPhoto,
    example={"createdAt": "2026-03-02", "imageSideIndex": "1"},
)
async def add_photo(
    ctx: Context, customer_id: ObjectId, body: dict[str, Any], file: StoredFile | None
) -> dict[str, Any]:
    """Add a progress photo.

    It joins the record of its date; a moment counts for the date that it was where the client is. Without a file the
    record is made, or left as it is. Metadata (the place it was taken, say) is stripped.
    """
    return await service.add(ctx, customer_id, body["createdAt"], body["imageSideIndex"], file)


@routes.put(
    "/{photoId}",
    access=coach(CUSTOMERS.EDIT),
    form=Form("imageFile", PICTURES, OtherPhoto()),
    returns=ProgressPhoto,
    example={"imageSideIndex": "1"},
)
async def replace_photo(
    ctx: Context, customer_id: ObjectId, photo_id: ObjectId, body: dict[str, Any], file: StoredFile | None
) -> dict[str, Any]:
    """Replace a progress photo."""
    return await service.replace(ctx, customer_id, photo_id, body["imageSideIndex"], file)


@routes.delete("/{photoId}", access=coach(CUSTOMERS.EDIT))
async def delete_photos(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> None:
    """Delete the progress photos of a date."""
    await service.remove(ctx, customer_id, photo_id)
