"""Reading the text of a program: a heading for each workout, `Day 1: Push`, with its items in the lines below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from coaching_service.core.database.context import Context
from coaching_service.core.text import split_lines
from coaching_service.training.programs.models import LAST_DAY
from coaching_service.training.workout_text.lines import Problem, Problems, error_in_line, require_name
from coaching_service.training.workout_text.mentions import read_texts
from coaching_service.training.workouts.blocks.models import NewBlock

EXAMPLE = "Day 1: Push"
_HEADING = re.compile(r"day\s+(\d{1,5})\b\s*[:.\-–]?\s*(.*)", re.IGNORECASE)
_REST = "rest"


@dataclass
class _Day:
    day: int
    name: str
    first_line: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The lines below the heading, with as many empty lines before them as the whole text has."""
        return "\n" * self.first_line + "\n".join(self.lines)

    @property
    def is_rest(self) -> bool:
        return self.name.casefold() == _REST and not any(line.strip() for line in self.lines)


async def read_program_text(ctx: Context, text: str, path: str) -> tuple[list[NewBlock], str]:
    """Return the workouts of a program that a text describes, and remarks on how it was read (see ReadTexts).

    A day named Rest without lines is a day of rest. `path` is the field of the request that has the text. Raises
    TextError for all lines that cannot be read, with what was expected.
    """
    days, problems = _split(text, path)
    read = await read_texts(ctx, [(path, day.text) for day in days], problems)
    blocks: list[NewBlock] = [
        {"name": day.name, "day": day.day, "isRest": day.is_rest, "items": day_items}
        for day, day_items in zip(days, read.items, strict=True)
    ]
    return blocks, read.remarks


def _split(text: str, path: str) -> tuple[Sequence[_Day], Sequence[Problem]]:
    """Return the days with their lines, and the headings that are wrong or missing."""
    days: list[_Day] = []
    problems = Problems()
    for number, line in enumerate(split_lines(text), 1):
        heading = _HEADING.fullmatch(line.strip())
        if heading is not None:
            day = int(heading[1])
            name = heading[2].strip() or f"Day {day}"
            with problems.collect():
                if not 1 <= day <= LAST_DAY:
                    raise error_in_line(path, number, f"expected a day from 1 to {LAST_DAY}")
                require_name(path, number, name)
            days.append(_Day(day, name, number))
        elif days:
            days[-1].lines.append(line)
        elif line.strip() and not problems.entries:
            with problems.collect():
                raise error_in_line(path, number, f"expected the heading of a day, such as {EXAMPLE}")
    return days, problems.entries
