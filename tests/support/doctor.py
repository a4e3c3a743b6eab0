"""The checks of `coaching-service doctor`, and databases to damage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from coaching_service import features
from coaching_service.core.auth import Vault
from coaching_service.core.changes.numbering import sequencing
from coaching_service.core.database.checks import CheckResult, Finding, run_checks
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.worker import ensure_standing_jobs
from coaching_service.demo import EMAIL, ensure_demo
from coaching_service.installation import migrations
from coaching_service.library.exercises import service as exercises
from coaching_service.people import team
from coaching_service.people.customers import batch
from coaching_service.people.identities import service as identities
from coaching_service.settings import Settings
from tests.support.databases import INDEX_STATE, new_database, remove_documents
from tests.support.service_process import until

CHECKS = {check.name: check for check in features.CHECKS}
LONG_AGO = now() - timedelta(days=3)
Damage = Callable[[Context], Awaitable[object]]


async def is_numbered(services: Services) -> bool:
    return await services.db["changes"].count_documents({"pending": {"$exists": True}}) == 0


async def check(services: Services, *names: str, **options: Any) -> list[CheckResult]:
    """The results of the named checks, or of all but the one that states the key of Web Push."""
    chosen = [CHECKS[name] for name in names] or [each for each in features.CHECKS if each.name != "push-key"]
    return await run_checks(services, chosen, **options)


def findings_of(results: list[CheckResult]) -> list[tuple[str, Finding]]:
    """All findings by check, except the notice about the mongod that the tests run on."""
    assert [result.error for result in results if result.error] == []
    return [
        (result.check.name, finding)
        for result in results
        for finding in result.findings
        if result.check.name != "database-version"
    ]


async def reported(ctx: Context, name: str, *, options: dict[str, bool] | None = None) -> list[Finding]:
    """What a check reports, that a repair does not change."""
    findings = [finding for _, finding in findings_of(await check(ctx.services, name))]
    [result] = await check(ctx.services, name, repairing=True, **(options or {}))
    assert (result.findings, result.repaired) == (findings, [])
    return findings


class Restored:
    """Documents that a test changes and that are stored again at its end."""

    def __init__(self, ctx: Context) -> None:
        self.ctx, self._documents, self._inserted = ctx, list[tuple[str, dict[str, Any]]](), list[tuple[str, Any]]()

    async def change(self, collection: str, where: dict[str, Any], change: dict[str, Any]) -> ObjectId:
        """Change one document, and return its identifier."""
        document = await self.ctx.db[collection].find_one(where)
        assert document is not None, collection
        self._documents.append((collection, document))
        await self.ctx.db[collection].update_one({"_id": document["_id"]}, change)
        return document["_id"]

    async def delete(self, collection: str, where: dict[str, Any]) -> ObjectId:
        """Delete one document, and return its identifier."""
        document = await self.ctx.db[collection].find_one_and_delete(where)
        assert document is not None, collection
        self._documents.append((collection, document))
        return document["_id"]

    async def insert(self, collection: str, document: dict[str, Any]) -> None:
        """Store a new document."""
        inserted = await self.ctx.db[collection].insert_one(document)
        self._inserted.append((collection, inserted.inserted_id))

    async def restore(self) -> None:
        """Store the documents again as they were."""
        for collection, identifier in self._inserted:
            await self.ctx.db[collection].delete_one({"_id": identifier})
        for collection, document in reversed(self._documents):
            await self.ctx.db[collection].replace_one({"_id": document["_id"]}, document, upsert=True)


def new_job(ctx: Context, vault: Vault | None = None, **fields: Any) -> dict[str, Any]:
    """A queued mail that is due in a minute."""
    identifier = ObjectId()
    content: mail.MailContent = {"to": "a@b.test", "subject": "s", "text": "t"}
    sealed = mail.seal_content(vault or ctx.services.vault, identifier, content)
    return {
        "_id": identifier,
        "companyId": ctx.company_id,
        "about": None,
        "kind": mail.SEND,
        "arguments": {"sealed": sealed, "tries": 0},
        "runAfter": now() + timedelta(minutes=1),
        "attempts": 0,
        "lease": None,
        "createdAt": now(),
    } | fields


@asynccontextmanager
async def open_demo(settings: Settings, name: str) -> AsyncIterator[Context]:
    """The owner of the demo company, on a database of its own with numbered changes."""
    async with new_database(settings, name) as (_, services):
        await exercises.publish_shared(services)
        await ensure_demo(services)
        await ensure_standing_jobs(services, features.STANDING_JOBS)
        async with sequencing(services):
            await until(lambda: is_numbered(services), "all changes are numbered")
        identity = await identities.find_by_email(services, EMAIL)
        assert identity is not None
        owner = await team.get_principal(services, identity.subject_id)
        assert owner is not None
        yield Context(services).acting_as(owner)


@asynccontextmanager
async def open_company(services: Services) -> AsyncIterator[Context]:
    """The owner of a new company with six clients and numbered changes, the only one of a database."""
    await remove_documents(services.db, but_of=(INDEX_STATE, migrations.COLLECTION))
    owner = await team.create_company(Context(services), "One", "Olga", "olga@doctor.test", "no hash")
    ctx = Context(services).acting_as(owner)
    for number in range(6):
        await batch.create_customer(ctx, {"name": f"Client {number}"})
    async with sequencing(services):
        await until(lambda: is_numbered(services), "all changes are numbered")
    assert findings_of(await check(services, "change-numbers", "change-counters", "change-order", "change-log")) == []
    yield ctx
