"""Workouts and programs written as text in the web application."""

from __future__ import annotations

from typing import Any

from tests.support.client import MONDAY, CoachClient
from tests.support.visitor import Visitor

PROGRAM = """Day 1: Push
A1 Zercher squat: 4x8-10 @60kg rest 90s
A2 Cossack step: 3x10

day 3 - Pull
Zercher squat: 5x5 @70kg
Day 4: Rest"""


async def library(coach: CoachClient) -> None:
    for name in ("Zercher squat", "Cossack step"):
        await coach.create_exercise(name)


async def test_program_is_created_from_text(coach: CoachClient, owner_page: Visitor) -> None:
    await library(coach)
    page = await owner_page.get("/app/programs")
    created = await owner_page.submit(page, "/app/programs", name="Base", text=PROGRAM)
    created.ok().says("Base created.", "Day 1", "4 × 8–10, 60 kg", "Superset A", "Day 3", "Day 4")

    program_id = created.path.rpartition("/")[2]
    blocks: list[Any] = (await coach.get(f"/coach/programs/{program_id}/wblock", startDay=1, endDay=30)).ok()
    assert [(block["day"], block["name"], block["isRest"], len(block["items"])) for block in blocks] == [
        (1, "Push", False, 2),
        (3, "Pull", False, 1),
        (4, "Rest", True, 0),
    ]

    copy_path = f"/app/programs/{program_id}/copy-days"
    copied = await owner_page.submit(created, copy_path, repeat="3", loadChange="2.5")
    copied.ok().says("9 workouts copied.", "Week 4", "67.5 kg")


async def test_wrong_lines_are_named_and_nothing_is_created(coach: CoachClient, owner_page: Visitor) -> None:
    await library(coach)
    page = await owner_page.get("/app/programs")
    for text, message in (
        ("Zercher squat: 3x8", "line 1: expected the heading of a day, such as Day 1: Push"),
        ("Day 1: Push\n\nZercher squat: three", "line 3:"),
        ("Day 1: Push\nQqqqqqq: 3x8", "line 2:"),
        ("Day 0: Push", "line 1: expected a day from 1 to"),
    ):
        wrong = await owner_page.submit(page, "/app/programs", name="Base", text=text)
        wrong.ok(400).says(message)
        assert text.split("\n")[-1] in wrong.html, "the typed text stays"
    assert (await coach.get("/coach/programs", archived="false", pageSize=10, pageNum=1)).ok()["totalDocs"] == 0


async def test_workout_with_exercises_is_scheduled_in_one_form(coach: CoachClient, owner_page: Visitor) -> None:
    await library(coach)
    ana = await coach.create_customer("Ana")
    week = f"/app/customers/{ana['_id']}"
    page = await owner_page.get(f"{week}?week={MONDAY}")

    wrong = await owner_page.submit(page, f"{week}/blocks", name="Legs", text="Qqqqqqq: 3x8")
    wrong.ok(400).says("line 1:")
    added = await owner_page.submit(page, f"{week}/blocks", name="Legs", text="Zercher squat: 3x8 @60kg")
    added.ok().says("Legs added.", "3 × 8, 60 kg")

    (block,) = (await coach.get(f"/coach/customers/{ana['_id']}/wblock", startDate=MONDAY, endDate=MONDAY)).ok()
    path = f"{week}/blocks/{block['_id']}"
    more = await owner_page.submit(
        await owner_page.get(path), f"{path}/text", text="Cossack step: 2x10\nTask: Walk 20 minutes"
    )
    more.ok().says("2 items added.", "Cossack step", "Walk 20 minutes")


async def test_decimal_comma_is_read_in_forms(coach: CoachClient, owner_page: Visitor) -> None:
    await library(coach)
    ana = await coach.create_customer("Ana")
    week = f"/app/customers/{ana['_id']}"
    page = await owner_page.get(f"{week}?week={MONDAY}")
    text = "Zercher squat: 3x8 @32,5 rest 1,5min RPE8,5"
    (await owner_page.submit(page, f"{week}/blocks", name="Arms", text=text)).ok().says("3 × 8, 32.5 kg")
    wrong = await owner_page.submit(page, f"{week}/blocks", name="Arms", text="Zercher squat: 3x8,3x5")
    wrong.ok(400).says("a comma between digits is a decimal comma")

    (block,) = await coach.calendar(ana, MONDAY, MONDAY)
    (item,) = block["items"]
    assert [item["exerciseSets"][0][name] for name in ("load", "rest", "rpe")] == [32.5, 90, 8.5]
    path = f"{week}/blocks/{block['_id']}"
    more = await owner_page.submit(await owner_page.get(path), f"{path}/text", text="Cossack step: 1x5,2km")
    more.ok().says("1 item added.")
    (block,) = await coach.calendar(ana, MONDAY, MONDAY)
    assert block["items"][1]["exerciseSets"][0]["plannedMeters"] == 5200
