"""Databases of an earlier release, and services that send mail to a mail server of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiosmtpd.smtp import SMTP

from coaching_service import runtime
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import registry
from coaching_service.installation.indexes import ensure_indexes
from coaching_service.settings import Settings
from tests.support.databases import new_database, remove_documents
from tests.support.mail_servers import Mailbox, listening, sending_to
from tests.support.release_0_1_0 import customer_of_release_0_1_0, mail_of_release_0_1_0


@pytest.fixture(scope="module")
async def own_services(settings: Settings) -> AsyncIterator[Services]:
    """Services on a database of their own."""
    async with new_database(settings, "migrations", has_indexes=False) as (_, services):
        yield services


@pytest.fixture
async def old_database(own_services: Services) -> Services:
    """A database as release 0.1.0 left it."""
    db = own_services.db
    await remove_documents(db)
    await ensure_indexes(db, {name: each.indexes for name, each in registry.items()})
    await db["customers"].insert_many([customer_of_release_0_1_0(name) for name in ("Ana", "Bo")])
    await db["jobs"].insert_one(mail_of_release_0_1_0())
    return own_services


@pytest.fixture
async def mailbox() -> AsyncIterator[tuple[Mailbox, int]]:
    """The mailbox of a mail server, and the server's port."""
    received = Mailbox()
    async with listening(lambda: SMTP(received)) as port:
        yield received, port


@pytest.fixture(scope="module")
async def mail_database(settings: Settings) -> AsyncIterator[Services]:
    """Services on a database of their own, whose queue only the tests work on."""
    name = f"{settings.mongodb_database}_mail"
    own = settings.model_copy(update={"mongodb_database": name, "smtp_host": "127.0.0.1", "smtp_encryption": "none"})
    async with runtime.open_services(own) as services:
        await runtime.make_indexes(services)
        yield services
        await services.db.client.drop_database(name)


@pytest.fixture
async def mailing(mail_database: Services, mailbox: tuple[Mailbox, int]) -> Services:
    """Services with an empty queue that send through the mail server of the test."""
    await mail_database.db["jobs"].delete_many({})
    return sending_to(mail_database, port=mailbox[1])
