"""Downloads of files through signed links."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated, TypedDict

from coaching_service.core import audit
from coaching_service.core.auth import public
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import Forbidden, NotFound
from coaching_service.core.fields import Default, Description
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MEDIA_TYPES, PDF
from coaching_service.people import account, file_links
from coaching_service.people.customers import service as customers


async def open_file(ctx: Context, file_id: ObjectId) -> Download:
    """Return a file of a record that the caller may read, which was checked; it must not be cached. Raises NotFound."""
    file = await files.find(ctx.services, file_id)
    if file is None or file["companyId"] != ctx.company_id:
        raise NotFound("file")
    return _to_download(ctx, file)


def _to_download(ctx: Context, file: Document) -> Download:
    def read_range(start: int, end: int) -> AsyncGenerator[bytes, None]:
        return files.read(ctx.services, file, start, end)

    return Download(
        content_type=file["contentType"],
        name=file["filename"] or "file",
        read=read_range,
        size=file["length"],
        inline=file["contentType"] in MEDIA_TYPES,
    )


# --- Files over REST --------------------------------------------------------------------------------------------------


routes = Routes("/files", tag="Files", path_descriptions={"fileId": "The identifier of the file."})


class LinkQuery(TypedDict):
    """The query of a signed link."""

    expires: Annotated[str, Default("")]
    reader: Annotated[str, Default(""), Description("For whom the link was made, if for a coach.")]
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
    # `reader` is the coach for whom the link was made, who is recorded as the reader of a client's file. Raises
    # Forbidden if the link is not valid or has expired, ClientDeclined if it is for what the client has turned off
    # since, NotFound if the file or its client is deleted, CompanySuspended.
    expires = query["expires"]
    reader = query["reader"]
    expires_at = int(expires) if re.fullmatch("[1-9][0-9]{0,14}", expires) else 0
    if not file_links.is_valid_link(ctx.services, file_id, expires_at, query["signature"], reader):
        raise Forbidden(
            "The link is not valid or has expired; read the record again for a new one", code="LINK_INVALID"
        )
    file = await files.find(ctx.services, file_id)
    if file is None:
        raise NotFound("file")
    company_id, customer_id = file["companyId"], file["customerId"]
    active = account.require_active(ctx.services, company_id)
    if customer_id is None:
        await active
    else:
        made_for = file_links.parse_reader(reader)
        via = None if made_for is None else made_for.via
        await gather_reads(ctx, customers.require_file_reader(ctx.services, company_id, customer_id, via), active)
        if made_for is not None:
            audit.record_file(ctx, company_id, customer_id, made_for)
    return replace(_to_download(ctx, file), etag=f'"{file["sha256"]}"')
