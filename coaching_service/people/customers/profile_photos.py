"""Profile photos of clients: their links, and replacing one."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database import files
from coaching_service.core.database.conflicts import version_conflict
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import NotFound
from coaching_service.core.file_links import file_url
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service, store
from coaching_service.people.customers.models import CustomerProfile, ProfilePhoto
from coaching_service.people.customers.store import customers


async def find_portraits(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, str | None]:
    """Return the signed links to the thumbnails of the profile photos of clients that have one, by client.

    Access is not checked.
    """
    where = {"_id": {"$in": list(ids)}, "profilePhoto": {"$ne": None}}
    found = await customers.find(ctx, where, fields=("profilePhoto",), hint=store.BY_ID)
    photos = {client["_id"]: client["profilePhoto"] for client in found}
    return {client: file_url(ctx.services, photo["thumbnailId"]) for client, photo in photos.items() if photo}


@transactional
async def set_profile_photo(
    ctx: Context, customer_id: ObjectId, file: StoredFile | None, version: int | None = None
) -> CustomerProfile:
    """Replace a client's profile photo and return the client; without a file nothing changes.

    Raises Conflict if the client has changed since `version`, and what get_visible raises.
    """
    previous = await service.get_visible(ctx, customer_id, ("version", store.TRAINER, "profilePhoto"))
    if version is not None and previous["version"] != version:
        raise version_conflict()
    if file is None:
        return await service.get(ctx, customer_id)
    photo: ProfilePhoto = {"fileId": file.id, "thumbnailId": file.thumbnail_id}
    customer = await customers.update(ctx, {"_id": customer_id}, {"$set": {"profilePhoto": photo}})
    if customer is None:
        raise NotFound("customer")
    if replaced := previous.get("profilePhoto"):
        await files.discard(ctx, [file_id for file_id in (replaced["fileId"], replaced["thumbnailId"]) if file_id])
    return service.to_response(ctx, customer)
