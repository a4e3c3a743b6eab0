"""The report of the benchmark of peers: ratios, targets, and the comparison of answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.peers import report
from benchmarks.peers.kinds import KINDS, arms_of
from benchmarks.peers.report import SERVICE, Comparison
from benchmarks.peers.requests import compare
from benchmarks.report import is_optimised
from benchmarks.slots import Slot

SETTING = {"command": "c", "rounds": 3, "seconds": 1, "clients": 200, "connections": [16, 64], "load": [0.1, 0.2]}
MEMORY = {SERVICE: {"idle": 90.0, "after": 99.0}}
TITLES = {"list": "GET customers"}
_FLAGS = {"PGO_PROF_GEN_FLAG": "-fprofile-generate"}


def _slots(*rates: float, p99: float = 10.0) -> list[Slot]:
    return [Slot(round(rate), rate, 5.0, p99, 400.0, 200.0) for rate in rates]


def _comparison(connections: int, ours: tuple[float, ...], theirs: tuple[float, ...]) -> Comparison:
    arms = {SERVICE: _slots(*ours), "Peer": _slots(*theirs, p99=8.0)}
    return Comparison("list", connections, {"Peer": 2.0}, "Peer", arms)


@pytest.fixture
def result() -> report.Row:
    """A report in which the service reaches its target at 16 connections and misses it at 64."""
    comparisons = [
        _comparison(16, (200.0, 300.0, 400.0), (100.0, 100.0, 100.0)),
        _comparison(64, (200.0, 150.0, 100.0), (100.0, 100.0, 100.0)),
    ]
    return report.document(comparisons, MEMORY, SETTING, {"peer": "1.0"})


def test_ratios_are_of_the_same_round_and_have_their_spread() -> None:
    comparison = _comparison(16, (100.0, 400.0, 900.0), (100.0, 200.0, 300.0))
    service, peer = comparison.rows()
    assert comparison.ratios("Peer") == [1.0, 2.0, 3.0]
    assert (peer["ratioMin"], peer["ratio"], peer["ratioMax"]) == (1.0, 2.0, 3.0)
    assert (service["rate"], "ratio" in service, peer["p99Ratio"]) == (400.0, False, 1.25)


def test_the_command_of_the_report_names_no_files() -> None:
    arguments = ["--rounds", "3", "--json", "/home/a.json", "--only", "list", "--markdown=/home/b.md"]
    assert report.measuring_options(arguments) == ["--rounds", "3", "--only", "list"]


def test_the_target_is_compared_with_the_median(result: report.Row) -> None:
    assert [row.get("reached") for row in result["rows"]] == [None, True, None, False]
    assert [row["connections"] for row in report.missed(result)] == [16, 64]  # p99 misses its target at both


def test_the_tables_have_a_row_for_each_arm(result: report.Row) -> None:
    service, peer = report.table_rows(result, TITLES)
    assert service == ("GET customers", SERVICE, "", "", "300 / 150", "5.0 / 5.0", "10.0 / 10.0", "400 / 400")
    assert peer[:4] == (
        "",
        "Peer",
        "3.00 (2.00 to 4.00) / 1.50 (1.00 to 2.00)",
        "2 missed, p99 1.25 / 1.25 of at most 1 missed",
    )
    text = report.markdown(result, TITLES)
    assert f"| {' | '.join(peer)} |" in text
    assert "| service | 90 | 99 |" in text


def test_slot_that_fails_costs_its_row_only() -> None:
    lost_peer = _comparison(16, (200.0, 300.0), (100.0,))
    lost_peer.lost.add("Peer")
    lost_service = _comparison(64, (200.0,), (100.0, 100.0))
    lost_service.lost.add(SERVICE)
    result = report.document([lost_peer, lost_service], MEMORY, SETTING, {"peer": "1.0"})

    service, peer = report.table_rows(result, TITLES)
    assert service == (
        "GET customers",
        SERVICE,
        "",
        "",
        "250 / failed",
        "5.0 / failed",
        "10.0 / failed",
        "400 / failed",
    )
    assert peer == ("", "Peer", "", "", "failed / 100", "failed / 5.0", "failed / 8.0", "failed / 400")
    assert [(row["arm"], row["connections"]) for row in report.missed(result)] == [("Peer", 16), (SERVICE, 64)]
    text = report.markdown(result, TITLES)
    assert "because a slot failed three times: list, Peer, 16; list, service, 64." in text


@pytest.mark.parametrize(
    ("optimised", "expected"),
    [
        (True, "Python 3.11.2, optimised build."),
        (False, "Python 3.11.2, built without profile-guided optimisation."),
        (None, "Python 3.11.2."),
    ],
)
def test_the_text_says_how_the_interpreter_was_built(result: report.Row, optimised: bool | None, expected: str) -> None:
    machine = {"python": "3.11.2"} | ({} if optimised is None else {"optimised": optimised})
    first, *_ = report.markdown(result | {"machine": machine}, TITLES).splitlines()
    assert first.endswith(expected)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        ({"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'", "PGO_PROF_USE_FLAG": "-fprofile-use"}, True),
        ({"CONFIG_ARGS": "", "PY_CFLAGS_NODIST": "-std=c11 -fprofile-use", "PGO_PROF_USE_FLAG": "-fprofile-use"}, True),
        ({"CONFIG_ARGS": "'--prefix=/usr'", **_FLAGS, "PGO_PROF_USE_FLAG": ""}, True),
        ({"CONFIG_ARGS": "'--prefix=/root'", **_FLAGS, "PGO_PROF_USE_FLAG": "-fprofile-use"}, False),
        ({"CONFIG_ARGS": "", "PGO_PROF_GEN_FLAG": "", "PGO_PROF_USE_FLAG": ""}, False),
        ({}, False),
    ],
    ids=["configured", "make target", "Debian", "default", "unknown compiler", "no variables"],
)
def test_an_optimised_interpreter_is_recognized(build: dict[str, str], expected: bool) -> None:
    assert is_optimised(build) is expected


def test_the_text_names_the_slots_that_failed(result: report.Row) -> None:
    assert "failed" not in report.describe(result)
    result["setting"]["failedSlots"] = ["log, NestJS, 64 connections"] * 2
    assert "repeated: 2 of log, NestJS, 64 connections." in report.describe(result)


def test_the_written_report_is_json(result: report.Row, tmp_path: Path) -> None:
    report.write(tmp_path / "reports" / "peers.json", result)
    assert json.loads((tmp_path / "reports" / "peers.json").read_text()) == result


def test_answers_are_compared_without_what_one_side_adds() -> None:
    ours = {"docs": [{"_id": "a", "at": "2026-01-02T03:04:05.600Z", "note": None, "metadata": {}}], "totalDocs": 1}
    theirs = {"docs": [{"_id": "a", "at": "2026-01-02T03:04:05.600000Z"}], "totalDocs": 1}
    assert compare({"ours": ours, "theirs": theirs}, writes=False) == []
    assert compare({"ours": ours, "theirs": theirs | {"totalDocs": 2}}, writes=False) == [
        "ours and theirs: .totalDocs: 1 and 2"
    ]
    assert compare({"ours": [{"_id": "a"}], "theirs": [{"_id": "b"}]}, writes=False)
    assert not compare({"ours": [{"_id": "a", "n": 1}], "theirs": [{"_id": "b", "n": 1}]}, writes=True)


@pytest.mark.parametrize(
    ("theirs", "difference"),
    [
        ({"_id": "a", "pain": None, "order": 0, "variables": [{"key": "reps"}]}, None),
        ({"_id": "a", "pain": None, "order": 0}, "[0].variables: only in the first"),
        ({"_id": "a", "order": 0, "variables": [{"key": "reps"}]}, "[0].pain: only in the first"),
        ({"_id": "a", "pain": None, "order": 1, "variables": [{"key": "reps"}]}, "[0].order: 0 and 1"),
    ],
)
def test_arms_with_the_same_response_are_compared_with_all_fields(
    theirs: dict[str, object], difference: str | None
) -> None:
    ours = {"_id": "a", "pain": None, "order": 0, "variables": [{"key": "reps"}]}
    differences = compare({"ours": [ours], "theirs": [theirs]}, writes=False, exact={"theirs"})
    assert differences == ([] if difference is None else [f"ours and theirs: {difference}"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_target_is_of_an_arm(kind: str) -> None:
    assert KINDS[kind].targets.keys() <= {arm.label for arm in arms_of(kind)}


def test_a_week_has_two_arms_of_each_peer() -> None:
    arms = {(arm.label, arm.prefix) for arm in arms_of("week")}
    assert {("FastAPI", "/coach"), ("FastAPI: same response", "/presented"), ("service", "/coach")} < arms
    assert len(arms) == 9
