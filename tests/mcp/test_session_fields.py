"""What is reported of a session: one list of fields, which everything that reads or writes a session has."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from coaching_service.progress.logs.schemas import WorkoutBlockLog
from coaching_service.progress.logs.tools import WorkoutLog
from coaching_service.training.workouts.blocks import models
from coaching_service.training.workouts.blocks.models import SESSION_FIELDS, WORKOUT_BLOCK, no_session
from coaching_service.training.workouts.blocks.service import has_nothing_done
from coaching_service.training.workouts.reports.blocks import DoneWorkout
from tests.support import fixed_clock
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, tool_change
from tests.support.training import block_with, task

FIELDS = {"durationMinutes", "sessionRpe", "feeling", "comment"}
pytestmark = pytest.mark.usefixtures("wednesday")
TODAY = str(fixed_clock.TODAY)
VALUES: dict[str, Any] = {"durationMinutes": 55, "sessionRpe": 7, "feeling": 4, "comment": "Went well"}
WORDS = {
    "durationMinutes": "55min",
    "sessionRpe": "session RPE7",
    "feeling": "feeling 4 of 5",
    "comment": "comment «Went well»",
}


def test_every_list_of_session_fields_is_complete() -> None:
    assert set(SESSION_FIELDS) == FIELDS
    assert no_session() == dict.fromkeys(FIELDS)
    kinds = (
        models.StoredBlock,
        models.DayBlock,
        models.BlockFields,
        models.Block,
        models.BlockLog,
        models.LoggedBlock,
    )
    for kind in (*kinds, DoneWorkout):
        assert typing.get_type_hints(kind).keys() >= FIELDS, kind.__name__
    for schema in (WORKOUT_BLOCK, WorkoutBlockLog, WorkoutLog):
        assert schema().fields.keys() >= FIELDS, schema.__name__


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_block_with_any_session_field_is_not_untouched(name: str) -> None:
    assert has_nothing_done({"items": []})
    assert not has_nothing_done({"items": [], name: VALUES[name]})


async def test_session_is_logged_and_read_whole_by_tools(mcp: McpHttpClient, coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task(), date=TODAY)
    known = {"customerId": ana["_id"]}
    for name, value in VALUES.items():
        summary = tool_change(await mcp.call("log_workout", **known, workoutId=block["_id"], **{name: value}))[
            "summary"
        ]
        assert str(value) in summary
    (stored,) = await coach.calendar(ana, TODAY, TODAY)
    assert {name: stored[name] for name in FIELDS} == VALUES
    read = await mcp.call("get_workouts", **known, startDate=TODAY, endDate=TODAY)
    header = read["content"][0]["text"].split("\n\n")[1].splitlines()[0]
    for name, words in WORDS.items():
        assert words in header, name
