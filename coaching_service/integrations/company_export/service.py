"""Exporting a company as a ZIP archive that is streamed in bounded memory, whatever its size.

What is exported of each collection is declared with the collection. Records are exported one after another while others
may write: each is as it was when it was read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Literal

from coaching_service.core import audit
from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.portable import Portable, file_holders
from coaching_service.core.fields import take
from coaching_service.core.http.responses import Download, to_json
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.company_export import rows
from coaching_service.integrations.company_export.rows import (
    ACCOUNT,
    ACTIVITY,
    COACHES,
    FORMAT,
    HEADER,
    HISTORY,
    VERSION,
    file_entry,
    portable_collections,
    records_entry,
)
from coaching_service.lifecycle.export import Archive
from coaching_service.people import notification_settings
from coaching_service.people.account import service as account
from coaching_service.people.account.models import AccountDetails
from coaching_service.people.activity import service as activity
from coaching_service.people.changes import service as changes
from coaching_service.people.team import service as team

_COACH_FIELDS = ("_id", "name", "email", "role", "permissions", "customersScope", "createdAt")
_HISTORY_FIELDS = ("_id", "at", "actor", "via", "operation", "summary", "customerId", "documents")
_PAGE = 50


async def export(ctx: Context, kind: Literal["archive", "workouts", "customers"]) -> Download:
    """Return an export of the caller's company, and record that it was made.

    A ZIP archive of everything, or as CSV a row for each logged set, or for each client.
    """
    name, ending, content_type, iterate = _KINDS[kind]
    company = await account.get(ctx)
    await audit.record(ctx, "company.exported", kind=kind)

    def read_all(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        return iterate(ctx)

    return Download(content_type, f"{name}-{company['_id']}-{now():%Y-%m-%d}.{ending}", read_all)


async def _zip(ctx: Context) -> AsyncGenerator[bytes, None]:
    archive = Archive()
    header = {"format": FORMAT, "version": VERSION, "companyId": ctx.company_id, "exportedAt": now()}
    async for output in archive.add(HEADER, _single(header)):
        yield output
    async for output in archive.add(ACCOUNT, _single(await _account(ctx))):
        yield output
    for name, entries in _lists(ctx):
        async for output in archive.add_records(name, entries):
            yield output
    for _, collection, portable in portable_collections():
        if portable.files is not None:
            async for output in _files(ctx, archive, collection):
                yield output
    yield archive.close(header)


def _lists(ctx: Context) -> Iterator[tuple[str, AsyncIterator[Mapping[str, Any]]]]:
    """Yield the entries of the archive that are lists of records, with the records of each."""
    yield COACHES, _coaches(ctx)
    for name, collection, portable in portable_collections():
        yield records_entry(name), _records(ctx, collection, portable)
    yield ACTIVITY, _activity(ctx)
    yield HISTORY, _history(ctx)


async def _single(content: Mapping[str, Any]) -> AsyncGenerator[bytes, None]:
    yield to_json(content)


async def _account(ctx: Context) -> dict[str, Any]:
    company = await account.get(ctx)
    settings: AccountDetails = take(AccountDetails, company)
    return {"_id": company["_id"], **settings, "hasStoredLoads": await account.has_stored_loads(ctx)}


async def _coaches(ctx: Context) -> AsyncIterator[Mapping[str, Any]]:
    settings = await team.list_notifications(ctx)
    for coach in await team.list_coaches(ctx):
        fields = {name: value for name, value in coach.items() if name in _COACH_FIELDS}
        yield {**fields, "notifications": notification_settings.complete(settings[coach["_id"]])}


async def _records(
    ctx: Context, collection: Documents[dict[str, object]], portable: Portable
) -> AsyncIterator[Mapping[str, Any]]:
    async for document in collection.stream_own(ctx, portable.exported_fields):
        yield portable.to_export(document)


async def _files(
    ctx: Context, archive: Archive, collection: Documents[dict[str, object]]
) -> AsyncGenerator[bytes, None]:
    """Yield the files that the documents of a collection refer to, without thumbnails."""
    async for document in collection.stream_own(ctx, None):
        for holder in file_holders(document):
            file_id: ObjectId = holder["fileId"]
            if (file := await files.find(ctx.services, file_id)) is None:  # replaced since the document was read
                continue
            content = files.read(ctx.services, file, 0, file["length"])
            name = file_entry(file_id, file["filename"], file["contentType"])
            async for output in archive.add(name, content, compressed=True):
                yield output


async def _activity(ctx: Context) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the entries of the activity feed of all clients, newest first."""
    after: str | None = None
    while True:
        page = await activity.list_company_events(ctx, limit=_PAGE, after=after)
        for event in page["docs"]:
            yield event
        if (after := page["nextCursor"]) is None:
            return


async def _history(ctx: Context) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the changes of the company, newest first, without values."""
    after: str | None = None
    while True:
        page = await changes.list_changes(ctx, limit=_PAGE, after=after)
        for change in page["docs"]:
            yield {name: value for name, value in change.items() if name in _HISTORY_FIELDS}
        if (after := page["nextCursor"]) is None:
            return


_CSV = "text/csv; charset=utf-8"
# By the kind of an export: the name of its file, its ending and content type, and what yields it.
_KINDS: Mapping[str, tuple[str, str, str, Callable[[Context], AsyncGenerator[bytes, None]]]] = {
    "archive": ("company", "zip", "application/zip", _zip),
    "workouts": ("workouts", "csv", _CSV, rows.iterate_workout_rows),
    "customers": ("clients", "csv", _CSV, rows.iterate_client_rows),
}
