"""The pages of clients are compressed, and their tokens are others each time, so that their size reveals none."""

from __future__ import annotations

import gzip

import aiohttp
from aiohttp.test_utils import TestServer

from tests.support.client import CoachClient
from tests.support.training import block_with, exercise_of
from tests.web.conftest import ClientPage

LARGEST_PAGE = 30_000  # bytes


async def test_long_workout_is_a_small_page(coach: CoachClient, server: TestServer, client_page: ClientPage) -> None:
    ana = await coach.create_customer("Ana")
    heavy = {"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60, "rest": 90, "rpe": 8}
    exercises = [await coach.create_exercise(f"Exercise {number}") for number in range(8)]
    block = await block_with(coach, ana, *[exercise_of(each, heavy, heavy, heavy, heavy) for each in exercises])
    token = (await client_page(coach, ana)).cookies()["coach_session"]
    headers = {"Accept-Encoding": "gzip", "Cookie": f"coach_session={token}"}
    pages, sizes = [], []
    async with aiohttp.ClientSession(server.make_url("/"), auto_decompress=False, headers=headers) as browser:
        for _ in range(5):
            async with browser.get(f"/train/workouts/{block['_id']}") as response:
                assert response.headers["Content-Encoding"] == "gzip"
                sizes.append(len(await response.read()))
                pages.append(gzip.decompress(await response.read()).decode())
    assert max(sizes) < LARGEST_PAGE
    assert len(set(sizes)) > 1, "the size is padded at random"
    assert pages[0].count('class="set-row') == 8 * 5
    tokens = {page.partition('data-csrf="')[2].partition('"')[0] for page in pages}
    assert len(tokens) == len(pages)
