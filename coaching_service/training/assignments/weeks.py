"""In which week of a program a client is."""

from __future__ import annotations

from datetime import date

from coaching_service.training.assignments.models import ClientProgram


class ProgramProgress(ClientProgram):
    """A program of a client with its week from 1, of how many; 0 before it begins."""

    week: int
    weeks: int


def describe_progress(program: ClientProgram, today: date) -> ProgramProgress:
    """Return a program of a client with the week in which it is."""
    week, weeks = find_week(program["startDate"], program["endDate"], str(today))
    return {**program, "week": week, "weeks": weeks}


def find_week(start: str, end: str, today: str) -> tuple[int, int]:
    """Return the week of a program on a date, from 1 (0: not begun), and the number of its weeks."""
    first, last, now = (date.fromisoformat(day) for day in (start, end, today))
    return max(0, (now - first).days // 7 + 1), (last - first).days // 7 + 1
