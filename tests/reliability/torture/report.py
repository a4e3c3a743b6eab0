"""The report of a run, as Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tests.reliability.torture.ledger import Ledger
from tests.reliability.torture.verification import Verification

MOST_SECONDS_OF_A_FAILURE = 3.0


def write_report(ledger: Ledger, verification: Verification, minutes: float) -> str:
    """Return the report."""
    writes = sum(each.is_successful_write for each in ledger.exchanges)
    statuses = ", ".join(f"{status}: {number}" for status, number in sorted(ledger.statuses().items()))
    sections = [
        f"{minutes:.0f} minutes, {len(ledger.exchanges)} requests, {writes} successful writes, {len(ledger.faults)} faults.",
        f"Responses by status: {statuses}.",
        f"Longest failed request: {ledger.longest_seconds(failed=True):.1f} s; longest successful one: "
        f"{ledger.longest_seconds(failed=False):.1f} s. Longest time with /readyz 200 but without a successful write: "
        f"{ledger.longest_wrong_readiness_seconds():.1f} s.",
        "### Faults\n\n" + _faults(ledger),
        "### Verified afterwards\n\n" + _table(("What", "Number"), sorted(verification.checked.items())),
        "### Problems\n\n" + ("\n".join(f"- {each}" for each in find_problems(ledger, verification)) or "None."),
    ]
    return "\n\n".join(sections) + "\n"


def find_problems(ledger: Ledger, verification: Verification) -> list[str]:
    """What contradicts the promises; empty after a successful run."""
    problems = [*verification.problems, *ledger.unplanned]
    for fault in ledger.faults:
        seconds = ledger.recovery_seconds(fault)
        if seconds is None or seconds > fault.limit_seconds:
            after = "never" if seconds is None else f"after {seconds:.1f} s"
            problems.append(f"{fault.name}: writes succeeded {after}, not within {fault.limit_seconds:.0f} s")
    if (longest := ledger.longest_seconds(failed=True)) > MOST_SECONDS_OF_A_FAILURE:
        problems.append(f"a request failed after {longest:.1f} s, not within {MOST_SECONDS_OF_A_FAILURE:.0f} s")
    return problems


def _faults(ledger: Ledger) -> str:
    by_name: defaultdict[str, list[float]] = defaultdict(list)
    limits: dict[str, float] = {}
    for fault in ledger.faults:
        limits[fault.name] = fault.limit_seconds
        if (seconds := ledger.recovery_seconds(fault)) is not None:
            by_name[fault.name].append(seconds)
    rows = [
        (name, len(each), f"{sorted(each)[len(each) // 2]:.1f} s", f"{max(each):.1f} s", f"{limits[name]:.0f} s")
        for name, each in by_name.items()
    ]
    return _table(("Fault", "Times", "Writes succeed after (median)", "Longest", "Limit"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
