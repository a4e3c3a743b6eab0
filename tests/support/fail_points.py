"""The fail point `failCommand` of MongoDB, which makes commands fail or wait."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClient

from coaching_service.core.database.connection import hosts_of
from coaching_service.settings import Settings
from tests.support.client import CoachClient

FailCommand = Callable[..., Awaitable[int]]


@asynccontextmanager
async def fail_point(client: AsyncIOMotorClient[Any], uri: str | None, **common: Any) -> AsyncIterator[FailCommand]:
    """Returns a function that sets the fail point, with a mode and fields in addition to the common ones.

    It returns how often commands have met the fail point, which `wait_for_fail_point` takes.
    The database has only one, which the tests of other processes wait for.
    """

    async def configure(mode: object = "alwaysOn", **data: Any) -> int:
        reply = await client.admin.command("configureFailPoint", "failCommand", mode=mode, data={**common, **data})
        return int(reply["count"])

    assert uri is not None
    with (Path(gettempdir()) / f"fail-point-{hosts_of(uri)}.lock").open("w") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        try:
            yield configure
        finally:
            await client.admin.command("configureFailPoint", "failCommand", mode="off")


@asynccontextmanager
async def no_job_begins(coach: CoachClient, settings: Settings) -> AsyncIterator[None]:
    """No process claims a job meanwhile."""
    db = coach.ctx.db
    of_claims = {"failCommands": ["findAndModify"], "namespace": db["jobs"].full_name, "errorCode": 11601}
    async with fail_point(db.client, settings.mongodb_uri, **of_claims) as fail:
        await fail()
        yield


async def wait_for_fail_point(client: AsyncIOMotorClient[Any], met: int) -> None:
    """Wait until commands have met the fail point that often."""
    await client.admin.command("waitForFailPoint", "failCommand", timesEntered=met, maxTimeMS=60_000)
