"""Characters that change the direction of writing: refused in names, isolated in messages and tools."""

from __future__ import annotations

import pytest

from coaching_service.core.mcp.results import typed
from coaching_service.core.text import isolate_direction
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
