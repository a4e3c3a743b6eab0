"""Characters that change the direction of writing, and those that end a line elsewhere, in names, messages and tools."""

from __future__ import annotations

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import typed
from coaching_service.core.text import isolate_direction, split_lines
from coaching_service.training.set_text import parse_done, parse_planned
from tests.support.client import CoachClient

CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize("control", CONTROLS)
async def test_refused_in_names(coach: CoachClient, control: str) -> None:
    for path, body in (
        ("/coach/customers", {"name": f"Ana{control}gro"}),
        ("/exercises", {"name": f"Squat{control}gro"}),
    ):
        reply = await coach.post(path, body)
        assert reply.refused(400, "name")["errors"][0]["code"] == "CONTROL_CHARACTERS"


async def test_names_in_hebrew_and_arabic_are_accepted(coach: CoachClient) -> None:
    """Marks have an effect only where they are, and are needed next to digits and signs."""
    for name in ("נועה", "ليلى", "נועה\u200f 2", "Ana\u200e"):
        assert (await coach.create_customer(name))["name"] == name


@pytest.mark.parametrize(
    ("text", "isolated"),
    [
        ("plain", "plain"),
        ("a\u202eb", "\u2068a\u202eb\u202c\u2069"),
        ("a\u2067b\u202ec", "\u2068a\u2067b\u202ec\u202c\u2069\u2069"),
        ("a\u2067b\u2069c", "\u2068a\u2067b\u2069c\u2069"),
        ("a\u2069\u202eb", "\u2068a\u202eb\u202c\u2069"),
        ("\u202ea\u202c\u202cb", "\u2068\u202ea\u202cb\u2069"),
        ("\u2067\u202ea\u2069b", "\u2068\u2067\u202ea\u2069b\u2069"),
    ],
)
def test_isolated(text: str, isolated: str) -> None:
    """What is opened is closed, and what was not opened does not close the isolation."""
    assert isolate_direction(text) == isolated


def test_isolated_in_tools() -> None:
    assert typed("a\u202eb") == "«\u2068a\u202eb\u202c\u2069»"


async def test_separators_of_lines_are_spaces_in_names_and_stay_in_long_texts(coach: CoachClient) -> None:
    """Contract 16: a line ends at LF or CR LF; VT and FF stay refused."""
    for separator in "\u2028\u2029\x85":
        ana = await coach.create_customer(f"Ana{separator}Flores{separator}", groups=[f"Team{separator}A"])
        assert (ana["name"], ana["customerRoleData"]["groups"]) == ("Ana Flores", ["Team A"])
        note = (await coach.post(f"/coach/customers/{ana['_id']}/notes", {"content": f"One{separator}two"})).ok(201)
        assert note["content"].split() == ["One", "two"]
        assert typed(f"One{separator}two") == "«One two»"
    for control in "\x0b\x0c\n\r":
        (await coach.post("/coach/customers", {"name": f"Ana{control}Flores"})).refused(400, "name")


async def test_separators_of_lines_are_spaces_in_exported_tables(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    stored = {"$set": {"surname": "Flo\u2028res"}}  # by an earlier version
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(ana["_id"])}, stored)
    session = await coach.interactive()
    table = (await session.get("/coach/export", format="csv", kind="customers")).raw.decode()
    assert "Flo res" in table
    assert "\u2028" not in table


def test_lines_end_at_line_feeds_only() -> None:
    assert split_lines("a\r\nb\nc\u2028d\u2029e\x85f\rg\n") == ["a", "b", "c d e f g", ""]
    assert parse_planned("4x8\u2028@60kg", "kg") == parse_planned("4x8 @60kg", "kg")
    assert parse_done("8/8/7\x85@60kg", "kg") == parse_done("8/8/7 @60kg", "kg")
