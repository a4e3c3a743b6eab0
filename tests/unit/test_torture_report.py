"""The report of `scripts/torture` names what took too long, and when /readyz was wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from tests.reliability.torture.ledger import Exchange, Fault, Ledger, Readiness
from tests.reliability.torture.measures import Measures
from tests.reliability.torture.processors import ProcessorTime
from tests.reliability.torture.report import Conditions, write_report
from tests.reliability.torture.report import find_problems as find_problems_under

CONDITIONS = Conditions("scripts/torture --minutes 1", 60.0, "2026-03-02", "0.1.0", "7.0.1", 2, 10, 0.02)
KILLED, LOST = "primary killed (kill -9)", "database frozen (SIGSTOP)"


def find_problems(ledger: Ledger) -> list[str]:
    return find_problems_under(ledger, CONDITIONS)


def write(node: int, moment: float, status: int | None = 201, seconds: float = 0.1) -> Exchange:
    """A write that ended at a moment."""
    return Exchange(node, "POST /coach/customers", is_write=True, began=moment - seconds, ended=moment, status=status)


def make_ledger(*silent: tuple[float, float], nodes: tuple[int, ...] = (0, 1)) -> Ledger:
    """Writes and checks of readiness four times a second for a minute, but none that succeed in these times."""
    ledger = Ledger(
        faults=[
            Fault(KILLED, 12.0, began=10.0, lifted=10.0, over=30.0),
            Fault(LOST, 15.0, outage=True, began=30.0, lifted=40.0, over=60.0),
        ]
    )
    for quarter in range(240):
        moment = quarter / 4
        for node in (0, 1):
            fails = node in nodes and any(begin < moment < end for begin, end in (*silent, (30.0, 40.0)))
            is_lost = fails or 30.0 < moment < 40.0
            ledger.exchanges.append(write(node, moment, 503 if is_lost else 201))
            ledger.readiness.append(Readiness(node, moment, moment + 0.1, not is_lost))
    return ledger


def test_faults_with_recovery_in_time_pass() -> None:
    ledger = make_ledger((10.0, 20.0), (40.0, 44.0))
    assert find_problems(ledger) == []
    assert [Measures(ledger).recovery(fault) for fault in ledger.faults] == [10.0, 4.0]
    report = write_report(CONDITIONS, ledger, [("Notes", 1200)], [])
    assert "**Passed**: no problems." in report
    assert f"| {KILLED} | 1 | 10.0 s | 10.0 s | 12 s |" in report
    assert f"| {LOST} | 1 | 4.0 s | 4.0 s | 15 s |" in report
    assert "| Notes | 1,200 |" in report
    assert "## Problems" not in report


@pytest.mark.parametrize("nodes", [(0,), (0, 1)], ids=["one process", "both processes"])
def test_late_recovery_of_any_process_is_a_problem(nodes: tuple[int, ...]) -> None:
    ledger = make_ledger((10.0, 23.0), (40.0, 56.0), nodes=nodes)
    assert find_problems(ledger) == [
        f"{KILLED}: writes paused for 13.0 s, limit 12 s",
        f"{LOST}: writes paused for 16.0 s, limit 15 s",
    ]


def test_a_pause_after_the_first_success_counts() -> None:
    """A write that succeeds just before the fault has its effect hides nothing."""
    assert find_problems(make_ledger((10.5, 24.0))) == [f"{KILLED}: writes paused for 13.5 s, limit 12 s"]


def test_no_recovery_is_a_problem_unless_the_process_was_killed() -> None:
    ledger = make_ledger((9.9, 30.1), nodes=(0,))
    assert find_problems(ledger) == [f"{KILLED}: writes did not succeed any more"]
    assert "| never | never | 12 s |" in write_report(CONDITIONS, ledger, [], [])
    ledger.faults[0].killed = (0,)
    assert find_problems(ledger) == []
    ledger = make_ledger((10.0, 25.0))
    ledger.faults[0].killed = (0, 1)
    assert find_problems(ledger) == [f"{KILLED}: writes paused for 15.0 s, limit 12 s"]


def test_writes_and_readiness_during_an_outage_are_problems() -> None:
    ledger = make_ledger()
    ledger.exchanges.append(write(0, 36.0))
    ledger.readiness = [replace(each, is_ready=True) if each.began == 36.0 else each for each in ledger.readiness]
    assert find_problems(ledger) == [
        f"{LOST}: POST /coach/customers succeeded 5.9 s after the outage began, in 0.1 s",
        f"{LOST}: /readyz was 200 2 times during the outage",
    ]


def test_readiness_of_a_process_that_ends_after_a_write_is_right() -> None:
    """A check that fails because the process ends may begin before its last write."""
    ledger = make_ledger()
    ledger.exchanges = [each for each in ledger.exchanges if each.node == 1 or each.ended <= 50]
    ledger.readiness = [replace(each, is_ready=each.node == 1 or each.began < 49.9) for each in ledger.readiness]
    ledger.readiness = [each for each in ledger.readiness if not 30 < each.began < 41]
    assert Measures(ledger).longest_wrongly_unready() == 0


def test_wrong_readiness_is_a_problem() -> None:
    ledger = make_ledger((10.0, 20.0))
    ledger.readiness = [replace(each, is_ready=True) for each in ledger.readiness if each.began < 30]
    assert find_problems(ledger) == ["/readyz was 200 without writes for 9.8 s, limit 3 s"]
    ledger = make_ledger()
    ledger.readiness = [replace(each, is_ready=each.began < 50) for each in ledger.readiness if each.began > 40]
    assert find_problems(ledger) == ["/readyz was 503 beside writes for 9.5 s, limit 3 s"]


@pytest.mark.parametrize(("status", "seconds"), [(503, 3.5), (None, 15.5), (200, 15.5)])
def test_slow_requests_are_problems(status: int | None, seconds: float) -> None:
    ledger = make_ledger()
    ledger.exchanges.append(write(0, 20.0, status, seconds))
    limit = 3 if status == 503 else 15
    outcome = f"{status or 'no response'} after {seconds} s, limit {limit} s"
    assert find_problems(ledger) == [f"POST /coach/customers: {outcome} ({KILLED})"]


def test_failed_requests_are_measured_from_the_fault() -> None:
    """A request that has worked for long when the database is lost fails as soon as any other."""
    ledger = make_ledger()
    ledger.exchanges.append(write(0, 32.5, 503, seconds=20.0))
    assert find_problems(ledger) == []
    ledger.exchanges.append(write(0, 33.5, 503, seconds=20.0))
    assert find_problems(ledger) == [f"POST /coach/customers: 503 after 3.5 s, limit 3 s ({LOST})"]


def test_problems_are_listed_in_the_report() -> None:
    ledger = make_ledger()
    ledger.unplanned.append("POST /coach/customers: 500 {}")
    assert find_problems(ledger) == ["POST /coach/customers: 500 {}"]
    problems = [f"Notes: marker-{number}: stored 0 times" for number in range(60)]
    report = write_report(CONDITIONS, ledger, [], problems)
    assert "**60 problems**" in report
    assert "- Notes: marker-49: stored 0 times\n- and 10 more\n" in report


def test_times_on_busy_processors_are_reported_and_not_compared() -> None:
    ledger = make_ledger((10.5, 24.0))
    busy = replace(CONDITIONS, others=0.4)
    assert find_problems_under(ledger, busy) == []
    assert "| Processors used by other programs | 40%: times are not compared with their limits |" in write_report(
        busy, ledger, [], []
    )
    ledger.unplanned.append("POST /coach/customers: 500 {}")
    assert find_problems_under(ledger, busy) == ["POST /coach/customers: 500 {}"]


def test_processor_time_of_children_belongs_to_the_run() -> None:
    before = ProcessorTime.now()
    subprocess.run([sys.executable, "-c", "for _ in range(6_000_000): pass"], check=True)
    used = ProcessorTime.now()
    assert used.own > before.own
    assert used.busy - before.busy >= used.own - before.own - 2  # each is rounded to a tick
