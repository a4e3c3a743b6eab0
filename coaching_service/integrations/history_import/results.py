"""Results of imports of tables: the same shape, whether they are done, cancelled or failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from coaching_service.integrations.history_files.models import LAST_CODES
from coaching_service.integrations.history_import.models import HistoryResult, ImportFormat

if TYPE_CHECKING:
    from coaching_service.integrations.background_jobs.models import JobError


def empty_result(form: ImportFormat | None, *, is_dry_run: bool, rows: int = 0) -> HistoryResult:
    """Return the result of an import that has done nothing yet; the format is None until the file has been read."""
    return {
        "dryRun": is_dry_run,
        "format": form,
        "rows": rows,
        "imported": 0,
        "reported": 0,
        "created": {"customers": 0, "sessions": 0, "sets": 0, "exercises": 0},
        "from": None,
        "to": None,
        "questions": [],
        "problems": [],
        "names": [],
    }


def table_result(result: Mapping[str, object] | None) -> HistoryResult | None:
    """Return the result of a job if it is of a table: training history, or clients; else None."""
    return cast("HistoryResult", result) if result is not None and "rows" in result else None


def list_problems(errors: Sequence[JobError], result: HistoryResult | None) -> list[JobError]:
    """Return the problems of a job, and a line for each kind that is only counted."""
    kinds = () if result is None else result.get("problems", ())
    listed = {(each.get("code"), each["field"]) for each in errors}
    counted: list[JobError] = [
        {
            "entry": f"line {kind['lines'][0]}",
            "line": kind["lines"][0],
            "field": kind["column"],
            "code": kind["code"],
            "message": f"{kind['count']:,} in this file",
        }
        for kind in kinds
        if kind["code"] in LAST_CODES and (kind["code"], kind["column"]) not in listed
    ]
    return [*errors, *counted]


def count_left(result: HistoryResult) -> int:
    """Return how many rows are neither imported nor reported yet."""
    return result["rows"] - result["imported"] - result["reported"]


def complete(result: HistoryResult) -> HistoryResult:
    """Return the result of an import that has reached its end.

    Rows that are left depend on open questions, which a dry run may have. Raises RuntimeError for a run with such rows.
    """
    left = count_left(result)
    if left and not result["dryRun"]:
        raise RuntimeError(f"{left} rows of an import are neither imported nor reported, or both")
    return {**result, "imported": result["imported"] + left}


def break_off(result: HistoryResult) -> HistoryResult:
    """Return the result of an import that has ended before: rows that are left are reported."""
    return {**result, "reported": result["reported"] + count_left(result)}
