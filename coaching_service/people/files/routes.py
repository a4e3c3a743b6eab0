"""Files over REST."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.auth.access import public
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Forbidden
from coaching_service.core.fields import Default
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MEDIA_TYPES, PDF
from coaching_service.people.files import service

routes = Routes("/files", tag="Files", path_descriptions={"fileId": "The identifier of the file."})


class LinkQuery(TypedDict):
    """The query of a signed link."""

    expires: Annotated[str, Default("")]
    signature: Annotated[str, Default("")]


@routes.get(
    "/{fileId}",
    access=public(),
    returns=bytes,
    media_types=(PDF, *MEDIA_TYPES),
    errors=(Forbidden,),
    other_responses={
        206: "The requested range.",
        304: "The file has not changed: its `ETag` is in `If-None-Match`.",
        416: "The requested range does not exist.",
    },
)
async def download_file(ctx: Context, file_id: ObjectId, query: LinkQuery) -> Download:
    """Read a file by a signed link.

    The links are the `...Url` fields of records; they need no credential and expire after two hours. `Range` and
    `If-None-Match` are supported.
    """
    return await service.get(ctx, file_id, query["expires"], query["signature"])
