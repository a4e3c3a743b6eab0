"""Exports and imports of a company over REST."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from coaching_service import features
from coaching_service.core.jobs import worker
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import undoing
from tests.core.test_uploads import form
from tests.support.client import CoachClient, Reply
from tests.support.jobs import ended_job
from tests.support.service_process import until
from tests.support.visitor import HtmlPage, Visitor

Entries = dict[str, bytes]
_REFRESHES = 'http-equiv="refresh"'


async def export(coach: CoachClient) -> Entries:
    """The entries of the company's export, by name."""
    reply = await coach.get("/coach/export")
    assert reply.status == 200
    return read_zip(reply.raw)


async def exported_rows(coach: CoachClient, kind: str) -> list[dict[str, str]]:
    """The rows of an export as CSV."""
    reply = await coach.get("/coach/export", format="csv", kind=kind)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    return list(csv.DictReader(io.StringIO(reply.raw.decode("utf-8-sig"))))


def read_zip(content: bytes) -> Entries:
    """The entries of a ZIP archive, by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def make_zip(entries: Entries, *, renew_sums: bool = True) -> bytes:
    """A ZIP archive of these entries; unless `renew_sums` is false, with their checksums if it is an export."""
    if renew_sums and "manifest.json" in entries:
        entries = with_sums(entries)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def with_sums(entries: Entries) -> Entries:
    """An export with the checksums of its entries as they are now."""
    sums = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in entries.items()
        if name != "manifest.json" and not name.endswith("/")
    ]
    return {**entries, "manifest.json": json.dumps({"entries": sums}).encode()}


def records(entries: Entries, collection: str) -> list[dict[str, Any]]:
    """The records of a collection in an export."""
    return [json.loads(line) for line in entries[f"records/{collection}.jsonl"].splitlines()]


def with_records(entries: Entries, collection: str, *changed: dict[str, Any]) -> Entries:
    """An export with other records of a collection."""
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in changed)
    return {**entries, f"records/{collection}.jsonl": lines}


def pick(found: Iterable[Mapping[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Some values of each problem, question or record."""
    return [tuple(each[name] for name in names) for each in found]


async def send(
    coach: CoachClient,
    content: bytes,
    *,
    dry_run: bool = False,
    name: str = "export.zip",
    path: str = "/coach/import",
    **fields: str,
) -> Reply:
    """Upload a file to import, with other text fields."""
    if dry_run:
        fields["dryRun"] = "true"
    return await coach.send("POST", path, data=form(content, "file", name, **fields))


async def run(coach: CoachClient, kind: str = company_import.IMPORT) -> None:
    """Run all steps of imports, or of another kind of job, that are due."""
    await worker.run_due(coach.ctx.services, {kind: features.STEPS[kind]})


async def ended(coach: CoachClient, job: dict[str, Any], kind: str = company_import.IMPORT) -> dict[str, Any]:
    """An import, or a job of another kind, once it has ended."""
    return await ended_job(coach, job["_id"], partial(run, coach, kind))


async def import_file(
    coach: CoachClient, content: bytes, *, dry_run: bool = False, name: str = "export.zip", **fields: str
) -> dict[str, Any]:
    """Import a file; returns its job once it has ended."""
    return await ended(coach, (await send(coach, content, dry_run=dry_run, name=name, **fields)).ok(202))


async def undo(coach: CoachClient, job: dict[str, Any]) -> dict[str, Any]:
    """Undo an import; returns the job once it has ended."""
    return await ended(coach, (await coach.post(f"/coach/jobs/{job['_id']}/undo")).ok(202), undoing.UNDO)


async def ended_page(visitor: Visitor, coach: CoachClient, page: HtmlPage) -> HtmlPage:
    """The page of an import once it has ended."""

    async def current() -> HtmlPage | None:
        await run(coach)
        look = await visitor.get(page.path)
        return None if _REFRESHES in look.ok().html else look

    return await until(current, "the import has ended") if _REFRESHES in page.ok().html else page
