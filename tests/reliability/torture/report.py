"""The report of a run, as a page of Markdown without anything that names the machine but its number of processors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tests.reliability.torture.ledger import Fault, Ledger
from tests.reliability.torture.measures import Measures

MOST_SECONDS_OF_A_FAILURE = 3.0
MOST_SECONDS_OF_WRONG_READINESS = 3.0
MOST_SECONDS_OF_A_REQUEST = 15.0
MOST_PROCESSORS_OF_OTHERS = 0.1
_MOST_PROBLEMS = 50
_INTRODUCTION = """\
# Faults under load

The report of `scripts/torture`: writers send operations of all kinds while databases and processes of the service are killed,
frozen, cut off and made to step down. Requests without an answer are sent again with the same `Idempotency-Key`, or are not sent
again at all; afterwards what is stored is compared with what was answered. The limits are those of the [promises](promises.md)."""


@dataclass(frozen=True)
class Conditions:
    """How the service was run. `seconds`: of the load; `election`: the election timeout of MongoDB in seconds.

    `others`: the share of the processors that other programs used meanwhile, from 0 to 1.
    """

    command: str
    seconds: float
    date: str
    version: str
    mongodb: str
    processors: int
    election: int
    others: float

    @property
    def is_quiet(self) -> bool:
        """Whether the limits of times apply: they were measured with the processors to ourselves."""
        return self.others <= MOST_PROCESSORS_OF_OTHERS


def write_report(
    conditions: Conditions, ledger: Ledger, checked: Sequence[tuple[str, int]], problems: Sequence[str]
) -> str:
    """Return the report. `checked`: what was verified afterwards, with its number."""
    measures = Measures(ledger)
    verdict = f"**{len(problems)} problems**, listed below." if problems else "**Passed**: no problems."
    writes = sum(each.is_successful_write for each in ledger.exchanges)
    facts = [
        ("Command", f"`{conditions.command}`"),
        ("Date", conditions.date),
        ("Service, MongoDB", f"{conditions.version}, {conditions.mongodb}"),
        ("Duration of the load", f"{conditions.seconds / 60:.1f} minutes on {conditions.processors} processors"),
        (
            "Processes",
            f"3 mongod (elections after {conditions.election} s), 2 of the service, on loopback",
        ),
        ("Processors used by other programs", _others(conditions)),
        ("Faults", len(ledger.faults)),
        ("Requests", f"{len(ledger.exchanges):,}"),
        ("Successful writes", f"{writes:,}"),
        ("Responses by status", _statuses(ledger)),
        ("Requests repeated after their response, with the same `Idempotency-Key`", f"{ledger.replayed:,}"),
    ]
    longest = [
        (
            "Request that failed, from its beginning or the start of the fault",
            _waited(measures, failed=True),
            MOST_SECONDS_OF_A_FAILURE,
        ),
        (
            "Request that succeeded, or got no response",
            _waited(measures, failed=False),
            MOST_SECONDS_OF_A_REQUEST,
        ),
        ("Response of `/readyz`", measures.longest_readiness_check(), MOST_SECONDS_OF_A_FAILURE),
        ("`/readyz` 200 while no write succeeds", measures.longest_wrongly_ready(), MOST_SECONDS_OF_WRONG_READINESS),
        ("`/readyz` 503 while writes succeed", measures.longest_wrongly_unready(), MOST_SECONDS_OF_WRONG_READINESS),
    ]
    rows = [(what, f"{seconds:.1f} s", f"{limit:.0f} s") for what, seconds, limit in longest]
    sections = [
        _INTRODUCTION,
        verdict,
        _table(("", ""), facts),
        "## Faults\n\nThe recovery is the longest pause of successful writes to any process of the service that was not "
        "killed: from the beginning of the fault, or from the end of an outage, in which no write can succeed.",
        _table(("Fault", "Times", "Recovery, median", "Longest", "Limit"), _fault_rows(ledger.faults, measures)),
        "## Longest times",
        _table(("What", "Longest", "Limit"), rows),
        "## Verified afterwards",
        _table(("What", "Number"), [(what, f"{number:,}") for what, number in sorted(checked)]),
    ]
    if problems:
        listed = [f"- {each}" for each in problems[:_MOST_PROBLEMS]]
        more = [f"- and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
        sections.append("## Problems\n\n" + "\n".join(listed + more))
    return "\n\n".join(sections) + "\n"


def find_problems(ledger: Ledger, conditions: Conditions) -> list[str]:
    """Return what contradicts the promises in responses, and in times if the processors were quiet."""
    return list(ledger.unplanned) + (_slow(ledger) if conditions.is_quiet else [])


def _others(conditions: Conditions) -> str:
    share = f"{conditions.others:.0%}"
    return share if conditions.is_quiet else f"{share}: times are not compared with their limits"


def _slow(ledger: Ledger) -> list[str]:
    measures, problems = Measures(ledger), list[str]()
    for fault in ledger.faults:
        problems += _problems_of(fault, measures)
    problems += _slow_request(measures, failed=True) + _slow_request(measures, failed=False)
    limits = [
        (measures.longest_readiness_check(), MOST_SECONDS_OF_A_FAILURE, "/readyz responded after"),
        (measures.longest_wrongly_ready(), MOST_SECONDS_OF_WRONG_READINESS, "/readyz was 200 without writes for"),
        (measures.longest_wrongly_unready(), MOST_SECONDS_OF_WRONG_READINESS, "/readyz was 503 beside writes for"),
    ]
    problems += [f"{what} {seconds:.1f} s, limit {limit:.0f} s" for seconds, limit, what in limits if seconds > limit]
    return problems


def _slow_request(measures: Measures, *, failed: bool) -> list[str]:
    limit = MOST_SECONDS_OF_A_FAILURE if failed else MOST_SECONDS_OF_A_REQUEST
    if (each := measures.slowest(failed=failed)) is None or measures.waited(each) <= limit:
        return []
    outcome, fault = each.status or "no response", measures.fault_at(each.ended)
    name = fault.name if fault else "before all faults"
    return [f"{each.operation}: {outcome} after {measures.waited(each):.1f} s, limit {limit:.0f} s ({name})"]


def _waited(measures: Measures, *, failed: bool) -> float:
    each = measures.slowest(failed=failed)
    return measures.waited(each) if each else 0.0


def _problems_of(fault: Fault, measures: Measures) -> list[str]:
    problems, seconds = [], measures.recovery(fault)
    if seconds is None:
        problems.append(f"{fault.name}: writes did not succeed any more")
    elif seconds > fault.limit_seconds:
        problems.append(f"{fault.name}: writes paused for {seconds:.1f} s, limit {fault.limit_seconds:.0f} s")
    if fault.outage:
        problems += [
            f"{fault.name}: {each.operation} succeeded {each.began - fault.began:.1f} s after the outage began, "
            f"in {each.ended - each.began:.1f} s"
            for each in measures.writes_during(fault)
        ]
    if fault.outage and (ready := measures.ready_during(fault, MOST_SECONDS_OF_WRONG_READINESS)):
        problems.append(f"{fault.name}: /readyz was 200 {ready} times during the outage")
    return problems


def _fault_rows(faults: Sequence[Fault], measures: Measures) -> list[tuple[object, ...]]:
    by_name: defaultdict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        by_name[fault.name].append(fault)
    rows: list[tuple[object, ...]] = []
    for name, each in by_name.items():
        recoveries = [seconds for fault in each if (seconds := measures.recovery(fault)) is not None]
        times = (f"{median(recoveries):.1f} s", f"{max(recoveries):.1f} s") if recoveries else ("never", "never")
        rows.append((name, len(each), *times, f"{each[0].limit_seconds:.0f} s"))
    return rows


def _statuses(ledger: Ledger) -> str:
    return ", ".join(f"{status}: {number:,}" for status, number in sorted(ledger.statuses().items()))


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
