"""Checks of the numbers of the change log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from coaching_service.core.changes.numbering import inspection
from coaching_service.core.changes.numbering.models import NumberedChange
from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences, check_of
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId

_PENDING_SECONDS = 60.0
_MAX_PENDING = 10_000
_COUNT = 500
_FIRST = ObjectId(bytes(12))
_NAMED_FOR = timedelta(days=30)


@dataclass
class _Numbers:
    """What is wrong with the numbers of the companies read so far."""

    gaps: Occurrences = field(default_factory=Occurrences)
    erased: Occurrences = field(default_factory=Occurrences)
    repeated: Occurrences = field(default_factory=Occurrences)

    async def add_gap(self, services: Services, company_id: ObjectId, size: int, example: ObjectId) -> None:
        has_deleted = await inspection.has_deleted_clients(services, company_id)
        (self.erased if has_deleted else self.gaps).add(example, size)


async def find_wrong_numbers(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find numbers that no change or several changes of a company have."""
    numbers, last, read = _Numbers(), 0, 0
    previous_company: ObjectId | None = None
    async for change in inspection.iterate_numbered(services):
        company_id = change["companyId"]
        if company_id != previous_company:
            previous_company, last = company_id, 0
        if change["seq"] <= last:
            numbers.repeated.add(change["_id"])
        elif change["seq"] > last + 1:
            await numbers.add_gap(services, company_id, change["seq"] - last - 1, change["_id"])
        last, read = change["lastSeq"], read + 1
        if read % _COUNT == 0:
            count_read(_COUNT)
    count_read(read % _COUNT)
    lost = "Changes are missing before the example: restore the collection changes from a backup. Report it"
    yield numbers.gaps.finding("Numbers that no change has", lost)
    yield numbers.repeated.finding("Numbers that several changes have", "Report it: integrations miss events")
    erased = "Nothing to do: clients of these companies were deleted, and their changes erased"
    yield numbers.erased.finding("Numbers of erased changes", erased, is_notice=True)


async def _iterate_unnamed_ids(services: Services) -> AsyncIterator[ObjectId]:
    async for change in _iterate_unnamed(services):
        yield change["_id"]


async def rebuild_batches(services: Services) -> None:
    """Store the batches of companies again if some of them leave out changes."""
    for company_id in {change["companyId"] async for change in _iterate_unnamed(services)}:
        await inspection.rebuild_batches(Context(services), company_id)


async def _iterate_unnamed(services: Services) -> AsyncIterator[NumberedChange]:
    """Iterate over changes of the last 30 days that events leave out: no batch of numbers names them in their place.

    Changes and batches are read side by side: both are sorted by company and number.
    """
    since = now() - _NAMED_FOR
    async with (
        aclosing(inspection.iterate_numbered(services)) as changes,
        aclosing(inspection.iterate_batches(services)) as names,
    ):
        named: tuple[ObjectId, int, ObjectId] | None = (_FIRST, 0, _FIRST)
        async for change in changes:
            key = change["companyId"], change["lastSeq"], change["_id"]
            while named is not None and named[:2] < key[:2]:
                named = await anext(names, None)
            if named != key and change["createdAt"] >= since:
                yield change


async def find_wrong_counters(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find companies whose counter is behind the last number, which would be used again, or ahead of it."""
    behind, ahead = Occurrences(), Occurrences()
    async for company_id in inspection.iterate_companies(services):
        counted, last = await inspection.read_head(services, company_id)
        count_read(1)
        if counted < last:
            behind.add(company_id)
        elif counted > last and not await inspection.has_deleted_clients(services, company_id):
            ahead.add(company_id)
    yield behind.finding("Counters behind the last number", "Run doctor --repair")
    lost = "The latest changes of these companies are missing: restore the collection changes from a backup. Report it"
    yield ahead.finding("Counters ahead of the last number", lost)


async def raise_counters(services: Services) -> None:
    """Raise the counters that are behind."""
    async for company_id in inspection.iterate_companies(services):
        counted, last = await inspection.read_head(services, company_id)
        if counted < last:
            await inspection.raise_counter(services, company_id, last)


CHECKS = (
    Check("change-numbers", "The numbers of changes have no gaps", find_wrong_numbers),
    Check("change-counters", "The counters of changes are right", find_wrong_counters, raise_counters),
    check_of(
        "change-order",
        "Events have all numbered changes",
        _iterate_unnamed_ids,
        "Changes that events leave out",
        "Run doctor --repair",
        rebuild_batches,
        counts=True,
    ),
    check_of(
        "change-log",
        "Changes are numbered",
        partial(inspection.find_long_pending, seconds=_PENDING_SECONDS, limit=_MAX_PENDING),
        "Changes without a number for over a minute",
        "Start the service, which numbers them. If it runs, its log says why not (docs/operations.md, The change log)",
    ),
)
