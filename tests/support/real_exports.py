"""Exports of other services, as their documented headings say: sessions made by hand, and others up to 1,000 rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from random import Random
from typing import Literal

import openpyxl

ROWS = 1_000
KG_OF_LB = 0.45359237
METERS_OF_MILE = 1609.344
Unit = Literal["kg", "lb"]


@dataclass(frozen=True)
class Done:
    """A set that was done. `kg`, `lb`: the load as files in these units have it; negative: assistance."""

    exercise: str
    reps: int | None = None
    kg: float | None = None
    lb: float | None = None
    kind: Literal["normal", "warmup", "drop", "failure"] = "normal"
    rpe: float | None = None
    seconds: int | None = None
    km: float | None = None
    miles: float | None = None
    notes: str = ""
    superset: str = ""


@dataclass(frozen=True)
class Workout:
    """A session that was done."""

    day: str
    start: str
    end: str
    title: str
    notes: str
    minutes: int
    sets: tuple[Done, ...]

    @property
    def exercises(self) -> Iterator[tuple[str, list[Done]]]:
        """The exercises with their sets."""
        return ((name, list(sets)) for name, sets in groupby(self.sets, key=lambda each: each.exercise))


BENCH, SQUAT, DEADLIFT = "Bench Press (Barbell)", "Squat (Barbell)", "Deadlift (Barbell)"
# Made by hand: 35 sets with everything that a set can have, 30 of them with repetitions.
BY_HAND: tuple[Workout, ...] = (
    Workout(
        "2025-03-28",
        "17:29",
        "18:31",
        "Push 💪",
        "Felt strong",
        62,
        (
            Done(BENCH, 10, 20, 45, "warmup"),
            Done(BENCH, 8, 60, 135, rpe=7.5),
            Done(BENCH, 8, 62.5, 140, rpe=8),
            Done(BENCH, 5, 65, 145, "failure", rpe=10),
            Done(BENCH, 9, 50, 110, "drop"),
            Done("Incline Press (Dumbbell)", 10, 22.5, 50, superset="1"),
            Done("Incline Press (Dumbbell)", 9, 22.5, 50, superset="1"),
            Done("Lateral Raise (Dumbbell)", 15, 7.5, 15, superset="1"),
            Done("Lateral Raise (Dumbbell)", 14, 7.5, 15, superset="1"),
            Done("Push Up", 20),
            Done("Push Up", 18),
        ),
    ),
    Workout(
        "2025-03-31",
        "07:05",
        "07:53",
        "Lower A",
        "Slept badly, knee ok",
        48,
        (
            Done(SQUAT, 5, 60, 135, "warmup"),
            Done(SQUAT, 5, 100, 225, rpe=8),
            Done(SQUAT, 5, 100, 225, rpe=8.5),
            Done(SQUAT, 5, 102.5, 230, rpe=9),
            Done("Leg Press (Machine)", 10, 120, 265, notes="seat 4"),
            Done("Leg Press (Machine)", 10, 120, 265, notes="seat 4"),
            Done("Leg Press (Machine)", 10, 125, 275, notes="seat 4"),
            Done("Plank", seconds=45),
            Done("Plank", seconds=60),
        ),
    ),
    Workout(
        "2025-03-31",
        "18:30",
        "19:05",
        "Run",
        "",
        35,
        (
            Done("Running", km=5.2, miles=3.23, seconds=1710),
            Done("Rowing Machine", km=2, miles=1.24, seconds=480),
        ),
    ),
    Workout(
        "2025-06-05",
        "07:30",
        "08:20",
        "Pull",
        "",
        50,
        (
            Done("Pull Up (Assisted)", 8, -20, -45),
            Done("Pull Up (Assisted)", 6, -15, -35),
            Done(DEADLIFT, 5, 140, 315),
            Done(DEADLIFT, 3, 160, 355, rpe=9),
            Done(DEADLIFT, 1, 170, 375, rpe=9.5),
            Done("Hanging Leg Raise", 12),
            Done("Hanging Leg Raise", 10),
            Done("Farmers Walk", kg=32, lb=70, km=0.04, miles=0.025),
        ),
    ),
    Workout(
        "2025-12-08",
        "09:15",
        "10:00",
        "Full",
        "",
        45,
        (
            Done(SQUAT, 5, 105, 235),
            Done(SQUAT, 5, 105, 235),
            Done(SQUAT, 5, 105, 235),
            Done(SQUAT, 5, 105, 235),
            Done(SQUAT, 4, 105, 235),
        ),
    ),
)
# What the sets of BY_HAND are when they are stored, made by hand: (date, start, exercise, kind, repetitions, kg of a
# file in kg, kg of a file in lb, meters of a file in km, meters of a file in miles, seconds, RPE).
Stored = tuple[
    str, str, str, str, int | None, float | None, float | None, float | None, float | None, int | None, float | None
]
TRUTH: tuple[Stored, ...] = (
    ("2025-03-28", "17:29", BENCH, "warmup", 10, 20, 20.41, None, None, None, None),
    ("2025-03-28", "17:29", BENCH, "normal", 8, 60, 61.23, None, None, None, 7.5),
    ("2025-03-28", "17:29", BENCH, "normal", 8, 62.5, 63.5, None, None, None, 8),
    ("2025-03-28", "17:29", BENCH, "failure", 5, 65, 65.77, None, None, None, 10),
    ("2025-03-28", "17:29", BENCH, "drop", 9, 50, 49.9, None, None, None, None),
    ("2025-03-28", "17:29", "Incline Press (Dumbbell)", "normal", 10, 22.5, 22.68, None, None, None, None),
    ("2025-03-28", "17:29", "Incline Press (Dumbbell)", "normal", 9, 22.5, 22.68, None, None, None, None),
    ("2025-03-28", "17:29", "Lateral Raise (Dumbbell)", "normal", 15, 7.5, 6.8, None, None, None, None),
    ("2025-03-28", "17:29", "Lateral Raise (Dumbbell)", "normal", 14, 7.5, 6.8, None, None, None, None),
    ("2025-03-28", "17:29", "Push Up", "normal", 20, None, None, None, None, None, None),
    ("2025-03-28", "17:29", "Push Up", "normal", 18, None, None, None, None, None, None),
    ("2025-03-31", "07:05", SQUAT, "warmup", 5, 60, 61.23, None, None, None, None),
    ("2025-03-31", "07:05", SQUAT, "normal", 5, 100, 102.06, None, None, None, 8),
    ("2025-03-31", "07:05", SQUAT, "normal", 5, 100, 102.06, None, None, None, 8.5),
    ("2025-03-31", "07:05", SQUAT, "normal", 5, 102.5, 104.33, None, None, None, 9),
    ("2025-03-31", "07:05", "Leg Press (Machine)", "normal", 10, 120, 120.2, None, None, None, None),
    ("2025-03-31", "07:05", "Leg Press (Machine)", "normal", 10, 120, 120.2, None, None, None, None),
    ("2025-03-31", "07:05", "Leg Press (Machine)", "normal", 10, 125, 124.74, None, None, None, None),
    ("2025-03-31", "07:05", "Plank", "normal", None, None, None, None, None, 45, None),
    ("2025-03-31", "07:05", "Plank", "normal", None, None, None, None, None, 60, None),
    ("2025-03-31", "18:30", "Running", "normal", None, None, None, 5200, 5198.18, 1710, None),
    ("2025-03-31", "18:30", "Rowing Machine", "normal", None, None, None, 2000, 1995.59, 480, None),
    ("2025-06-05", "07:30", "Pull Up (Assisted)", "normal", 8, 20, 20.41, None, None, None, None),
    ("2025-06-05", "07:30", "Pull Up (Assisted)", "normal", 6, 15, 15.88, None, None, None, None),
    ("2025-06-05", "07:30", DEADLIFT, "normal", 5, 140, 142.88, None, None, None, None),
    ("2025-06-05", "07:30", DEADLIFT, "normal", 3, 160, 161.03, None, None, None, 9),
    ("2025-06-05", "07:30", DEADLIFT, "normal", 1, 170, 170.1, None, None, None, 9.5),
    ("2025-06-05", "07:30", "Hanging Leg Raise", "normal", 12, None, None, None, None, None, None),
    ("2025-06-05", "07:30", "Hanging Leg Raise", "normal", 10, None, None, None, None, None, None),
    ("2025-06-05", "07:30", "Farmers Walk", "normal", None, 32, 31.75, 40, 40.23, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 5, 105, 106.59, None, None, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 5, 105, 106.59, None, None, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 5, 105, 106.59, None, None, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 5, 105, 106.59, None, None, None, None),
    ("2025-12-08", "09:15", SQUAT, "normal", 4, 105, 106.59, None, None, None, None),
)


def generated_workouts() -> Iterator[Workout]:
    """Sessions before those made by hand, always the same, on days of their own."""
    random, day = Random(40), date(2025, 3, 20)
    names = (BENCH, SQUAT, DEADLIFT, "Bent Over Row (Barbell)", "Hammer Curl (Dumbbell)", "Triceps Pushdown (Cable)")
    while True:
        day -= timedelta(days=random.randint(1, 3))
        sets: list[Done] = []
        for name in random.sample(names, 4):
            kg = random.randint(8, 60) * 2.5
            sets += [Done(name, random.randint(3, 12), kg, round(kg / KG_OF_LB)) for _ in range(random.randint(2, 4))]
        yield Workout(day.isoformat(), "18:00", "19:00", f"Day {random.choice('ABC')}", "", 60, tuple(sets))


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
    rows_of: Callable[[Workout], list[list[object]]]
    has: frozenset[str] = frozenset({"clock", "title", "kind", "rpe", "seconds", "meters"})
    answers: dict[str, str] = field(default_factory=dict)
    unit: Unit = "kg"
    encode: Callable[[Sequence[Sequence[object]]], bytes] = as_csv
    file_name: str = "export.csv"

    def build(self) -> bytes:
        """The file: the sessions made by hand, then others up to 1,000 rows."""
        return self.encode([self.headings, *self.rows()])

    def rows(self) -> list[list[object]]:
        """The rows below the headings."""
        rows = [row for workout in BY_HAND for row in self.rows_of(workout)]
        for workout in generated_workouts():
            rows += self.rows_of(workout)
            if len(rows) >= ROWS:
                return rows[:ROWS]
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


def _or_empty(value: object) -> object:
    return "" if value is None else value


_MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "es": ["ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"],
    "de": ["Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.", "Dez."],
}
_HEVY_KINDS = {"drop": "dropset"}
_STRONG_KINDS = {"warmup": "W", "drop": "D", "failure": "F"}


def _hevy_time(day: str, clock: str, language: str) -> str:
    year, month, of_month = day.split("-")
    if language == "us":
        hour, minute = clock.split(":")
        half = "AM" if int(hour) < 12 else "PM"
        return f"{_MONTHS['en'][int(month) - 1]} {int(of_month)}, {year}, {(int(hour) + 11) % 12 + 1}:{minute} {half}"
    if language == "points":
        return f"{of_month}.{month}.{year}, {clock}"
    return f"{int(of_month)} {_MONTHS[language][int(month) - 1]} {year}, {clock}"


def _hevy_headings(unit: Unit) -> list[str]:
    weight, distance = ("weight_kg", "distance_km") if unit == "kg" else ("weight_lbs", "distance_miles")
    before = "title start_time end_time description exercise_title superset_id exercise_notes set_index set_type"
    return [*before.split(), weight, "reps", distance, "duration_seconds", "rpe"]


_HEVY_IN = {
    "es": "título, hora_de_inicio, hora_de_fin, descripción, título_del_ejercicio, id_de_superserie, "
    "notas_del_ejercicio, índice_de_la_serie, tipo_de_serie, peso_kg, repeticiones, distancia_km, duración_segundos, rpe",
    "de": "Titel, Startzeit, Endzeit, Beschreibung, Titel der Übung, Supersatz-ID, Übungsnotizen, Satzindex, Satztyp, "
    "Gewicht (kg), Wiederholungen, Distanz (km), Dauer (Sekunden), RPE",
}


def _hevy(unit: Unit, language: str) -> Callable[[Workout], list[list[object]]]:
    def rows_of(workout: Workout) -> list[list[object]]:
        start = _hevy_time(workout.day, workout.start, language)
        end = _hevy_time(workout.day, workout.end, language)
        return [
            [
                workout.title,
                start,
                end,
                workout.notes,
                name,
                each.superset,
                each.notes,
                index,
                _HEVY_KINDS.get(each.kind, each.kind),
                _or_empty(each.kg if unit == "kg" else each.lb),
                _or_empty(each.reps),
                _or_empty(each.km if unit == "kg" else each.miles),
                _or_empty(each.seconds),
                _or_empty(each.rpe),
            ]
            for name, sets in workout.exercises
            for index, each in enumerate(sets)
        ]

    return rows_of


def _strong(columns: Sequence[str], unit: Unit = "kg") -> Callable[[Workout], list[list[object]]]:
    """Rows with the columns that `columns` names; of each exercise a rest follows the first set."""

    def row_of(workout: Workout, name: str, order: object, each: Done | None) -> list[object]:
        is_rest = each is None
        each = each or Done(name)
        cells: dict[str, object] = {
            "date": f"{workout.day} {workout.start}:00",
            "title": workout.title,
            "duration": f"{workout.minutes // 60}h {workout.minutes % 60}m"
            if workout.minutes >= 60
            else f"{workout.minutes}m",
            "exercise": name,
            "order": order,
            "weight": float((each.kg if unit == "kg" else each.lb) or 0),
            "weight unit": unit if unit == "kg" else "lbs",
            "reps": float(each.reps or 0),
            "distance": float((each.km if unit == "kg" else each.miles) or 0),
            "distance unit": "km" if unit == "kg" else "mi",
            "seconds": 120.0 if is_rest else float(each.seconds or 0),
            "notes": each.notes,
            "workout notes": workout.notes,
            "rpe": _or_empty(each.rpe),
        }
        return [cells[column] for column in columns]

    def rows_of(workout: Workout) -> list[list[object]]:
        rows: list[list[object]] = []
        for name, sets in workout.exercises:
            for number, each in enumerate(sets, start=1):
                rows.append(row_of(workout, name, _STRONG_KINDS.get(each.kind, number), each))
                if number == 1:
                    rows.append(row_of(workout, name, "Rest Timer", None))
        return rows

    return rows_of


_STRONG_2023 = (
    "date",
    "title",
    "duration",
    "exercise",
    "order",
    "weight",
    "reps",
    "distance",
    "seconds",
    "notes",
    "workout notes",
    "rpe",
)
_STRONG_LATER = (
    "date", "title", "duration", "exercise", "order", "weight", "weight unit", "reps", "rpe", "distance",
    "distance unit", "seconds", "notes", "workout notes",
)  # fmt: skip
_STRONG_ANDROID = (
    "date",
    "title",
    "exercise",
    "order",
    "weight",
    "reps",
    "rpe",
    "distance",
    "distance unit",
    "seconds",
    "notes",
    "workout notes",
    "duration",
)


def _clock_of(seconds: int | None) -> str:
    return "" if seconds is None else f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _fitnotes(workout: Workout) -> list[list[object]]:
    return [
        [
            workout.day,
            each.exercise,
            "Chest",
            _or_empty(each.kg),
            "kgs" if each.kg is not None else "",
            _or_empty(each.reps),
            _or_empty(each.km),
            "km" if each.km is not None else "",
            _clock_of(each.seconds),
            each.notes,
        ]
        for each in workout.sets
    ]


def _fitnotes_on_ios(workout: Workout) -> list[list[object]]:
    return [
        [
            workout.day,
            each.exercise,
            "Chest",
            _or_empty(each.kg),
            "" if each.kg is None else round(each.kg / KG_OF_LB, 2),
            _or_empty(each.reps),
            _or_empty(each.km),
            "km" if each.km is not None else "",
            _clock_of(each.seconds),
            each.notes,
            "",
        ]
        for each in workout.sets
    ]


_STRONGLIFTS_SETS = 5


def _stronglifts(unit: Unit) -> Callable[[Workout], list[list[object]]]:
    def rows_of(workout: Workout) -> list[list[object]]:
        rows: list[list[object]] = []
        for name, sets in workout.exercises:
            counted = [each for each in sets if each.reps is not None]
            if counted:
                shared = [workout.day, 12, workout.title, name, f"{len(counted)}×{counted[0].reps}", workout.start]
                empty = ["", ""] * (_STRONGLIFTS_SETS - len(counted))
                loads = [each.kg if unit == "kg" else each.lb for each in counted]
                cells = [
                    cell for each, load in zip(counted, loads, strict=True) for cell in (each.reps, _or_empty(load))
                ]
                rows.append([*shared, *cells, *empty])
        return rows

    return rows_of


def _stronglifts_as_text(workout: Workout) -> list[list[object]]:
    """A row for each load of an exercise, with its repetitions as text."""
    rows: list[list[object]] = []
    for name, sets in workout.exercises:
        for kg, same in groupby((each for each in sets if each.reps is not None), key=lambda each: each.kg):
            reps = "/".join(str(each.reps) for each in same)
            rows.append([workout.day, workout.title, name, reps, _or_empty(kg), workout.start])
    return rows


def _gravl(workout: Workout) -> list[list[object]]:
    return [
        [
            workout.day,
            workout.start,
            workout.title,
            "app",
            workout.minutes,
            300,
            name,
            each.superset,
            number,
            each.kind,
            _or_empty(each.reps),
            _or_empty(each.kg),
            _or_empty(each.km),
            _or_empty(each.seconds),
            "",
            "",
            _or_empty(each.rpe),
            workout.notes,
        ]
        for name, sets in workout.exercises
        for number, each in enumerate(sets, start=1)
    ]


def _trainheroic(workout: Workout) -> list[list[object]]:
    """A row for each exercise; what was moved has another day first."""
    planned = (date.fromisoformat(workout.day) - timedelta(days=1)).isoformat()
    rows: list[list[object]] = []
    for name, sets in workout.exercises:
        counted = [each for each in sets if each.reps is not None]
        if counted:
            reps = ", ".join(str(each.reps) for each in counted)
            has_load = counted[0].lb is not None
            load = ", ".join(str(each.lb) for each in counted) + " pound" if has_load else "Bodyweight"
            data = f"{reps} rep x {load}"
            rows.append(
                [workout.title, planned, workout.day, workout.notes, "", "", "", "", name, data, counted[0].notes]
            )
    return rows


def _sheet(workout: Workout) -> list[list[object]]:
    """A row for several equal sets."""
    rows: list[list[object]] = []
    key = ("exercise", "reps", "kg", "km", "seconds")
    for (name, reps, kg, km, seconds), same in groupby(
        workout.sets, key=lambda each: tuple(getattr(each, name) for name in key)
    ):
        cells = [workout.day, name, len(list(same)), reps, kg, "" if km is None else f"{km} km", _clock_of(seconds)]
        rows.append([_or_empty(cell) for cell in cells])
    return rows


def _sheet_in_english_days(workout: Workout) -> list[list[object]]:
    year, month, day = workout.day.split("-")
    return [[f"{day}/{month}/{year}", *row[1:]] for row in _sheet(workout)]


def own_csv(client_id: str, client_name: str) -> Export:
    """The service's own CSV of workouts, of a client."""

    def rows_of(workout: Workout) -> list[list[object]]:
        start = f"{workout.day}T{workout.start}"
        return [[client_id, client_name, row[0], start, "", *row[3:], "", "true"] for row in _hevy("kg", "en")(workout)]

    headings = ["client_id", "client_name", *_hevy_headings("kg"), "rir", "is_completed"]
    return Export("own CSV", "workouts", headings, rows_of)


_BY_DAY = frozenset({"seconds", "meters"})
_STRONG_HEADINGS = {
    "date": "Date", "title": "Workout Name", "duration": "Duration", "exercise": "Exercise Name",
    "order": "Set Order", "weight": "Weight", "weight unit": "Weight Unit", "reps": "Reps", "distance": "Distance",
    "distance unit": "Distance Unit", "seconds": "Seconds", "notes": "Notes", "workout notes": "Workout Notes",
    "rpe": "RPE",
}  # fmt: skip
_STRONG_IN_GERMAN = {
    "date": "Datum", "title": "Workout-Name", "duration": "Dauer", "exercise": "Name der Übung",
    "order": "Satz-Reihenfolge", "weight": "Gewicht (kg)", "reps": "Wiederholungen", "distance": "Entfernung",
    "distance unit": "Distanzeinheit", "seconds": "Sekunden", "notes": "Notizen", "workout notes": "Workout-Notizen",
    "rpe": "RPE",
}  # fmt: skip
_STRONG_IN_SPANISH = {
    "date": "Fecha", "title": "Nombre del entrenamiento", "duration": "Duración", "exercise": "Nombre del ejercicio",
    "order": "Orden de la serie", "weight": "Peso (lbs)", "reps": "Repeticiones", "distance": "Distancia",
    "distance unit": "Unidad de distancia", "seconds": "Segundos", "notes": "Notas",
    "workout notes": "Notas del entrenamiento", "rpe": "RPE",
}  # fmt: skip
_FITNOTES = [
    "Date",
    "Exercise",
    "Category",
    "Weight",
    "Weight Unit",
    "Reps",
    "Distance",
    "Distance Unit",
    "Time",
    "Comment",
]
_FITNOTES_ON_IOS = [
    "Date", "Exercise", "Category", "Weight (kg)", "Weight (lbs)", "Reps", "Distance", "Distance Unit", "Time", "Notes",
    "Kind",
]  # fmt: skip
_GRAVL = [
    "Date", "Start Date", "Workout", "Source", "Workout Duration (min)", "Energy", "Exercise", "Superset", "Set",
    "Set Type", "Reps", "Weight (kg)", "Distance (km)", "Set Duration (sec)", "Incline", "Steps", "Effort",
    "Workout Notes",
]  # fmt: skip
_TRAINHEROIC = [
    "WorkoutTitle", "ScheduledDate", "RescheduledDate", "WorkoutNotes", "BlockValue", "BlockUnits",
    "BlockInstructions", "BlockNotes", "ExerciseTitle", "ExerciseData", "ExerciseNotes",
]  # fmt: skip
_SHEET = ["Date", "Exercise", "Sets", "Reps", "Weight (kg)", "Distance", "Time"]


def _stronglifts_headings(unit: Unit) -> list[str]:
    sets = [
        heading
        for number in range(1, _STRONGLIFTS_SETS + 1)
        for heading in (f"Set {number} (Reps)", f"Set {number} ({unit.upper()})")
    ]
    return ["Date", "Workout #", "Workout Name", "Exercise", "Sets×Reps", "Start Time (h:mm)", *sets]


EXPORTS: tuple[Export, ...] = (
    Export("Hevy in kg", "hevy", _hevy_headings("kg"), _hevy("kg", "en"), encode=as_quoted),
    Export("Hevy in lb", "hevy", _hevy_headings("lb"), _hevy("lb", "us"), encode=as_quoted, unit="lb"),
    Export("Hevy in Spanish", "hevy", _hevy_headings("kg"), _hevy("kg", "es"), encode=as_quoted),
    Export("Hevy in German", "hevy", _hevy_headings("kg"), _hevy("kg", "de"), encode=as_quoted),
    Export("Hevy with Spanish headings", "hevy", _HEVY_IN["es"].split(", "), _hevy("kg", "es"), encode=as_quoted),
    Export("Hevy with German headings", "hevy", _HEVY_IN["de"].split(", "), _hevy("kg", "de"), encode=as_quoted),
    Export("Hevy with points", "hevy", _hevy_headings("kg"), _hevy("kg", "points"), encode=as_quoted),
    Export(
        "Strong to 2023",
        "strong",
        [_STRONG_HEADINGS[each] for each in _STRONG_2023],
        _strong(_STRONG_2023),
        answers={"loadUnit": "kg", "distanceUnit": "km"},
    ),
    Export("Strong", "strong", [_STRONG_HEADINGS[each] for each in _STRONG_LATER], _strong(_STRONG_LATER)),
    Export(
        "Strong on Android in German",
        "strong",
        [_STRONG_IN_GERMAN[each] for each in _STRONG_ANDROID],
        _strong(_STRONG_ANDROID),
        encode=as_semicolons,
    ),
    Export(
        "Strong on Android in Spanish",
        "strong",
        [_STRONG_IN_SPANISH[each] for each in _STRONG_ANDROID],
        _strong(_STRONG_ANDROID, "lb"),
        encode=as_semicolons,
        unit="lb",
    ),
    Export("FitNotes on Android", "fitnotes", _FITNOTES, _fitnotes, has=_BY_DAY),
    Export("FitNotes on iOS", "fitnotes", _FITNOTES_ON_IOS, _fitnotes_on_ios, has=_BY_DAY),
    Export(
        "StrongLifts in kg",
        "stronglifts",
        _stronglifts_headings("kg"),
        _stronglifts("kg"),
        has=frozenset({"clock", "title"}),
    ),
    Export(
        "StrongLifts in lb",
        "stronglifts",
        _stronglifts_headings("lb"),
        _stronglifts("lb"),
        has=frozenset({"clock", "title"}),
        unit="lb",
    ),
    Export(
        "StrongLifts as text",
        "stronglifts",
        ["Date", "Workout Name", "Exercise", "Sets×Reps", "Weight (kg)", "Start Time (h:mm)"],
        _stronglifts_as_text,
        has=frozenset({"clock", "title"}),
    ),
    Export("Gravl", "gravl", _GRAVL, _gravl),
    Export("TrainHeroic", "trainheroic", _TRAINHEROIC, _trainheroic, has=frozenset({"title"}), unit="lb"),
    Export("Sheet as CSV", "sets", _SHEET, _sheet_in_english_days, has=_BY_DAY),
    Export("Sheet as XLSX", "sets", _SHEET, _sheet, has=_BY_DAY, encode=as_workbook, file_name="export.xlsx"),
)
