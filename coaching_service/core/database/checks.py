"""Checks of the stored data, which `coaching-service doctor` runs. Each is a function with a name.

A feature declares the checks of its own collections in its `checks.py`; `features.CHECKS` lists them all. A check reads
in bounded memory while the service runs: what looks wrong is read again at one moment before it is reported.
"""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import SpooledTemporaryFile
from weakref import finalize

import pymongo
import structlog
from pymongo.errors import OperationFailure

from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Services

_LISTED_BYTES = 100_000  # of identifiers, in memory
_SECONDS = 3600.0  # of one operation of a check, instead of the deadline of requests

log = structlog.get_logger("coaching_service.checks")


@dataclass(frozen=True)
class Finding:
    """What a check has found: the problem, how often, the identifier of an example, and what to do.

    `identifiers` name all occurrences, or those that are known. A notice
    is something to know that needs no repair.
    """

    problem: str
    count: int
    example: str | None
    advice: str
    is_notice: bool = False
    identifiers: Iterable[str] = field(default=(), compare=False, repr=False)


# Called with how many more documents a check has read.
CountRead = Callable[[int], None]
Examine = Callable[[Services, CountRead], AsyncIterator[Finding]]
Repair = Callable[[Services], Awaitable[object]]


@dataclass(frozen=True)
class Check:
    """One check. `repair` corrects what `examine` finds where that is safe while the service runs.

    `deletes_files`: the repair deletes what could not be restored if the records were missing by mistake.
    """

    name: str
    title: str
    examine: Examine
    repair: Repair | None = None
    deletes_files: bool = False


def check_of(
    name: str,
    title: str,
    find: Callable[[Services], AsyncIterator[object] | Awaitable[Iterable[object]]],
    problem: str,
    advice: str,
    repair: Repair | None = None,
    *,
    counts: bool = False,
) -> Check:
    """Yield the check of one problem: `find` returns or yields the identifiers of its occurrences.

    `counts`: each of them is a document that has been read.
    """

    async def examine(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
        occurrences, found = Occurrences(), find(services)
        if isinstance(found, AsyncIterator):
            async for identifier in found:
                occurrences.add(identifier)
                count_read(int(counts))
        else:
            for identifier in await found:
                occurrences.add(identifier)
            count_read(occurrences.count if counts else 0)
        yield occurrences.finding(problem, advice)

    return Check(name, title, examine, repair)


class _Identifiers:
    """A list of identifiers in bounded memory: a long one continues in a temporary file."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_LISTED_BYTES)  # noqa: SIM115 - open as long as there are findings
        finalize(self, self._file.close)

    def append(self, identifier: str) -> None:
        self._file.write(identifier.replace("\n", " ").encode() + b"\n")

    def __iter__(self) -> Iterator[str]:
        self._file.seek(0)
        for line in self._file:
            yield line.decode().rstrip("\n")


@dataclass
class Occurrences:
    """How often something occurs, and the identifiers of the occurrences."""

    count: int = 0
    example: str | None = None
    identifiers: _Identifiers = field(default_factory=_Identifiers, repr=False)

    def add(self, identifier: object, count: int = 1) -> None:
        """Count an occurrence."""
        self.count += count
        self.identifiers.append(str(identifier))
        if self.example is None:
            self.example = str(identifier)

    def finding(self, problem: str, advice: str, *, is_notice: bool = False) -> Finding:
        """Return the finding of this problem, which is left out if it does not occur."""
        return Finding(problem, self.count, self.example, advice, is_notice, self.identifiers)


@dataclass
class CheckResult:
    """The result of a check. `repaired`: findings that its repair has corrected. `error`: why it could not run."""

    check: Check
    findings: list[Finding] = field(default_factory=list)
    repaired: list[Finding] = field(default_factory=list)
    documents: int = 0
    error: str | None = None

    @property
    def problems(self) -> list[Finding]:
        """The findings that need a repair."""
        return [finding for finding in self.findings if not finding.is_notice]


async def run_checks(
    services: Services,
    checks: Sequence[Check],
    *,
    repairing: bool = False,
    deleting_files: bool = False,
    report: Callable[[CheckResult], None] = lambda _: None,
) -> list[CheckResult]:
    """Run checks one after another and return their results.

    `repairing`: call the repair of each that finds a problem, and check again; `deleting_files`: also of those that
    delete files. `report` is called with the result of the running check whenever it has changed. Raises errors of the
    driver if the database cannot be reached.
    """
    results = []
    for check in checks:
        await services.db.command("ping")  # with the deadlines of requests: checks have long ones
        may_repair = repairing and (deleting_files or not check.deletes_files)
        results.append(result := CheckResult(check))
        report(result)
        try:
            with pymongo.timeout(_SECONDS):
                result.findings = await _find(services, result, report)
                if may_repair and check.repair is not None and result.problems:
                    before = result.findings
                    await check.repair(services)
                    result.findings = await _find(services, result, report)
                    left = {finding.problem: finding.count for finding in result.findings}
                    result.repaired = [each for each in before if left.get(each.problem, 0) < each.count]
        except Exception as error:  # noqa: BLE001 - one check does not stop the others
            result.error = _describe(error)
            log.warning("a check could not run", check=check.name, reason=result.error)
        report(result)
    return results


async def _find(services: Services, result: CheckResult, report: Callable[[CheckResult], None]) -> list[Finding]:
    def count_read(documents: int) -> None:
        result.documents += documents
        report(result)

    return [finding async for finding in result.check.examine(services, count_read) if finding.count]


def _describe(error: Exception) -> str:
    """Return one sentence about why a check could not run, without values of documents, which errors may have."""
    if (known := as_service_error(error)) is not None:
        return str(known)
    if isinstance(error, OperationFailure):
        if "hint provided does not correspond to an existing index" in str(error):
            return "An index is missing: the check of indexes names it, and doctor --repair creates it"
        return f"The database refuses it ({(error.details or {}).get('codeName', error.code)})"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"A document has a value of another type, which the check of documents names ({type(error).__name__}, "
        f"{Path(place.filename).name}, line {place.lineno})"
    )
