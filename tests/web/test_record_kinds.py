"""Records of times, distances and assistance in the pages of coaches and clients."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.training import Json, block_with, exercise_of, log
from tests.support.visitor import Visitor
from tests.web.conftest import ClientPage

FIRST, SECOND = "2026-03-02", "2026-03-04"


async def train(coach: CoachClient, customer: Json, exercise: Json, date: str, *sets: Json) -> None:
    """Log sets of an exercise."""
    block = await block_with(coach, customer, exercise_of(exercise), date=date)
    (await log(coach, block, block["items"][0], customerSets=list(sets))).ok()


async def test_times_distances_and_assistance_are_shown(
    coach: CoachClient, owner_page: Visitor, client_page: ClientPage
) -> None:
    ana = await coach.create_customer("Ana")
    plank, run = await coach.create_exercise("Plank"), await coach.create_exercise("Run")
    pull_up = await coach.create_exercise("Pull-up", loadType="assistance")
    for date, seconds, fastest, assistance in ((FIRST, 60, 1500, 30), (SECOND, 90, 1440, 20)):
        await train(coach, ana, plank, date, {"seconds": seconds})
        await train(coach, ana, run, date, {"meters": 5000, "seconds": fastest})
        await train(coach, ana, pull_up, date, {"reps": 8, "load": assistance})

    page = (await owner_page.get(f"/app/customers/{ana['_id']}/records")).ok()
    page.says(
        "Longest time 1 min 30 s", "Farthest distance 5,000 m", "Fastest 5,000 m 24 min", "Least assistance 20 kg × 8"
    )
    sled = await coach.create_exercise("Sled")
    await train(coach, ana, sled, SECOND, {"meters": 20, "load": 90})
    activity = (await owner_page.get(f"/app/customers/{ana['_id']}/notes")).ok()
    activity.says("Least assistance: 20 kg", "Personal record in Plank.", "First time: Sled.")

    own = await client_page(coach, ana)
    (await own.get("/train/progress")).ok().says("1 min 30 s", "24 min", "20 kg × 8")
    (await own.get(f"/train/exercises/{plank['_id']}?months=120")).ok().says("Longest time", "1 min 30 s")
    (await own.get(f"/train/exercises/{run['_id']}?months=120")).ok().says("Fastest 5,000 m", "Farthest distance")
    (await own.get(f"/train/exercises/{pull_up['_id']}?months=120")).ok().says("Least assistance")
    for exercise in (plank, run, pull_up):
        (await owner_page.get(f"/app/customers/{ana['_id']}/progress/exercises/{exercise['_id']}?weeks=52")).ok()
