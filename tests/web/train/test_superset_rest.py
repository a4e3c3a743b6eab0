"""The rest of a superset in a client's workout: it follows the last exercise of each round."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.training import Json, block_with, exercise_of
from tests.web.conftest import ClientPage
from tests.web.train.test_days import day


def sets(*rests: int | None) -> list[Json]:
    """Planned sets with these rests."""
    return [{"type": "reps", "minPlannedReps": 8, "rest": rest} for rest in rests]


# The rests planned for the exercises of a superset | those of the timer, by round.
RESTS: list[tuple[list[list[Json]], list[int | None]]] = [
    ([sets(90, 90), sets(None, None)], [None, 90, None, 90]),
    ([sets(30, 30), sets(60, 60)], [None, 60, None, 60]),
    ([sets(None), sets(45), sets(20)], [None, None, 20]),
    ([sets(90, 75), sets(60)], [None, 60, 75]),  # the second round has only one set
]


@pytest.mark.parametrize(("planned", "expected"), RESTS)
async def test_rest_of_a_superset_follows_its_last_exercise(
    coach: CoachClient, client_page: ClientPage, planned: list[list[Json]], expected: list[int | None]
) -> None:
    ana = await coach.create_customer()
    members = [
        exercise_of(await coach.create_exercise(f"Lift {number}"), *each, supersetId="A")
        for number, each in enumerate(planned)
    ]
    alone = exercise_of(await coach.create_exercise("Row"), *sets(50))
    block = await block_with(coach, ana, *members, alone, date=day(0))

    page = (await (await client_page(coach, ana)).get(f"/train/workouts/{block['_id']}")).ok()

    forms: list[Any] = re.findall(r'<form [^>]*class="set-row[^>]*>', page.html)
    rests = [rest and int(rest[1]) for rest in (re.search(r'data-rest="(\d+)"', form) for form in forms)]
    assert rests[: len(expected)] == expected
    assert 50 in rests, "an exercise alone has the rest of each set"
