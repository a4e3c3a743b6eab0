"""The versions of MongoDB: which of them the service is tested with, and until when MongoDB supports each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from coaching_service.core.database.checks import Check, CountRead, Finding
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now

Tested = Literal["tests", "workflow"]


@dataclass(frozen=True)
class Series:
    """A series of versions. `supported_until`: the last day on which MongoDB corrects it.

    `tested`: by each run of the tests, or by the workflow on a host with Docker; None if by neither.
    """

    supported_until: date
    tested: Tested | None = None


# From MongoDB's lifecycle schedules; a step of docs/releasing.md renews it, and docs/deployment.md shows it.
SERIES = {
    "6.0": Series(date(2025, 7, 31), "tests"),
    "7.0": Series(date(2027, 8, 31), "workflow"),
    "8.0": Series(date(2029, 10, 31), "workflow"),
    "8.2": Series(date(2026, 7, 31)),
    "8.3": Series(date(2029, 10, 31)),
}
RECOMMENDED = "8.0"


@dataclass(frozen=True)
class Remark:
    """What an operator should know about a version, and what to do."""

    problem: str
    advice: str


def remark_on(version: str, day: date) -> Remark | None:
    """Return the remark on a version of the server; None if it is tested and supported on this day."""
    name = ".".join(version.split(".")[:2])
    series = SERIES.get(name)
    if series is not None and series.supported_until < day:
        return Remark(
            f"MongoDB {name} has no corrections since {series.supported_until}",
            f"Use MongoDB {RECOMMENDED} on a network; the embedded {name} only listens on 127.0.0.1",
        )
    if series is None or series.tested is None:
        tested = ", ".join(name for name, each in SERIES.items() if each.tested)
        return Remark(f"The service is not tested with MongoDB {name}", f"Tested are {tested}: prefer {RECOMMENDED}")
    return None


async def read_version(services: Services) -> str:
    """Return the version of the database server that accepts writes."""
    return str((await services.db.command("buildInfo"))["version"])


async def find_unsupported(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    """Find a server version that is untested or out of support."""
    version = await read_version(services)
    if (remark := remark_on(version, now().date())) is not None:
        yield Finding(remark.problem, 1, version, remark.advice, is_notice=True)


CHECKS = (Check("database-version", "The version of MongoDB is tested and supported", find_unsupported),)
