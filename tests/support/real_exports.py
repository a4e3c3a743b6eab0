"""Exports of other services, as their documented headings say: sessions made by hand, and others up to 1,000 rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import openpyxl

from tests.support import export_rows as of
from tests.support.done_workouts import BY_HAND, TRUTH, Stored, Unit, Workout, generated_workouts
from tests.support.export_rows import Rows

ROWS = 1_000


def as_csv(rows: Sequence[Sequence[object]], delimiter: str = ",", quoting: Literal[0, 1] = csv.QUOTE_MINIMAL) -> bytes:
    """A CSV file of rows."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=quoting).writerows(rows)
    return out.getvalue().encode()


@dataclass
class Export:
    """A file of another service.

    Attributes:
        name: What test reports call it.
        file_name: The name of the file.
        format: What the service recognises.
        headings: Its columns.
        rows_of: Makes the rows of a session.
        has: What it has besides date, exercise, repetitions and load.
        answers: What a caller has to say about it.
        unit: The unit of its loads; with lb, distances are in miles.
        encode: Makes the file.
    """

    name: str
    format: str
    headings: Sequence[str]
    rows_of: Rows
    has: frozenset[str] = frozenset({"clock", "title", "kind", "rpe", "seconds", "meters"})
    answers: dict[str, str] = field(default_factory=dict)
    unit: Unit = "kg"
    encode: Callable[[Sequence[Sequence[object]]], bytes] = as_csv
    file_name: str = "export.csv"

    def build(self, size: int = ROWS) -> bytes:
        """The file: the sessions made by hand, then others up to so many rows."""
        return self.encode([self.headings, *self.rows(size)])

    def rows(self, size: int = ROWS) -> list[list[object]]:
        """The rows below the headings."""
        rows = [row for workout in BY_HAND for row in self.rows_of(workout)]
        for workout in generated_workouts():
            rows += self.rows_of(workout)
            if len(rows) >= size:
                return rows[:size]
        raise AssertionError

    def truth(self) -> list[tuple[object, ...]]:
        """The sets that the file has of those made by hand: date, start, exercise, kind, ... as TRUTH has them."""
        return [self._shown(each) for each in TRUTH if self._holds(each)]

    def _holds(self, each: Stored) -> bool:
        """Whether the file can have a set."""
        return each[4] is not None or {"seconds", "meters"} <= self.has

    def _shown(self, each: Stored) -> tuple[object, ...]:
        day, clock, exercise, kind, reps, kg, kg_of_lb, meters, meters_of_miles, seconds, rpe = each
        is_lb = self.unit == "lb"
        return (
            day,
            clock if "clock" in self.has else None,
            exercise,
            kind if "kind" in self.has else "normal",
            reps,
            kg_of_lb if is_lb else kg,
            meters_of_miles if is_lb else meters,
            seconds,
            rpe if "rpe" in self.has else None,
        )


def as_quoted(rows: Sequence[Sequence[object]]) -> bytes:
    """A CSV file with everything in quotes."""
    return as_csv(rows, quoting=csv.QUOTE_ALL)


def as_semicolons(rows: Sequence[Sequence[object]]) -> bytes:
    """A CSV file with a byte order mark, semicolons and decimal commas, as phones set to German write it."""
    text = [[str(cell).replace(".", ",") if isinstance(cell, float) else cell for cell in row] for row in rows]
    return b"\xef\xbb\xbf" + as_csv(text, ";")


def as_workbook(rows: Sequence[Sequence[object]]) -> bytes:
    """An XLSX file with a title above the headings and dates as numbers."""
    book, out = openpyxl.Workbook(), io.BytesIO()
    sheet = book.create_sheet("Log", 0)
    for number, row in enumerate([["Training log of Mara"], [], *rows], start=1):
        for column, value in enumerate(row, start=1):
            cell = sheet.cell(number, column)
            is_day = column == 1 and isinstance(value, str) and value[:2] == "20"
            cell.value = date.fromisoformat(str(value)) if is_day else None if value == "" else value
    book.save(out)
    return out.getvalue()


def own_csv(client_id: str, client_name: str) -> Export:
    """The service's own CSV of workouts, of a client."""

    def rows_of(workout: Workout) -> list[list[object]]:
        start = f"{workout.day}T{workout.start}"
        return [
            [client_id, client_name, row[0], start, "", *row[3:], "", "true"] for row in of.hevy("kg", "en")(workout)
        ]

    headings = ["client_id", "client_name", *of.hevy_headings("kg"), "rir", "is_completed"]
    return Export("own CSV", "workouts", headings, rows_of)


def as_sections(rows: Sequence[Sequence[object]]) -> bytes:
    """A file of JEFIT: sections, each with its own headings."""
    before = "### SETTING ####################\n\nrow_id,USERID,mass,length\n1,7,kg,cm\n\n#######################\n\n"
    return before.encode() + b"### EXERCISE LOGS ##############\n\n" + as_csv(rows) + b"\n#######################\n"


_BY_DAY = frozenset({"seconds", "meters"})
_TITLES = frozenset({"clock", "title"})


def _hevy(name: str, headings: Sequence[str], language: str, unit: Unit = "kg") -> Export:
    return Export(name, "hevy", headings, of.hevy(unit, language), encode=as_quoted, unit=unit)


def _strong(name: str, headings: Mapping[str, str], columns: Sequence[str], unit: Unit = "kg", **more: Any) -> Export:
    return Export(name, "strong", [headings[each] for each in columns], of.strong(columns, unit), unit=unit, **more)


# Exports whose sets differ from those made by hand: they have other titles, or times with an offset.
OTHER_EXPORTS: tuple[Export, ...] = (
    _strong("Strong in 2024", of.STRONG_2024, [*of.STRONG_2024], encode=lambda rows: as_csv(rows, ";")),
    Export("Fitbod", "fitbod", of.FITBOD, of.fitbod, has=frozenset({"kind", "seconds", "meters"})),
    Export("Liftosaur", "liftosaur", of.LIFTOSAUR, of.liftosaur, has=frozenset({"title", "kind", "rpe"})),
    Export("JEFIT", "jefit", of.JEFIT, of.jefit, has=frozenset(), encode=as_sections),
    Export("StrongLifts to 2019", "stronglifts", of.STRONGLIFTS_2015, of.stronglifts_2015, has=frozenset({"title"})),
)
EXPORTS: tuple[Export, ...] = (
    _hevy("Hevy in kg", of.hevy_headings("kg"), "en"),
    _hevy("Hevy in lb", of.hevy_headings("lb"), "us", "lb"),
    _hevy("Hevy in Spanish", of.hevy_headings("kg"), "es"),
    _hevy("Hevy in German", of.hevy_headings("kg"), "de"),
    _hevy("Hevy with Spanish headings", of.HEVY_IN["es"].split(", "), "es"),
    _hevy("Hevy with German headings", of.HEVY_IN["de"].split(", "), "de"),
    _hevy("Hevy with points", of.hevy_headings("kg"), "points"),
    _strong("Strong to 2023", of.STRONG_HEADINGS, of.STRONG_2023, answers={"loadUnit": "kg", "distanceUnit": "km"}),
    _strong("Strong", of.STRONG_HEADINGS, of.STRONG_LATER),
    _strong("Strong on Android in German", of.STRONG_IN_GERMAN, of.STRONG_ANDROID, encode=as_semicolons),
    _strong("Strong on Android in Spanish", of.STRONG_IN_SPANISH, of.STRONG_ANDROID, "lb", encode=as_semicolons),
    Export("FitNotes on Android", "fitnotes", of.FITNOTES, of.fitnotes, has=_BY_DAY),
    Export("FitNotes on iOS", "fitnotes", of.FITNOTES_ON_IOS, of.fitnotes_on_ios, has=_BY_DAY),
    Export("StrongLifts in kg", "stronglifts", of.stronglifts_headings("kg"), of.stronglifts("kg"), has=_TITLES),
    Export(
        "StrongLifts in lb", "stronglifts", of.stronglifts_headings("lb"), of.stronglifts("lb"), has=_TITLES, unit="lb"
    ),
    Export(
        "StrongLifts as text",
        "stronglifts",
        ["Date", "Workout Name", "Exercise", "Sets×Reps", "Weight (kg)", "Start Time (h:mm)"],
        of.stronglifts_as_text,
        has=_TITLES,
    ),
    Export("Gravl", "gravl", of.GRAVL, of.gravl),
    Export("TrainHeroic", "trainheroic", of.TRAINHEROIC, of.trainheroic, has=frozenset({"title"}), unit="lb"),
    Export("Sheet as CSV", "sets", of.SHEET, of.sheet_in_english_days, has=_BY_DAY),
    Export("Sheet as XLSX", "sets", of.SHEET, of.sheet, has=_BY_DAY, encode=as_workbook, file_name="export.xlsx"),
)
