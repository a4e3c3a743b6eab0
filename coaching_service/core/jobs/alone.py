"""Working through many so that one whose work fails delays no other: only that one waits, longer each time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypedDict, get_args

import structlog

from coaching_service.core.database.checks import check_of
from coaching_service.core.database.connection import Index, as_service_error
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.metrics import reading_in_time

FailingKind = Literal["figures", "digests", "check-ins", "notifications", "tombstones", "training-load"]
_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=6)
# Until when the failure of what no longer exists is known: what exists is tried again before.
_KEPT_SECONDS = round(timedelta(days=2).total_seconds())
log = structlog.get_logger("coaching_service.alone")


class StoredFailure(TypedDict):
    """That work on the `subject` has failed since a time, and how often; it is tried again after `waitsUntil`."""

    _id: ObjectId
    companyId: ObjectId | None
    kind: FailingKind
    subject: ObjectId
    attempts: int
    since: datetime
    waitsUntil: datetime


_failures = Documents[StoredFailure](
    "failures",
    (Index(("kind", "subject")),),
    secret=True,
    expire=("waitsUntil", _KEPT_SECONDS),
    global_indexes=(Index(("kind", "since")),),
    cross_company_reason="background jobs work for any company, and the operator sees what fails",
    transfer=NotExported("work in progress"),
    process_state=True,
)


async def for_each_alone(
    services: Services,
    kind: FailingKind,
    company_id: ObjectId | None,
    subjects: Iterable[ObjectId],
    work: Callable[[Sequence[ObjectId]], Awaitable[None]],
    *,
    at_once: int = 1_000,
    skips_waiting: bool = False,
) -> dict[ObjectId, timedelta]:
    """Do work on all subjects of a company together; if it fails, on each half, down to those alone that fail.

    Those that failed before are alone from the start. Returns how long each of those that failed has to wait; the
    caller makes them due by then, or calls this again with `skips_waiting`, which leaves them out until then. The work
    may be repeated, `at_once` subjects at a time. Raises Unavailable while the database cannot be used.
    """
    stored, everything = _failures.across_companies(services), list(subjects)
    where: Document = {"companyId": company_id, "kind": kind, "subject": {"$in": everything}}
    index = _failures.index_name("kind", "subject")
    before: dict[ObjectId, StoredFailure] = {each["subject"]: each async for each in stored.find(where, hint=index)}
    if skips_waiting:
        everything = [each for each in everything if each not in before or before[each]["waitsUntil"] <= now()]
    usual = [each for each in everything if each not in before]
    parts = [[each] for each in everything if each in before]
    parts += [usual[start : start + at_once] for start in range(0, len(usual), at_once)]
    waits: dict[ObjectId, timedelta] = {}
    while parts:
        part = parts.pop()
        try:
            await work(part)
        except Exception as error:
            if isinstance(error if isinstance(error, Unavailable) else as_service_error(error), Unavailable):
                raise
            if (middle := len(part) // 2) > 0:
                parts += [part[:middle], part[middle:]]
                continue
            [subject] = part
            log.exception("work fails", kind=kind, company=str(company_id), subject=str(subject))
            waits[subject] = await _store(services, kind, company_id, subject, before.get(subject))
    if succeeded := [failure["_id"] for subject, failure in before.items() if subject in {*everything} - waits.keys()]:
        await stored.delete_many({"companyId": company_id, "_id": {"$in": succeeded}})
    return waits


async def _store(
    services: Services,
    kind: FailingKind,
    company_id: ObjectId | None,
    subject: ObjectId,
    before: StoredFailure | None,
) -> timedelta:
    """Store that work has failed once more, and return how long to wait until it is tried again."""
    attempts = before["attempts"] + 1 if before else 1
    wait: timedelta = min(_FIRST_WAIT * 2.0 ** min(attempts - 1, 20), _LONGEST_WAIT)
    own: Document = {"companyId": company_id, "_id": stable_id("failure", kind, str(subject))}
    fields: Document = {"kind": kind, "subject": subject, "attempts": attempts, "waitsUntil": now() + wait}
    change = {"$set": fields, "$setOnInsert": {"since": now()}}
    await _failures.across_companies(services).update_one(own, change, upsert=True)
    return wait


async def forget(services: Services, company_id: ObjectId, subject: ObjectId) -> None:
    """Forget all failures of a subject that no longer exists."""
    own: Document = {"companyId": company_id, "kind": {"$in": get_args(FailingKind)}, "subject": subject}
    await _failures.across_companies(services).delete_many(own, hint=_failures.index_name("kind", "subject"))


async def read_metrics(services: Services) -> None:
    """Read how much work fails, by kind; it is not a number while the database does not respond."""
    unknown = dict.fromkeys(get_args(FailingKind), float("nan"))
    counts = await reading_in_time(_count(services), unknown, "failing work")
    for kind, count in counts.items():
        services.metrics.work_failing.labels(kind).set(count)


async def _count(services: Services) -> dict[str, float]:
    stages: list[Document] = [{"$sort": {"kind": 1}}, {"$group": {"_id": "$kind", "count": {"$sum": 1}}}]
    cursor = _failures.across_companies(services).aggregate(stages, hint="kind_since")
    counts = dict.fromkeys(get_args(FailingKind), 0.0)
    return counts | {each["_id"]: each["count"] async for each in cursor}


async def _iterate(services: Services) -> AsyncIterator[str]:
    async for each in _failures.across_companies(services).find({}, hint="kind_since"):
        yield f"{each['kind']} {each['subject']}"


CHECKS = (
    check_of(
        "work-failing",
        "Work in the background succeeds for everyone",
        _iterate,
        "Clients, coaches or records whose work in the background fails",
        'The log says why: search for "work fails" with this identifier. It is often a document that another check '
        "names. The work of others goes on; this is tried again, at the latest after six hours",
        counts=True,
    ),
)
