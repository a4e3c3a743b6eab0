"""Files of training history, and what their import leaves."""

from __future__ import annotations

from typing import Any

from tests.support.client import CoachClient
from tests.support.doctor import is_numbered
from tests.support.service_process import until

HEVY = (
    '"title","start_time","end_time","description","exercise_title","superset_id","exercise_notes","set_index",'
    '"set_type","weight_lbs","reps","distance_miles","duration_seconds","rpe"\n'
    '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Bench Press (Barbell)",,"",0,"warmup",45,10,,,\n'
    '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Bench Press (Barbell)",,"",1,"normal",135,8,,,8.5\n'
)


async def workouts(coach: CoachClient, customer: dict[str, Any]) -> list[dict[str, Any]]:
    """The client's calendar of all years."""
    path = f"/coach/customers/{customer['_id']}/wblock"
    blocks: list[dict[str, Any]] = (await coach.get(path, startDate="2000-01-01", endDate="2100-01-01")).ok()
    return blocks


def rows_of_sets(*rows: str) -> bytes:
    """A table of a coach's own."""
    return "\n".join(["Date,Workout,Exercise,Reps,Weight (kg),Notes", *rows]).encode()


SETS = rows_of_sets(
    "2025-01-06,Legs,Squat,5,100,deep",
    "2025-01-06,Legs,Squat,5,102.5,",
    "2025-01-08,Legs,Squat,5,105,",
    ",,,,,",
    "2025-01-08,Legs,,5,105,",
    "2025-01-09,Legs,Squat,,,",
)


async def events(coach: CoachClient, *types: str) -> list[dict[str, Any]]:
    """The events of these types."""
    await until(lambda: is_numbered(coach.ctx.services), "numbers of changes")
    docs: list[dict[str, Any]] = (await coach.get("/coach/events", types=list(types))).ok()["docs"]
    return docs
