"""Rosters of other services: names, dates in the order of the file, archived clients, notes and trainers."""

from __future__ import annotations

import io

import pytest

from coaching_service.integrations.history_files.rosters import Roster, read_roster
from coaching_service.integrations.history_files.tables import UnreadableTable
from coaching_service.integrations.history_files.values import DateOrder
from tests.support.transfer import pick

TRUECOACH = (
    "Name,Email,Phone,Program,Start Date,Status,Notes,Tags\n"
    'Mara Quill,mara@example.com,+1 555 0100,Base,03/14/2025,Active,"Left knee, careful","remote, strength"\n'
    'Ivo,ivo@example.com,,Base,11/02/2024,Archived,,"in-person"\n'
)
TRAINERIZE = (
    "Full Name,First Name,Last Name,Email,Phone,Goal,Notes,Status,Start Date\n"
    "Mara Quill,Mara,Quill,mara@example.com,+1 555 0100,Fat loss,Left knee,Active,2025-03-14\n"
    "Ivo Brandt,Ivo,Brandt,ivo@example.com,,Strength,,Deactivated,2024-11-02\n"
)
GYM = (
    "First Name,Last Name,Email,Gender,Date of Birth,Client Status,Default Program,Phone\n"
    "Mara,Quill,mara@example.com,Female,04/12/1990,Active,CrossFit,555-0100\n"
    "Ivo,Brandt,ivo@example.com,Male,11/30/1985,Inactive,CrossFit,\n"
)


def read(text: str, order: DateOrder | None = None) -> Roster:
    return read_roster(io.BytesIO(text.encode()), order)


def test_truecoach_has_archived_clients_tags_and_notes() -> None:
    mara, ivo = read(TRUECOACH).rows
    assert mara.details == {
        "name": "Mara Quill",
        "email": "mara@example.com",
        "phone": "+1 555 0100",
        "groups": ["remote", "strength"],
    }
    assert (mara.notes, mara.is_archived, ivo.is_archived) == (["Left knee, careful"], False, True)
    assert [each["field"] for each in read(TRUECOACH).problems] == ["Program", "Start Date"]


def test_trainerize_has_names_twice_and_goals() -> None:
    mara, ivo = read(TRAINERIZE).rows
    assert (mara.details["name"], mara.details["surname"]) == ("Mara", "Quill")
    assert mara.notes == ["Left knee", "Goal: Fat loss"]
    assert (ivo.notes, ivo.is_archived) == (["Goal: Strength"], True)


def test_one_birthday_decides_the_order_of_all() -> None:
    roster = read(GYM)
    assert [row.details["birthday"] for row in roster.rows] == ["1990-04-12", "1985-11-30"]
    assert (roster.date_order, roster.is_order_open) == ("mdy", False)
    assert [row.is_archived for row in roster.rows] == [False, True]


def test_a_birthday_whose_order_is_open_loses_no_client() -> None:
    text = "Athlete,DOB\nAna María López,03/04/1990\nBo,1990-05-06\n"
    roster = read(text)
    ana, bo = roster.rows
    assert (ana.details, bo.details["birthday"]) == ({"name": "Ana María", "surname": "López"}, "1990-05-06")
    assert [each["code"] for each in ana.left_out] == ["DATE_ORDER"]
    assert roster.is_order_open
    assert read(text, "dmy").rows[0].details["birthday"] == "1990-04-03"


def test_spanish_headings_trainers_and_identifiers() -> None:
    text = "Nombre completo;Correo electrónico;Entrenador;ID;Etiquetas;Grupo\nAna López;ana@example.com;Olga;17;a|b;c\n"
    [ana] = read(text).rows
    assert ana.details == {
        "name": "Ana",
        "surname": "López",
        "email": "ana@example.com",
        "externalId": "17",
        "groups": ["a", "b", "c"],
    }
    assert ana.trainer == "Olga"


def test_bad_optional_values_are_left_out() -> None:
    [row] = read("Name,Birthday,Status\nAna,soon,on holiday\n").rows
    assert row.details == {"name": "Ana"}
    assert pick(row.left_out, "field", "code") == [("birthday", "VALUE_LEFT_OUT"), ("status", "VALUE_LEFT_OUT")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Shoe size,Colour\n38,red\n", "has no column with names of clients; it has: Shoe size, Colour"),
        ("Name,Email,Mail\nAna,a@x.test,b@x.test\n", "has several columns for: email"),
        ("", "has no rows"),
    ],
)
def test_tables_that_are_no_rosters(text: str, expected: str) -> None:
    with pytest.raises(UnreadableTable) as raised:
        read(text)
    assert raised.value.message == expected


def test_a_column_that_is_not_known_is_reported_where_the_headings_are() -> None:
    roster = read("My clients\n\nName,Shoe size\nAna,38\n")
    assert [(each["entry"], each["line"], each["field"], each["code"]) for each in roster.problems] == [
        ("line 3", 3, "Shoe size", "UNKNOWN_COLUMN")
    ]


@pytest.mark.parametrize(
    ("full_name", "name", "surname"),
    [
        ("Ruiz Lara, Ana", "Ana", "Ruiz Lara"),
        ("Ana María Ruiz", "Ana María", "Ruiz"),
        ("Ana,", "Ana", ""),
        ("Ana", "Ana", ""),
    ],
)
def test_a_full_name_is_divided(full_name: str, name: str, surname: str) -> None:
    [row] = read(f'Full name,Email\n"{full_name}",ana@example.com\n').rows
    assert (row.details["name"], row.details.get("surname", "")) == (name, surname)


def test_texts_with_a_comma_between_semicolons_stay() -> None:
    [row] = read("Name;Phone;ID;Notes\nAna;600,123456;1,234;2,5\n").rows
    assert (row.details["phone"], row.details["externalId"], row.notes) == ("600,123456", "1,234", ["2,5"])


def test_digits_that_a_spreadsheet_has_lost_are_left_out() -> None:
    """Of telephone numbers and identifiers; short ones, and those that it has kept, are read."""
    text = "Name;Phone;ID\nMara;3.46123E+11;7\nIvo;3,46E+11;1E+15\nNils;4E10;12e3\nBo;+34 612 345 678;346123456789\n"
    mara, ivo, nils, bo = read(text).rows
    assert (mara.details, ivo.details) == ({"name": "Mara", "externalId": "7"}, {"name": "Ivo"})
    assert pick(mara.left_out, "field", "code") == [("phone", "VALUE_LEFT_OUT")]
    assert pick(ivo.left_out, "field", "code") == [("phone", "VALUE_LEFT_OUT"), ("externalId", "VALUE_LEFT_OUT")]
    assert nils.details == {"name": "Nils", "phone": "4E10", "externalId": "12e3"}
    assert bo.details == {"name": "Bo", "phone": "+34 612 345 678", "externalId": "346123456789"}


def test_one_impossible_birthday_leaves_the_order_decided() -> None:
    """Days that are none, in either order, are left out and decide nothing."""
    for impossible in ("99/99/1985", "31/02/1985", "00/13/1985"):
        roster = read(f"Name,Birthday\nMara,04/12/1990\nIvo,11/30/1985\nNils,{impossible}\n")
        assert [row.details.get("birthday") for row in roster.rows] == ["1990-04-12", "1985-11-30", None]
        assert (roster.date_order, roster.is_order_open) == ("mdy", False)
        assert pick(roster.rows[2].left_out, "field", "code") == [("birthday", "VALUE_LEFT_OUT")]
