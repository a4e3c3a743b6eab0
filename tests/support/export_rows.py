"""The rows in which other services export a session, and the headings above them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import groupby

from tests.support.done_workouts import KG_OF_LB, Done, Unit, Workout

Rows = Callable[[Workout], list[list[object]]]
Cell = Callable[[Workout, Done, int], object]  # of a set, and its number within its exercise


def _or_empty(value: object) -> object:
    return "" if value is None else value


def _clock_of(seconds: int | None) -> str:
    return "" if seconds is None else f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _field(name: str) -> Cell:
    return lambda _, done, __: getattr(done, name)


def _constant(value: object) -> Cell:
    return lambda *_: value


_FIELDS = ("exercise", "superset", "notes", "kind", "reps", "kg", "lb", "km", "miles", "seconds", "rpe")
CELLS: dict[object, Cell] = {
    **{name: _field(name) for name in _FIELDS},
    "day": lambda workout, *_: workout.day,
    "start": lambda workout, *_: workout.start,
    "title": lambda workout, *_: workout.title,
    "minutes": lambda workout, *_: workout.minutes,
    "workout notes": lambda workout, *_: workout.notes,
    "number": lambda _, __, number: number,
    "kg unit": lambda _, done, __: "" if done.kg is None else "kgs",
    "lb of kg": lambda _, done, __: "" if done.kg is None else round(done.kg / KG_OF_LB, 2),
    "km unit": lambda _, done, __: "" if done.km is None else "km",
    "clock": lambda _, done, __: _clock_of(done.seconds),
}


def _row_for_each_set(*columns: object) -> Rows:
    """Rows of sets with these columns: names in CELLS, functions like those in it, and what all rows have."""
    cells: list[Cell] = [each if callable(each) else CELLS.get(each, _constant(each)) for each in columns]

    def rows_of(workout: Workout) -> list[list[object]]:
        return [
            [_or_empty(cell(workout, each, number)) for cell in cells]
            for _, sets in workout.exercises
            for number, each in enumerate(sets, start=1)
        ]

    return rows_of


# --- Hevy ------------------------------------------------------------------------------------------------------------

_MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "es": ["ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"],
    "de": ["Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.", "Dez."],
}
_HEVY_KINDS = {"drop": "dropset"}


def _hevy_time(day: str, clock: str, language: str) -> str:
    year, month, of_month = day.split("-")
    if language == "us":
        hour, minute = clock.split(":")
        half = "AM" if int(hour) < 12 else "PM"
        return f"{_MONTHS['en'][int(month) - 1]} {int(of_month)}, {year}, {(int(hour) + 11) % 12 + 1}:{minute} {half}"
    if language == "points":
        return f"{of_month}.{month}.{year}, {clock}"
    return f"{int(of_month)} {_MONTHS[language][int(month) - 1]} {year}, {clock}"


def hevy_headings(unit: Unit) -> list[str]:
    weight, distance = ("weight_kg", "distance_km") if unit == "kg" else ("weight_lbs", "distance_miles")
    before = "title start_time end_time description exercise_title superset_id exercise_notes set_index set_type"
    return [*before.split(), weight, "reps", distance, "duration_seconds", "rpe"]


HEVY_IN = {
    "es": "título, hora_de_inicio, hora_de_fin, descripción, título_del_ejercicio, id_de_superserie, "
    "notas_del_ejercicio, índice_de_la_serie, tipo_de_serie, peso_kg, repeticiones, distancia_km, duración_segundos, rpe",
    "de": "Titel, Startzeit, Endzeit, Beschreibung, Titel der Übung, Supersatz-ID, Übungsnotizen, Satzindex, Satztyp, "
    "Gewicht (kg), Wiederholungen, Distanz (km), Dauer (Sekunden), RPE",
}


def hevy(unit: Unit, language: str) -> Rows:
    """Rows of Hevy, with times as in a language."""
    load, distance = ("kg", "km") if unit == "kg" else ("lb", "miles")

    def start(workout: Workout, *_: object) -> str:
        return _hevy_time(workout.day, workout.start, language)

    def end(workout: Workout, *_: object) -> str:
        return _hevy_time(workout.day, workout.end, language)

    def index(_: Workout, __: Done, number: int) -> int:
        return number - 1

    def kind(_: Workout, done: Done, __: int) -> str:
        return _HEVY_KINDS.get(done.kind, done.kind)

    before = ("title", start, end, "workout notes", "exercise", "superset", "notes", index, kind)
    return _row_for_each_set(*before, load, "reps", distance, "seconds", "rpe")


# --- Strong ----------------------------------------------------------------------------------------------------------

_STRONG_KINDS = {"warmup": "W", "drop": "D", "failure": "F"}


def strong(columns: Sequence[str], unit: Unit = "kg") -> Rows:
    """Rows with the columns that `columns` names; of each exercise a rest follows the first set."""

    def row_of(workout: Workout, name: str, order: object, each: Done | None) -> list[object]:
        is_rest, (hours, minutes) = each is None, divmod(workout.minutes, 60)
        each = each or Done(name)
        cells: dict[str, object] = {
            "date": f"{workout.day} {workout.start}:00",
            "title": workout.title,
            "duration": f"{hours}h {minutes}m" if hours else f"{minutes}m",
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
            "number": 12,
            "duration in seconds": workout.minutes * 60,
            "meters": float(round((each.km or 0) * 1000, 1)),
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


STRONG_2023 = [
    "date", "title", "duration", "exercise", "order", "weight", "reps", "distance", "seconds", "notes",
    "workout notes", "rpe",
]  # fmt: skip
STRONG_LATER = [
    "date", "title", "duration", "exercise", "order", "weight", "weight unit", "reps", "rpe", "distance",
    "distance unit", "seconds", "notes", "workout notes",
]  # fmt: skip
STRONG_ANDROID = [
    "date", "title", "exercise", "order", "weight", "reps", "rpe", "distance", "distance unit", "seconds", "notes",
    "workout notes", "duration",
]  # fmt: skip
STRONG_HEADINGS = {
    "date": "Date", "title": "Workout Name", "duration": "Duration", "exercise": "Exercise Name",
    "order": "Set Order", "weight": "Weight", "weight unit": "Weight Unit", "reps": "Reps", "distance": "Distance",
    "distance unit": "Distance Unit", "seconds": "Seconds", "notes": "Notes", "workout notes": "Workout Notes",
    "rpe": "RPE",
}  # fmt: skip
STRONG_2024 = {
    "number": "Workout #", "date": "Date", "title": "Workout Name", "duration in seconds": "Duration (sec)",
    "exercise": "Exercise Name", "order": "Set Order", "weight": "Weight (kg)", "reps": "Reps", "rpe": "RPE",
    "meters": "Distance (meters)", "seconds": "Seconds", "notes": "Notes", "workout notes": "Workout Notes",
}  # fmt: skip
STRONG_IN_GERMAN = {
    "date": "Datum", "title": "Workout-Name", "duration": "Dauer", "exercise": "Name der Übung",
    "order": "Satz-Reihenfolge", "weight": "Gewicht (kg)", "reps": "Wiederholungen", "distance": "Entfernung",
    "distance unit": "Distanzeinheit", "seconds": "Sekunden", "notes": "Notizen", "workout notes": "Workout-Notizen",
    "rpe": "RPE",
}  # fmt: skip
STRONG_IN_SPANISH = {
    "date": "Fecha", "title": "Nombre del entrenamiento", "duration": "Duración", "exercise": "Nombre del ejercicio",
    "order": "Orden de la serie", "weight": "Peso (lbs)", "reps": "Repeticiones", "distance": "Distancia",
    "distance unit": "Unidad de distancia", "seconds": "Segundos", "notes": "Notas",
    "workout notes": "Notas del entrenamiento", "rpe": "RPE",
}  # fmt: skip


# --- others ----------------------------------------------------------------------------------------------------------

FITNOTES = [
    "Date", "Exercise", "Category", "Weight", "Weight Unit", "Reps", "Distance", "Distance Unit", "Time", "Comment",
]  # fmt: skip
_EXERCISE = ("day", "exercise", "Chest", "kg")
_DONE = ("reps", "km", "km unit", "clock", "notes")
fitnotes = _row_for_each_set(*_EXERCISE, "kg unit", *_DONE)
FITNOTES_ON_IOS = [
    "Date", "Exercise", "Category", "Weight (kg)", "Weight (lbs)", "Reps", "Distance", "Distance Unit", "Time",
    "Notes", "Kind",
]  # fmt: skip
fitnotes_on_ios = _row_for_each_set(*_EXERCISE, "lb of kg", *_DONE, "")
GRAVL = [
    "Date", "Start Date", "Workout", "Source", "Workout Duration (min)", "Energy", "Exercise", "Superset", "Set",
    "Set Type", "Reps", "Weight (kg)", "Distance (km)", "Set Duration (sec)", "Incline", "Steps", "Effort",
    "Workout Notes",
]  # fmt: skip
gravl = _row_for_each_set(
    *("day", "start", "title", "app", "minutes", 300, "exercise", "superset", "number", "kind"),
    *("reps", "kg", "km", "seconds", "", "", "rpe", "workout notes"),
)

FITBOD = [
    "Date", "Exercise", "Reps", "Weight(kg)", "Duration(s)", "Distance(m)", "Incline", "Resistance", "isWarmup",
    "Note", "multiplier",
]  # fmt: skip
LIFTOSAUR = [
    "Workout DateTime", "Program", "Day Name", "Exercise", "Is Warmup Set?", "Required Reps", "Completed Reps",
    "Is AMRAP?", "Required RPE", "Completed RPE", "Log RPE?", "Required Weight Value", "Required Weight Unit",
    "Completed Weight Value", "Completed Weight Unit", "Ask Weight?", "Completed Reps Time", "Target Muscles",
    "Synergist Muscles", "Notes",
]  # fmt: skip
JEFIT = [
    "USERID", "TIMESTAMP", "belongSys", "logs", "_id", "record", "mydate", "eid", "ename", "day_item_id",
    "belongsession", "logTime", "interval_logs", "auto_generated",
]  # fmt: skip


def _instant(workout: Workout, *_: object) -> str:
    return f"{workout.day} {workout.start}:00 +0000"


fitbod = _row_for_each_set(
    *(_instant, "exercise", lambda _, done, __: done.reps or 0, lambda _, done, __: float(done.kg or 0)),
    *(lambda _, done, __: float(done.seconds or 0), lambda _, done, __: round((done.km or 0) * 1000, 1)),
    *(0.0, 0.0, lambda _, done, __: str(done.kind == "warmup").lower(), "notes", 1.0),
)
liftosaur = _row_for_each_set(
    *(lambda workout, *_: f"{workout.day}T{workout.start}:00.000Z", "5/3/1", "title", "exercise"),
    *(lambda _, done, __: int(done.kind == "warmup"), 17, "reps", 0, 6.5, "rpe", 0, 321, "kg", "kg"),
    *(lambda _, done, __: "" if done.kg is None else "kg", 0, "", "Chest", "Triceps", "notes"),
)


def jefit(workout: Workout) -> list[list[object]]:
    """A row for each exercise with repetitions, below the headings of one section of the file."""
    rows: list[list[object]] = []
    for name, sets in workout.exercises:
        if counted := [each for each in sets if each.reps is not None]:
            logs = ",".join(f"{each.kg or 0:g}x{each.reps}" for each in counted)
            rows.append([7, f"{workout.day} 00:00:00", 1, logs, 1, 80, workout.day, 21, name, 1, 1000, 1, "", ""])
    return rows


_BLOCKS = 8
STRONGLIFTS_2015 = [
    *("Date", "Note", "Workout", "Body Weight"),
    *(
        heading
        for number in range(1, _BLOCKS + 1)
        for heading in (f"Exercise {number}", "Weight (KG)", "Weight (LB)", *(f"Set {each}" for each in range(1, 6)))
    ),
]


def stronglifts_2015(workout: Workout) -> list[list[object]]:
    """A row for a session; the sets of an exercise have one load."""
    cells: list[object] = []
    for name, sets in workout.exercises:
        counted = [each for each in sets if each.reps is not None]
        for kg, same in groupby(counted, key=lambda each: each.kg):
            reps: list[object] = [each.reps for each in same]
            load = ("", "") if kg is None else (kg, round(kg / KG_OF_LB, 2))
            cells += [name, *load, *reps, *[""] * (5 - len(reps))]
    cells = cells[: _BLOCKS * 8]
    return [[workout.day, workout.notes, workout.title, "", *cells, *[""] * (_BLOCKS * 8 - len(cells))]]


_STRONGLIFTS_SETS = 5


def stronglifts(unit: Unit) -> Rows:
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


def stronglifts_as_text(workout: Workout) -> list[list[object]]:
    """A row for each load of an exercise, with its repetitions as text."""
    rows: list[list[object]] = []
    for name, sets in workout.exercises:
        for kg, same in groupby((each for each in sets if each.reps is not None), key=lambda each: each.kg):
            reps = "/".join(str(each.reps) for each in same)
            rows.append([workout.day, workout.title, name, reps, _or_empty(kg), workout.start])
    return rows


def stronglifts_headings(unit: Unit) -> list[str]:
    sets = [
        heading
        for number in range(1, _STRONGLIFTS_SETS + 1)
        for heading in (f"Set {number} (Reps)", f"Set {number} ({unit.upper()})")
    ]
    return ["Date", "Workout #", "Workout Name", "Exercise", "Sets×Reps", "Start Time (h:mm)", *sets]


TRAINHEROIC = [
    "WorkoutTitle", "ScheduledDate", "RescheduledDate", "WorkoutNotes", "BlockValue", "BlockUnits",
    "BlockInstructions", "BlockNotes", "ExerciseTitle", "ExerciseData", "ExerciseNotes",
]  # fmt: skip
SHEET = ["Date", "Exercise", "Sets", "Reps", "Weight (kg)", "Distance", "Time"]


def trainheroic(workout: Workout) -> list[list[object]]:
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


def sheet(workout: Workout) -> list[list[object]]:
    """A row for several equal sets."""
    rows: list[list[object]] = []
    key = ("exercise", "reps", "kg", "km", "seconds")
    for (name, reps, kg, km, seconds), same in groupby(
        workout.sets, key=lambda each: tuple(getattr(each, name) for name in key)
    ):
        cells = [workout.day, name, len(list(same)), reps, kg, "" if km is None else f"{km} km", _clock_of(seconds)]
        rows.append([_or_empty(cell) for cell in cells])
    return rows


def sheet_in_english_days(workout: Workout) -> list[list[object]]:
    year, month, day = workout.day.split("-")
    return [[f"{day}/{month}/{year}", *row[1:]] for row in sheet(workout)]
