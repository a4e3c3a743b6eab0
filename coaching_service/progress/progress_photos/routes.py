"""Progress photos over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import part_of
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.pagination import Page, PageFields, PageQuery, page_of
from coaching_service.progress.progress_photos import schemas, service
from coaching_service.progress.progress_photos.models import PROGRESS_PHOTO, ProgressPhoto

routes = Routes("/coach/customers/{customerId}/progress-photos", tag="Progress photos", locks="customer")
own_routes = Routes("/customer/progress-photos", tag="The client's own")

_NEW_PHOTO = MultipartBody("imageFile", IMAGE_TYPES, schemas.NewPhoto)
_PHOTO = {"createdAt": "2026-03-02", "imageSideIndex": "1"}


@routes.get("", access=coach(CUSTOMERS.VIEW), query=PageQuery(), returns=page_of(PROGRESS_PHOTO))
async def list_progress_photos(ctx: Context, customer_id: ObjectId, query: PageFields) -> Page[ProgressPhoto]:
    """List a client's progress photos, newest first.

    One record a date, with three sides.
    """
    return await service.list_photos(ctx, customer_id, **part_of(query))


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    multipart=_NEW_PHOTO,
    returns=PROGRESS_PHOTO,
    example=_PHOTO,
)
async def create_progress_photo(
    ctx: Context, customer_id: ObjectId, body: schemas.NewPhoto, file: StoredFile | None
) -> ProgressPhoto:
    """Add a progress photo.

    The photos of one date share a record; a time counts for the date it was in the client's time zone. Without a file
    the record is created, or left unchanged. Metadata, such as the location, is removed from the picture.
    """
    return await service.create(ctx, customer_id, body["createdAt"], body["imageSideIndex"], file)


@routes.get("/{photoId}", access=coach(CUSTOMERS.VIEW), returns=PROGRESS_PHOTO)
async def get_progress_photo(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> ProgressPhoto:
    """Read the progress photos of a date."""
    return await service.get(ctx, customer_id, photo_id)


@routes.put(
    "/{photoId}",
    access=coach(CUSTOMERS.EDIT),
    multipart=MultipartBody("imageFile", IMAGE_TYPES, schemas.PhotoReplacement, file_required=True),
    returns=PROGRESS_PHOTO,
    example={"imageSideIndex": "1"},
)
async def replace_progress_photo(
    ctx: Context, customer_id: ObjectId, photo_id: ObjectId, body: schemas.PhotoReplacement, file: StoredFile | None
) -> ProgressPhoto:
    """Replace a progress photo."""
    return await service.replace(ctx, customer_id, photo_id, body["imageSideIndex"], file, body.get("version"))


@routes.delete("/{photoId}", access=coach(CUSTOMERS.EDIT))
async def delete_progress_photo(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> None:
    """Delete the progress photos of a date."""
    await service.delete(ctx, customer_id, photo_id)


@own_routes.get("", access=customer(), query=PageQuery(), returns=page_of(PROGRESS_PHOTO))
async def list_own_progress_photos(ctx: Context, query: PageFields) -> Page[ProgressPhoto]:
    """List my progress photos, newest first.

    One record a date, with three sides.
    """
    return await service.list_photos(ctx, ctx.caller.id, **part_of(query))


@own_routes.post(
    "",
    access=customer(),
    multipart=_NEW_PHOTO,
    returns=PROGRESS_PHOTO,
    example=_PHOTO,
)
async def create_own_progress_photo(ctx: Context, body: schemas.NewPhoto, file: StoredFile | None) -> ProgressPhoto:
    """Add a progress photo of mine.

    The photos of one date share a record; a time counts for the date it was in the client's time zone. A photo of the
    same side and date is replaced. Metadata, such as the location, is removed from the picture.
    """
    return await service.create(ctx, ctx.caller.id, body["createdAt"], body["imageSideIndex"], file)


@own_routes.delete("/{photoId}", access=customer())
async def delete_own_progress_photo(ctx: Context, photo_id: ObjectId) -> None:
    """Delete my progress photos of a date."""
    await service.delete(ctx, ctx.caller.id, photo_id)
