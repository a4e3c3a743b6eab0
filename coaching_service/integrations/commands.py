"""Export and import of a company from the command line, and the proposal of the demo company."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.errors import BadRequest, CompanySuspended, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.mcp import validate_arguments
from coaching_service.core.media import CSV, XLSX, ZIP, InvalidFile
from coaching_service.demo import EMAIL
from coaching_service.integrations import company_export
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import.models import ImportAnswers
from coaching_service.integrations.proposals import service as proposals
from coaching_service.integrations.proposals import tool_calls
from coaching_service.people import account, api_keys, jobs, team
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import OnConflict
from coaching_service.people.identities import service as identities
from coaching_service.progress.conversation import tools

_POLL_SECONDS = 0.5
_BATCH = 200


async def export_company(ctx: Context, target: Path, on_bytes: Callable[[int], None]) -> int:
    """Write the export of the caller's company to a file that its owner alone can read; returns its size in bytes.

    The file is complete or not there. `on_bytes` is called with the bytes written so far.
    """
    download = await company_export.export(ctx, "archive")
    draft = target.with_name(f"{target.name}.part")
    size = 0
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            async for chunk in download.read(0, 0):
                size += await asyncio.to_thread(output.write, chunk)
                on_bytes(size)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return size


async def import_file(
    ctx: Context,
    source: IO[bytes],
    name: str,
    *,
    dry_run: bool,
    on_conflict: OnConflict,
    answers: ImportAnswers,
    on_progress: Callable[[int, int], None],
) -> jobs.StoredJob:
    """Import a file into the caller's company and return the job once it has ended.

    `on_progress` is called with the records done and their number. Raises BadRequest if the file is neither an
    export nor a table, and like company_import.begin.
    """
    try:
        async with files.storing(
            ctx, source, name=name, content_types=(ZIP, CSV, XLSX), customer_id=None, max_pixels=1
        ) as file:

            async def begin(tx: Context) -> jobs.StoredJob:
                job = await company_import.begin(tx, file, dry_run=dry_run, on_conflict=on_conflict, answers=answers)
                await files.attach(tx, file)
                return job

            job = await in_transaction(ctx, begin)
    except InvalidFile as error:
        raise BadRequest(
            "The file is neither an export of a company nor a table (CSV, XLSX)", code=error.code
        ) from None
    while jobs.is_unfinished(job):
        ran = await worker.run_due(ctx.services, {company_import.IMPORT: company_import.run_step}, limit=1)
        if not ran:  # a running service has it
            await asyncio.sleep(_POLL_SECONDS)
        job = await jobs.get(ctx, job["_id"])
        on_progress(job["done"], job["total"])
    return job


async def find_client(ctx: Context, email: str) -> ObjectId:
    """Return the client of the caller's company with an address. Raises BadRequest unless there is exactly one."""
    found = await customers.find_by_emails(ctx, [email])
    if len(found) != 1:
        raise BadRequest(f"{len(found) or 'No'} clients of the company have the address {email}", code="NOT_ONE_CLIENT")
    return found[0]["_id"]


async def list_owners_of_client(services: Services, email: str) -> list[Context]:
    """Return contexts of the owners of all companies that have a client with an address."""
    owners: list[Context] = []
    async for batch in account.iterate(services, batch=_BATCH):
        for company in batch:
            with suppress(NotFound, CompanySuspended):
                ctx = Context(services, operation=company_import.OPERATION)
                ctx = ctx.acting_as(await team.get_owner(services, company["_id"]))
                if await customers.find_by_emails(ctx, [email]):
                    owners.append(ctx)
    return owners


# --- The proposal of the demo company: what an assistant with a key of its own asked to do, and a coach has to decide -


_SAMPLE_ASSISTANT = "Assistant"
_SENT = {"groups": ["Morning"], "text": "The gym opens an hour later on Friday. Shall we move your session to 8:00?"}


async def ensure_sample_proposal(services: Services) -> None:
    """Let an assistant propose a message to a group of the demo company, once."""
    identity = await identities.find_by_email(services, EMAIL)
    owner = await team.get_principal(services, identity.subject_id) if identity is not None else None
    if owner is None:
        return
    ctx = Context(services, operation="addSampleData").acting_as(owner)
    if await api_keys.find_secret(ctx, _SAMPLE_ASSISTANT) is not None:
        return
    created = await api_keys.create(ctx, _SAMPLE_ASSISTANT, {"outreach": True})
    assistant = await api_keys.load_principal(services, ObjectId(created["_id"]))
    if assistant is None:
        return
    ctx = ctx.acting_as(assistant)
    [tool] = [each for each in tools.tools.declared if each.name == "send_message"]
    try:
        await tool_calls.carry_out(ctx, tool_calls.Call(tool, validate_arguments(tool.takes, _SENT), _SENT))
    except tool_calls.Unconfirmed as unconfirmed:
        await proposals.propose(ctx, unconfirmed)
