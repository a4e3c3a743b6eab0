"""Workouts and programs written as text in the web application."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from tests.support.client import MONDAY, CoachClient
from tests.support.visitor import HtmlPage, Visitor

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
    created.ok().says("Base created.", "Day 1", "4 × 8–10 × 60 kg", "A1", "Day 3", "Day 4")

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


async def test_a_separator_of_lines_is_a_space(coach: CoachClient, owner_page: Visitor) -> None:
    """Contract 16: a line ends at LF or CR LF, and nowhere else."""
    await library(coach)
    page = await owner_page.get("/app/programs")
    text = "Day 1: Push\u2028Day 2: Pull\r\nZercher squat: 3x8 | Slowly\x85Cossack step: x"
    created = await owner_page.submit(page, "/app/programs", name="Base\u2029two", text=text)
    created.ok().says("Base two created.", "Push Day 2: Pull")


async def test_wrong_lines_are_named_and_nothing_is_created(coach: CoachClient, owner_page: Visitor) -> None:
    await library(coach)
    page = await owner_page.get("/app/programs")
    for text, message in (
        ("Zercher squat: 3x8", "Line 1: Write the heading of a day, such as Day 1: Push."),
        ("Day 1: Push\n\nZercher squat: three", "Line 3: “three” cannot be read. Write how many sets"),
        ("Day 1: Push\nQqqqqqq: 3x8", "Line 2: “Qqqqqqq” is not the name of an exercise, and no name is similar."),
        ("Day 0: Push", "Line 1: Write a day from 1 to"),
        (f"Day 1: {'Push' * 51}", "Line 1: Write a name of 1 to 200 characters"),
    ):
        wrong = await owner_page.submit(page, "/app/programs", name="Base", text=text)
        wrong.ok(400).says(message)
        assert text.split("\n")[-1] in wrong.html, "the typed text stays"
    assert (await coach.get("/coach/programs", archived="false", pageSize=10, pageNum=1)).ok()["totalDocs"] == 0


async def test_a_long_notice_is_cut_so_that_browsers_keep_it(coach: CoachClient, owner_page: Visitor) -> None:
    names = [f"{number} {'long' * 40}" for number in range(20)]
    for number, name in enumerate(names):
        await coach.create_exercise(name, aliases=[f"Alias {number}"])
    text = "\n".join(["Day 1: Push", *(f"Alias {number}: 3x8" for number in range(20))])
    page = await owner_page.get("/app/programs")
    created = await owner_page.submit(page, "/app/programs", name="Base", text=text)
    created.ok().says("Base created. Read ", " …")
    assert max(map(len, created.cookies)) < 4_096


async def test_all_wrong_lines_are_named_at_once(coach: CoachClient, owner_page: Visitor) -> None:
    await library(coach)
    page = await owner_page.get("/app/programs")
    text = "Day 0: Push\nZrchr sqat: 3x8\nCossack step: three\nDay 2: Pull\nCsck stp: 3x8"
    wrong = (await owner_page.submit(page, "/app/programs", name="Base", text=text)).ok(400)
    wrong.says(
        "Line 1: Write a day", "Line 2: “Zrchr sqat” is not", "Line 3: “three” cannot", "Line 5: “Csck stp” is not"
    )
    corrected = await owner_page.submit(wrong, "/app/programs", correction=correction_of(wrong)["Cossack step"])
    corrected.ok(400).says("Line 2: “Zrchr sqat” is not", "Line 3: “three” cannot")
    assert "Line 5" not in corrected.text


async def test_workout_with_exercises_is_scheduled_in_one_form(coach: CoachClient, owner_page: Visitor) -> None:
    await library(coach)
    ana = await coach.create_customer("Ana")
    week = f"/app/customers/{ana['_id']}"
    page = await owner_page.get(f"{week}?week={MONDAY}")

    wrong = await owner_page.submit(page, f"{week}/blocks", name="Legs", text="Qqqqqqq: 3x8")
    wrong.ok(400).says("Line 1: “Qqqqqqq” is not")
    added = await owner_page.submit(page, f"{week}/blocks", name="Legs", text="Zercher squat: 3x8 @60kg")
    added.ok().says("Legs added.", "3 × 8 × 60 kg")

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
    (await owner_page.submit(page, f"{week}/blocks", name="Arms", text=text)).ok().says("3 × 8 × 32.5 kg")
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


_IDENTIFIER = re.compile(r"\b[0-9a-f]{24}\b")


async def test_similar_names_are_suggested_and_one_click_takes_one(coach: CoachClient, owner_page: Visitor) -> None:
    for name in ("Zercher squat", "Zercher squat: paused", "Cossack step"):
        await coach.create_exercise(name)
    ana = await coach.create_customer("Ana")
    week = f"/app/customers/{ana['_id']}"
    page = await owner_page.get(f"{week}?week={MONDAY}")
    text = "A1 Zrchr sqat: 3x8 @60kg\n\nA2 Csck stp: 2x10 | Zrchr sqat: slowly"

    wrong = (await owner_page.submit(page, f"{week}/blocks", name="Legs", text=text)).ok(400)
    wrong.says("Line 1: “Zrchr sqat” is not the name of an exercise. Did you mean?", "Zercher squat: paused")
    assert not _IDENTIFIER.search(wrong.text)
    values = correction_of(wrong)
    wrong = await owner_page.submit(wrong, f"{week}/blocks", correction=values["Zercher squat: paused"])
    wrong.ok(400).says("Line 3: “Csck stp” is not the name of an exercise.")
    assert "A1 «Zercher squat: paused»: 3x8 @60kg" in wrong.html
    assert "| Zrchr sqat: slowly" in wrong.html, "a note is not a name"
    values = correction_of(wrong)
    added = await owner_page.submit(wrong, f"{week}/blocks", correction=values["Cossack step"])
    added.ok().says("Legs added.")
    (block,) = await coach.calendar(ana, MONDAY, MONDAY)
    assert [item["exerciseSets"][0]["minPlannedReps"] for item in block["items"]] == [8, 10]

    path = f"{week}/blocks/{block['_id']}"
    page = await owner_page.get(path)
    wrong = (await owner_page.submit(page, f"{path}/text", text="Csck stp: 1x5")).ok(400)
    for late in ("{", '{"field": "text"}', values["Cossack step"]):
        again = await owner_page.submit(wrong, f"{path}/text", text="Zercher squat: 1x5", correction=late)
        again.ok().says("1 item added."), "the line was corrected by hand"


def correction_of(page: HtmlPage) -> dict[str, str]:
    """The values of the suggested names on a page."""
    buttons = re.findall(r'name="correction" value="([^"]*)"[^>]*>([^<]*)<', page.html)
    return {unescape(name): unescape(value) for value, name in buttons}


async def test_names_of_forms_and_shared_names_are_explained(coach: CoachClient, owner_page: Visitor) -> None:
    (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "How?", "type": "text"}]})).ok(201)
    for _ in range(2):
        await coach.create_exercise("Zercher squat")
    ana = await coach.create_customer("Ana")
    path = f"/app/customers/{ana['_id']}/blocks"
    page = await owner_page.get(f"/app/customers/{ana['_id']}?week={MONDAY}")
    for text, message in (
        ("Form: Chek-in", "Line 1: “Chek-in” is not the name of a form. Did you mean?"),
        (
            "Zercher squat: 3x8",
            "Line 1: “Zercher squat” is the name of more than one exercise. Rename the one you mean.",
        ),
        ("Reminder 99:99: Drink", "Line 1: Write the time as in reminder 08:30: Drink water."),
        ("Squats", "Line 1: Write the exercise, a colon and its sets, as in A1) Back squat"),
        ("Zercher squat: 3x", "Line 1: Something is missing: write"),
    ):
        wrong = (await owner_page.submit(page, path, name="Legs", text=text)).ok(400).says(message)
        assert not _IDENTIFIER.search(wrong.text)
    assert list(correction_of(await owner_page.submit(page, path, name="Legs", text="Form: Chek-in"))) == ["Check-in"]
