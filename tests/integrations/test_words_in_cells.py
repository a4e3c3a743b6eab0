"""Words in the cells of tables of sets: kinds, flags, failed attempts, totals, dates and units in several languages."""

from __future__ import annotations

import pytest

from coaching_service.integrations.history_files.set_rows import SetRow
from tests.integrations.test_silent_misreadings import codes, found_in
from tests.support.workbooks import Row, workbook

HEVY = (
    "title,start_time,end_time,exercise_title,superset_id,exercise_notes,set_index,set_type,weight_kg,reps,"
    "distance_km,duration_seconds,rpe\n"
)
STRONG_GERMAN = (
    "Workout-Nr.;Datum;Workout-Name;Dauer (Sek.);Name der Übung;Satz-Reihenfolge;Gewicht (kg);Wiederholungen;RPE;"
    "Entfernung (Meter);Sekunden;Notizen;Workout-Notizen\n"
)


def amounts(sets: list[SetRow]) -> list[tuple[int | None, float | None, bool]]:
    """The repetitions and load of sets, and whether they are completed."""
    return [(each.reps, each.load, each.is_completed) for each in sets]


def test_an_impossible_date_does_not_decide_the_order_of_the_others() -> None:
    rows = "03/04/2025,Squat,5,100\n{},Squat,5,100\n04/31/2025,Squat,5,100\n"
    for decisive, day in (("13/04/2025", "2025-04-03"), ("04/13/2025", "2025-03-04")):
        found, sets = found_in(f"Date,Exercise,Reps,Weight (kg)\n{rows.format(decisive)}")
        assert (codes(found), str(sets[0].day), len(sets)) == ([], day, 2)
        assert [(each["line"], each["code"]) for each in found.problems] == [(4, "INVALID_DATE")]
    contradiction = rows.format("13/04/2025\n04/13/2025".replace("\n", ",Squat,5,100\n"))
    assert codes(found_in(f"Date,Exercise,Reps,Weight (kg)\n{contradiction}")[0]) == ["DATE_ORDER"]


@pytest.mark.parametrize("text", ["May 14th, 2025", "Wed, May 14th, 2025", "may 14th 2025", "14th of May 2025"])
def test_a_date_in_words(text: str) -> None:
    _, sets = found_in(f'Date,Exercise,Reps\n"{text}",Squat,5\n')
    assert [str(each.day) for each in sets] == ["2025-05-14"]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("regular", "normal"),
        ("échauffement", "warmup"),
        ("Riscaldamento", "warmup"),
        ("Aquecimento", "warmup"),
        ("warm-up set", "warmup"),
        ("Calentamiento", "warmup"),
        ("dégressive", "drop"),
        ("échec", "failure"),
        ("falha", "failure"),
    ],
)
def test_kinds_of_sets_in_other_languages(word: str, kind: str) -> None:
    found, sets = found_in(f'{HEVY}A,"28 Mar 2025, 17:29",,Squat,,,0,{word},60,8,,,\n')
    assert ([each.kind for each in sets], found.problems) == ([kind], [])


def test_a_row_whose_order_is_a_word_is_a_rest_or_is_reported() -> None:
    start = "1;2025-05-13 18:00:00;Push;3600;Bankdrücken (Langhantel)"
    found, sets = found_in(
        f"{STRONG_GERMAN}{start};1;60,0;8;;;;;\n{start};Pause;;;;;90;;\n{start};Satz 2;62,5;8;;;;;\n"
        f"{start};Aufwärmen;40,0;8;;;;;\n{start};Zwischenspiel;;;;;60;;\n"
    )
    assert [(each.reps, each.load, each.seconds, each.kind, each.minutes) for each in sets] == [
        (8, 60, None, "normal", 60),
        (8, 62.5, None, "normal", 60),
        (8, 40, None, "warmup", 60),
        (None, None, 60, "normal", 60),
    ]
    assert [(each["line"], each["code"], each["field"]) for each in found.problems] == [(6, "VALUE_LEFT_OUT", "set")]
    kinds = [(each["code"], each["column"], each["count"]) for each in found.kinds]
    assert kinds == [("VALUE_LEFT_OUT", "set", 1), ("NOT_A_SET", None, 1)]


def test_flags_are_signs_and_words_and_others_are_reported() -> None:
    flags = {"✓": True, "Yes": True, "done": True, "": True, "No": False, "N": False, "✗": False, "nein": False}
    rows = "".join(f"2025-05-13,Squat,5,100,{flag}\n" for flag in (*flags, "skipped", "later"))
    found, sets = found_in(f"Date,Exercise,Reps,Weight (kg),Completed\n{rows}")
    assert [each.is_completed for each in sets] == [*flags.values(), False, True]
    assert [(each["line"], each["field"]) for each in found.problems] == [(11, "isCompleted")]
    found, sets = found_in("Date,Exercise,Reps,Warm-up?\n2025-05-13,Squat,5,✓\n2025-05-13,Squat,5,✗\n")
    assert ([each.kind for each in sets], found.problems) == (["warmup", "normal"], [])


@pytest.mark.parametrize("word", ["fail", "Failed", "Miss", "no lift", "0"])
def test_a_failed_attempt_in_words_is_not_completed(word: str) -> None:
    found, sets = found_in(f"Date,Exercise,Reps,Weight (kg)\n2025-05-13,Snatch,1,80\n2025-05-13,Snatch,{word},85\n")
    assert amounts(sets) == [(1, 80, True), (0, 85, False)]
    assert found.problems == []


def test_a_failure_with_a_time_is_a_set() -> None:
    _, sets = found_in("Date,Exercise,Reps,Weight (kg),Time\n2025-05-13,Plank,fail,10,0:45\n2025-05-13,Squat,5,60,\n")
    assert [(each.reps, each.seconds, each.is_completed) for each in sets] == [(None, 45, True), (5, None, True)]


@pytest.mark.parametrize(
    ("cell", "reps"),
    [
        *[("12 reps", 12), ("10 each", 10), ("10/side", 10), ("8 per leg", 8), ("8+", 8), ("8 Wdh.", 8), ("6 e/s", 6)],
        *[("50 ft", None), ("20 cal", None), ("3 laps", None), ("40 steps", None)],
    ],
)
def test_a_number_of_something_else_is_no_number_of_repetitions(cell: str, reps: int | None) -> None:
    found, sets = found_in(f"Date,Exercise,Reps,Weight (kg)\n2025-05-13,Sled,{cell},100\n")
    assert amounts(sets) == [(reps, 100, True)]
    assert [each["field"] for each in found.problems] == ([] if reps else ["reps"])


@pytest.mark.parametrize("word", ["Total", "TOTAL:", "Totals", "Summe", "Subtotal", "Gesamt", "Total volume"])
def test_a_row_of_totals_is_no_exercise(word: str) -> None:
    text = "Date,Exercise,Sets,Reps,Weight (kg)\n2025-05-13,Squat,3,5,100\n"
    found, sets = found_in(f"{text},{word},3,15,1500\n2025-05-13,Totally Tubular Press,1,5,40\n")
    assert [each.exercise for each in sets] == ["Squat"] * 3 + ["Totally Tubular Press"]
    assert [(each["line"], each["code"]) for each in found.problems] == [(3, "NOT_A_SET")]


@pytest.mark.parametrize("heading", ["Weight kg/lb", "Weight (kg/lbs)", "Load (lb or kg)", "Peso (kg / lb)"])
def test_a_heading_with_two_units_leaves_the_unit_open(heading: str) -> None:
    text = f"Date,Exercise,Reps,{heading}\n2025-05-13,Squat,5,100\n2025-05-13,Squat,5,45 lb\n"
    found, sets = found_in(text)
    assert (codes(found), found.problems) == (["LOAD_UNIT"], [])
    assert [(each.load, each.load_unit) for each in sets] == [(100, None), (45, "lb")]


def test_a_row_with_more_cells_than_columns_is_left_out_and_reported() -> None:
    head = "Date,Exercise,Reps,Weight (kg),Notes"
    found, sets = found_in(
        f"{head}\n2025-05-13,Squat,5,100,fine\n2025-05-14,Squat,5,102,5,fine\n2025-05-15,Squat,5,100,good, but slow\n"
        "2025-05-16,Squat,5,100,,,\n"
    )
    assert [(each.line, each.load) for each in sets] == [(2, 100), (5, 100)]
    assert [(each["line"], each["code"]) for each in found.problems] == [(3, "TOO_MANY_CELLS"), (4, "TOO_MANY_CELLS")]
    assert (found.rows, found.reported) == (4, 2)


@pytest.mark.parametrize("heading", [None, "  "])
def test_cells_without_a_heading_are_counted(heading: str | None) -> None:
    rows: list[Row] = [("Date", "Exercise", heading, "Reps"), ("2025-05-13", "Squat", "red", 5, "side note")]
    found, sets = found_in(workbook(Log=[*rows, ("2025-05-14", "Squat", "blue", 6), ("2025-05-15", "Squat", None, 6)]))
    assert [each.reps for each in sets] == [5, 6, 6]
    assert [(each["code"], each["column"], each["count"], each["lines"]) for each in found.kinds] == [
        ("UNKNOWN_COLUMN", "column 3", 2, [2, 3]),
        ("UNKNOWN_COLUMN", "column 5", 1, [2]),
    ]


def test_headings_below_the_rows_begin_another_table() -> None:
    found, sets = found_in(
        "Date,Exercise,Reps,Weight (kg)\n2025-05-13,Squat,5,100\n\nDate,Exercise,Reps,Weight (lbs)\n"
        "2025-05-14,Squat,5,225\nDate,Exercise,Weight (kg),Reps,Mood\n2025-05-15,Squat,101,4,good\n"
        "Client,Email,Note\na,b,c\nDate,Exercise,Reps,Weight (kg)\n"
    )
    assert [(each.line, each.reps, each.load, each.load_unit) for each in sets] == [
        (2, 5, 100, "kg"),
        (5, 5, 225, "lb"),
        (7, 4, 101, "kg"),
    ]
    assert (found.rows, found.reported) == (3, 0)
    assert [(each["line"], each["code"]) for each in found.problems] == [(8, "UNKNOWN_SHEET")]
    assert [(each["code"], each["column"]) for each in found.kinds][1:] == [("UNKNOWN_COLUMN", "Mood")]
