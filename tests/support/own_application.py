"""An application with a database of its own, whose requests to addresses of users reach servers on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp.test_utils import BaseTestServer, TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Context, Services
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.companies import create_company
from tests.support.databases import new_database
from tests.support.drill import database_of, require_whole
from tests.support.figures import pause_renewal, resume_renewal

RETRY_SECONDS = (0.1, 0.2)


@dataclass(frozen=True)
class OwnApplication:
    """The application, and what it offers to requests."""

    settings: Settings
    services: Services
    server: BaseTestServer
    password_hash: str

    async def new_coach(self) -> CoachClient:
        """Create a company, and return a client with its owner's key, which the caller closes."""
        company = await create_company(self.services, self.password_hash)
        return CoachClient(self.server, company.key, Context(self.services).acting_as(company.owner))

    async def require_whole(self, *, allowed: Collection[str] = ()) -> None:
        """Require that the service is whole; its figures are renewed from now on."""
        company = await create_company(self.services, self.password_hash)
        await resume_renewal(self.services)
        url = str(self.server.make_url("")).rstrip("/")
        await require_whole(url, company.key, allowed=allowed, **database_of(self.settings))


@asynccontextmanager
async def running_application(settings: Settings, suffix: str, password_hash: str) -> AsyncIterator[OwnApplication]:
    """Run an application on the database with a suffix; webhooks are retried at once, and figures not renewed."""
    relaxed = {"webhooks_allow_http": True, "webhooks_allow_private": True, "webhook_retry_seconds": RETRY_SECONDS}
    async with new_database(settings.model_copy(update=relaxed), suffix) as (own, services):
        await pause_renewal(services)
        async with TestServer(create_app(own, services)) as server:
            yield OwnApplication(own, services, server, password_hash)
