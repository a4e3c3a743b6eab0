"""Results of imports of tables: the same shape whenever they end, with figures of what is stored."""

from __future__ import annotations

import time
from typing import Any

import pytest

from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import _planning, importing
from coaching_service.integrations.history_import.importing import HistoryImport
from tests.integrations.test_strange_tables import damaged
from tests.support.client import CoachClient
from tests.support.imported_history import workouts
from tests.support.transfer import import_file, pick

HEADINGS = "Date,Exercise,Reps,Weight (kg)\n"
NOTHING: dict[str, Any] = {
    "dryRun": False,
    "format": None,
    "rows": 0,
    "imported": 0,
    "reported": 0,
    "created": {"customers": 0, "sessions": 0, "sets": 0, "exercises": 0},
    "from": None,
    "to": None,
    "questions": [],
    "problems": [],
    "names": [],
}


def days(count: int) -> bytes:
    """A table with a session of two sets on each day."""
    rows = [f"2025-01-{day:02},Squat,{reps},100\n" for day in range(1, count + 1) for reps in (5, 6)]
    return (HEADINGS + "".join(rows) + "2025-02-01,Squat,,\n").encode()


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_cancelled_import_counts_what_it_has_stored(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch, *, dry_run: bool
) -> None:
    ana = await coach.create_customer("Ana")
    monkeypatch.setattr(importing, "_BATCH_SESSIONS", 2)
    original = HistoryImport.run_batch

    async def cancel_third(self: Any) -> bool:
        if self._progress.work["record"] == 4:
            (await coach.post(f"/coach/jobs/{self._progress.job_id}/cancel")).ok()
        return await original(self)

    monkeypatch.setattr(HistoryImport, "run_batch", cancel_third)
    cancelled = await import_file(coach, days(20), name="sets.csv", dry_run=dry_run, customerId=ana["_id"])

    result = cancelled["result"]
    assert (cancelled["status"], result["created"]["sessions"], result["created"]["sets"]) == ("cancelled", 4, 8)
    assert (result["rows"], result["imported"], result["reported"]) == (41, 8, 33)
    assert len(await workouts(coach, ana)) == (0 if dry_run else 4)
    no_set, mark = cancelled["errors"]
    assert (no_set["line"], no_set["code"]) == (42, "NOT_A_SET")
    assert (mark["line"], mark["code"]) == (None, "CANCELLED")
    assert "32 rows" in mark["message"]


class Reading:
    """Counts how often the sessions of files are read, which takes longer than a step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, original = 0, _planning.read_content

        def read(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            return original(*arguments, **options)

        monkeypatch.setattr(_planning, "read_content", read)
        monkeypatch.setattr(importing, "_BATCH_SESSIONS", 1)
        monkeypatch.setattr(company_import, "time", self)

    def monotonic(self) -> float:
        """The time in seconds."""
        return time.monotonic() + self.count * 100


async def test_a_file_is_read_again_by_another_process_only(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, reading = await coach.create_customer("Ana"), Reading(monkeypatch)
    job = await import_file(coach, days(4), name="sets.csv", customerId=ana["_id"])
    assert (job["status"], job["result"]["created"]["sessions"], reading.count) == ("done", 4, 1)
    assert not company_import._open

    monkeypatch.setattr(company_import, "_KEPT_SECONDS", 0)  # the process that continues has nothing of the file
    job = await import_file(coach, days(8), name="sets.csv", customerId=ana["_id"])
    assert (job["status"], job["result"]["created"]["sessions"]) == ("done", 4)
    assert reading.count > 2


async def test_an_import_with_open_questions_has_imported_nothing(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    content = b"Date,Exercise,Reps,Weight\n2025-01-06,Strange lift,5,100\n2025-01-07,Strange lift,5,100\n"
    job = await import_file(coach, content, name="sets.csv", customerId=ana["_id"])
    result = job["result"]
    assert (job["status"], result["rows"], result["imported"], result["reported"]) == ("failed", 2, 0, 2)
    assert result["created"] == NOTHING["created"]
    assert pick(job["errors"], "line", "code") == [(None, "QUESTIONS_OPEN")]
    dry = (await import_file(coach, content, name="sets.csv", dry_run=True, customerId=ana["_id"]))["result"]
    assert (dry["rows"], dry["imported"], dry["reported"], dry["created"]["exercises"]) == (2, 2, 0, 1)


@pytest.mark.parametrize("content", [b"", b"Datum,Puls\n2025-01-06,60\n", damaged("sheet cut short")])
async def test_the_result_of_a_table_that_cannot_be_read(coach: CoachClient, content: bytes) -> None:
    job = await import_file(coach, content or HEADINGS.encode(), name="sets.csv")
    assert (job["status"], job["result"]) == ("failed", NOTHING)
    [error] = job["errors"]
    assert (error["line"], error["code"]) == (None, "INVALID_FILE")


async def test_a_table_of_clients_with_unknown_columns_and_many_problems(coach: CoachClient) -> None:
    content = b"Name,Shoe size\n" + b",44\n" * 1_200 + b"Ana,44\n"
    job = await import_file(coach, content, name="clients.csv")
    unknown, *rows, mark = job["errors"]
    assert (unknown["line"], unknown["code"]) == (1, "UNKNOWN_COLUMN")
    assert len(rows) == 999
    assert (mark["line"], mark["code"]) == (None, "MORE_PROBLEMS")
    assert "201 more" in mark["message"]
    assert (job["result"]["rows"], job["result"]["imported"], job["result"]["reported"]) == (1_201, 1, 1_200)


async def test_more_problems_of_history_than_are_listed(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    content = (HEADINGS + "2025-01-06,Squat,x,100\n" * 1_000 + "2025-01-06,Squat,,\n" * 500).encode()
    job: dict[str, Any] = await import_file(coach, content, name="sets.csv", customerId=ana["_id"])
    assert len(job["errors"]) == 1_001
    assert [each["code"] for each in job["errors"][-2:]] == ["VALUE_LEFT_OUT", "MORE_PROBLEMS"]
    assert "500 more" in job["errors"][-1]["message"]
