"""Weeks and days of programs in sheets: numbers, `Day 1`, weekdays and names become days of the program, from 1."""

from __future__ import annotations

import re

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files.values import is_made_date

_WEEKDAYS = (
    ("monday", "mon", "lunes", "lun"),
    ("tuesday", "tue", "tues", "martes", "mar"),
    ("wednesday", "wed", "miercoles", "mie"),
    ("thursday", "thu", "thur", "thurs", "jueves", "jue"),
    ("friday", "fri", "viernes", "vie"),
    ("saturday", "sat", "sabado", "sab"),
    ("sunday", "sun", "domingo", "dom"),
)
_WEEKDAY_OF = {name: number for number, names in enumerate(_WEEKDAYS, start=1) for name in names}
_REST = {"rest", "rest day", "off", "day off", "descanso", "dia de descanso", "dia libre", "ruhetag", "repos", "riposo"}
_WEEK = re.compile(r".*\b(?:week|wk|semana|sem|woche|semaine|settimana|w|s)\s*\.?\s*(\d{1,3})\b.*")
_DAY = re.compile(
    r"(?:day|dia|tag|jour|giorno|session|sesion|workout|d)?\s*(\d+)\s*(?:[-:.–—,)]\s*(.*))?", re.IGNORECASE
)
# Rows with nothing else say so which week and day the rows below are of; a sheet has `Week 1` above `Sets` and `Reps`.
_WEEK_LABEL = re.compile(
    r"(?:week|wk|semana|sem|woche|semaine|settimana|w)\s*\.?\s*(\d{1,3})\b\s*[-:.–—,(]?\s*(.*?)\)?"
)
_DAY_LABEL = re.compile(
    r"(?:day|dia|tag|jour|giorno|session|sesion|workout|training|entrenamiento)\s*(?:\d{1,3}|[a-h])\b.*"
)
_WORD = re.compile(r"([^\W\d]+)\.?\s*(?:[-:–—,(]\s*(.*?)\)?)?")
DAYS_OF_WEEK = 7
LAST_DAY = 3_660
_DIGITS = 6
REST_DAY = "Rest day"


def is_rest(text: str) -> bool:
    """Return whether a cell says that there is no training."""
    return normalize(text) in _REST


def is_possible(text: str) -> bool:
    """Return whether a text is not the number of a day behind the last one that a program can have."""
    found = _DAY.fullmatch(normalize(text.strip()))
    return found is None or is_made_date(text) or (len(found[1]) <= _DIGITS and int(found[1]) <= LAST_DAY)


def week_in(text: str) -> int | None:
    """Return the number of the week that a text names; None if it names none."""
    found = _WEEK.fullmatch(normalize(text))
    return int(found[1]) if found is not None and 1 <= int(found[1]) <= LAST_DAY // DAYS_OF_WEEK else None


def without_number(text: str) -> str:
    """Return the name behind the number of a day: `Push` of `Day 1 - Push`."""
    return re.sub(r"^\D*\d+\s*[-:.–—,)]?\s*", "", text)


def label_in(text: str) -> tuple[int | None, str] | None:
    """Return the week and the day of a text that names nothing else, such as `Week 1 - Day 2: Upper`.

    The week is None, or the day empty, if the text does not say it.
    """
    plain = " ".join(text.split())
    week = _WEEK_LABEL.fullmatch(normalize(plain))
    day = plain if week is None else plain[len(plain) - len(week[2]) :] if week[2] else ""
    word = _WORD.fullmatch(day)
    is_day = _DAY_LABEL.fullmatch(normalize(day)) or (word is not None and normalize(word[1]) in _WEEKDAY_OF)
    if week is None:
        return (None, day) if is_day else None
    number = week_in(f"week {week[1]}")
    return None if number is None else (number, day if is_day else "")


class UnknownDay(Exception):
    """A text names a day behind the last one that a program can have."""


class DayNumbers:
    """The days of a program by what sheets call them.

    Numbers and weekdays are days of their week. Names are, in the order in which they appear, the next days of it; the
    same name in a week is the same day. A number above 7 counts from the first day of the program.
    """

    def __init__(self) -> None:
        self._week, self._begun = 1, False
        self._last: dict[int, int] = {}  # by week
        self._named: dict[tuple[int, str], int] = {}
        self.changes_week = False

    def begin_week(self, week: int) -> None:
        """Continue with a week."""
        self.changes_week = self._begun and week != self._week
        self._week, self._begun = week, True

    def read(self, text: str) -> tuple[int, str]:
        """Return the day that a text means, and its name if the text has one; empty: the next day.

        Raises UnknownDay.
        """
        number, name = self._within_week(text)
        if number is None:
            number, name = self._next(text), "" if is_rest(text) else text
        elif number > DAYS_OF_WEEK:
            return number, name
        self._last[self._week] = max(self._last.get(self._week, 0), number)
        return min((self._week - 1) * DAYS_OF_WEEK + number, LAST_DAY), name

    def _within_week(self, text: str) -> tuple[int | None, str]:
        plain = text.strip()
        if is_made_date(plain):
            return None, ""
        if (found := _DAY.fullmatch(normalize(plain))) is not None and found[1].strip("0"):
            if not is_possible(plain):
                raise UnknownDay
            title = without_number(plain)
            return int(found[1]), title or (f"Day {int(plain)}" if plain.isdigit() else plain)
        word = _WORD.fullmatch(plain)
        if word is not None and (weekday := _WEEKDAY_OF.get(normalize(word[1]))) is not None:
            return weekday, word[2] or plain
        return None, ""

    def _next(self, text: str) -> int:
        key = (self._week, normalize(text))
        following = self._last.get(self._week, 0) + 1
        return following if is_rest(text) or not key[1] else self._named.setdefault(key, following)
