"""Changing the schedules of many clients: from the list of clients, a program and an exercise."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any

import pytest

from coaching_service.people import jobs
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.training import Json, exercise_of, log
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague

PAGE = "/app/customers/bulk/schedules"


class Gym:
    """Ana and Bo are on a program with squats, today and in a week; Ana has done the first workout."""

    ana: Json
    bo: Json
    squat: Json
    press: Json
    program: Json


@pytest.fixture
async def gym(coach: CoachClient) -> Gym:
    these = Gym()
    these.ana, these.bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    these.squat, these.press = await coach.create_exercise("Back squat"), await coach.create_exercise("Leg press")
    these.program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    path = f"/coach/programs/{these.program['_id']}"
    for day in (1, 8):
        block = {"name": f"Legs {day}", "day": day, "items": [exercise_of(these.squat)]}
        (await coach.post(f"{path}/wblocks", block)).ok(201)
    for customer in (these.ana, these.bo):
        body = {"customerId": customer["_id"], "startDate": str(coach.ctx.caller.today())}
        (await coach.post(f"{path}/assign", body)).ok(201)
    [first, _] = await blocks_of(coach, these.ana)
    (await log(coach, first, first["items"][0], isCompleted=True)).ok()
    return these


async def blocks_of(coach: CoachClient, customer: Json) -> list[Json]:
    """The workouts of a client in the next four weeks."""
    today = coach.ctx.caller.today()
    return await coach.calendar(customer, str(today), str(today + timedelta(days=27)))


async def exercises_of(coach: CoachClient, customer: Json) -> list[str]:
    return [block["items"][0]["exercise"]["name"] for block in await blocks_of(coach, customer)]


async def preview(visitor: Visitor, page: HtmlPage, operation: str, **typed: Any) -> HtmlPage:
    """Send a form of the page to its preview."""
    path = f"{PAGE}/{operation}"
    form = page.form(path)
    sent = replace(form, action=form.action.replace(path, f"{path}/preview", 1))
    return await visitor.submit(page.with_form(sent), f"{path}/preview", **typed)


async def test_exercise_is_replaced_for_everyone_on_a_program(
    coach: CoachClient, owner_page: Visitor, gym: Gym
) -> None:
    page = (await owner_page.get(f"/app/programs/{gym.program['_id']}")).says("Change for everyone", "2 clients are on")
    path = f"{PAGE}/replace-exercise/preview"
    shown = await owner_page.submit(page, path, exerciseId=gym.squat["_id"], withExercise="Leg press")

    assert "Error" not in shown.ok().text
    shown.says("2 clients on Base: Ana, Bo", "Preview: 3 workouts changed", "Back squat → Leg press")
    shown.says(
        "Planned loads are removed: the movement or the equipment differs", "3 × 8–10 × 60 kg → 3 × 8–10 (2 times)"
    )
    shown.says("Ana : 1 workout changed Legs 8 on", "Bo : 2 workouts changed Legs 1 on", "Apply to 2 clients")
    shown.says("Legs 1 on", "left as it is, because something of it is done")
    assert await exercises_of(coach, gym.bo) == ["Back squat"] * 2, "a preview changes nothing"
    assert (await owner_page.get(shown.path)).says("Preview: 3 workouts changed").form(f"{PAGE}/replace-exercise")

    done = (await owner_page.submit(shown, f"{PAGE}/replace-exercise")).ok().says("2 clients changed")
    assert await exercises_of(coach, gym.ana) == ["Back squat", "Leg press"]
    assert await exercises_of(coach, gym.bo) == ["Leg press"] * 2
    done = (await owner_page.get(done.path)).ok().says("2 clients changed")  # a page of its own, which can be reloaded
    [undo] = [form.action for form in done.forms if form.action.endswith("/undo")]
    undone = await owner_page.submit(done, undo)
    undone.ok().says("Undone.", "Base")
    assert await exercises_of(coach, gym.bo) == ["Back squat"] * 2


async def test_exercise_page_says_who_uses_it(coach: CoachClient, owner_page: Visitor, gym: Gym) -> None:
    page = (await owner_page.get(f"/app/exercises/{gym.squat['_id']}")).says("Used by 2 clients")
    [link] = [each for each in page.links if each.startswith(PAGE)]
    shown = await preview(owner_page, await owner_page.get(link), "replace-exercise", withExercise="Leg press")
    shown.says("2 clients with Back squat planned", "Bo : 2 workouts changed")
    (await owner_page.submit(shown, f"{PAGE}/replace-exercise")).says("2 clients changed")
    page = await owner_page.get(f"/app/exercises/{gym.squat['_id']}")
    page.says("Used by 1 client")  # what Ana has done today


async def test_selected_clients_have_every_operation(coach: CoachClient, owner_page: Visitor, gym: Gym) -> None:
    selected = await owner_page.get("/app/customers/bulk", params={"ids": [gym.bo["_id"]], "action": "schedules"})
    selected.ok().says("Change the schedule", "1 client: Bo")
    today = coach.ctx.caller.today()
    week = {"startDate": str(today), "endDate": str(today + timedelta(days=6))}

    shown = await preview(owner_page, selected, "adjust", **week, loadChange="2.5")
    shown.says("Bo : 1 workout changed", "Back squat 60 → 62.5 kg (3 sets)")
    (await owner_page.submit(shown, f"{PAGE}/adjust")).says("1 client changed")
    [first, _] = await blocks_of(coach, gym.bo)
    assert first["items"][0]["exerciseSets"][0]["load"] == 62.5

    shown = await preview(owner_page, selected, "shift", startDate=str(today + timedelta(days=1)), days="-6")
    shown.says("Bo : 1 workout moved Legs 8 on")
    (await owner_page.submit(shown, f"{PAGE}/shift")).says("1 client changed")
    assert [block["date"] for block in await blocks_of(coach, gym.bo)] == [str(today), str(today + timedelta(days=1))]

    target = str(today + timedelta(days=14))
    shown = await preview(owner_page, selected, "copy", **week, targetDate=target)
    shown.says("Bo : 2 workouts added or replaced")
    (await owner_page.submit(shown, f"{PAGE}/copy")).says("1 client changed")
    shown = await preview(owner_page, selected, "copy", **week, targetDate=target)
    shown.says("Bo : Nothing changes", "not copied, because the day has workouts")

    shown = await preview(owner_page, selected, "clear", **week)
    shown.says("Bo : 2 workouts removed")
    (await owner_page.submit(shown, f"{PAGE}/clear")).says("1 client changed")
    assert len(await blocks_of(coach, gym.bo)) == 2


async def test_only_those_of_whom_anything_changed_are_counted(
    coach: CoachClient, owner_page: Visitor, gym: Gym
) -> None:
    await coach.create_customer("Cy")
    page = await owner_page.get(PAGE, params={"all": "true", "operation": "adjust"})
    today = coach.ctx.caller.today()
    form = page.form(f"{PAGE}/adjust")
    assert (form.controls["startDate"]["value"], form.controls["endDate"]["value"]) == (
        str(today),
        str(today + timedelta(days=6)),
    )
    shown = await preview(owner_page, page, "adjust", loadChange="20", loadChangeIn="percent")
    assert "by more than 20 %" not in shown.says("Preview").text
    (await owner_page.submit(shown, f"{PAGE}/adjust")).ok().says("1 of 3 clients changed")

    shown = await preview(owner_page, page, "adjust", loadChange="20.5", loadChangeIn="percent")
    shown.ok().says("Raise the loads by more than 20 %")
    refused = await owner_page.submit(shown, f"{PAGE}/adjust")
    refused.ok(400).says("has to be confirmed", "Raise the loads by more than 20 %")
    [first, _] = await blocks_of(coach, gym.bo)
    assert first["items"][0]["exerciseSets"][0]["load"] == 72.5, "60 and 20 %, and no more"
    (await owner_page.submit(shown, f"{PAGE}/adjust", isSure="true")).ok().says("1 of 3 clients changed")


async def test_invalid_input_is_explained(coach: CoachClient, owner_page: Visitor, gym: Gym) -> None:
    selected = await owner_page.get(PAGE, params={"ids": [gym.bo["_id"]]})
    shown = await preview(
        owner_page, selected, "replace-exercise", exerciseId=gym.squat["_id"], withExercise="Squiggle"
    )
    shown.ok(400).says("“Squiggle” is not an exercise of yours")
    zercher = await coach.create_exercise("Zercher squat: paused")
    wrong = {"exerciseId": gym.squat["_id"], "withExercise": "Zrchr sqat"}
    near = await preview(owner_page, await owner_page.get(selected.path), "replace-exercise", **wrong)
    near.ok(400).says("Did you mean?", zercher["name"])
    [button] = re.findall(r"<button[^>]*name=.correction.[^>]*>(?=Zercher squat: paused<)", near.html)
    assert f"{PAGE}/replace-exercise/preview" in button, "it shows what it would do"
    [value] = map(unescape, re.findall('value="([^"]*)"', button))
    shown = await preview(owner_page, near, "replace-exercise", **wrong, correction=value)
    shown.ok().says("Back squat → Zercher squat: paused", "Bo : 2 workouts changed")
    picked = await owner_page.get(PAGE, params={"ids": [gym.bo["_id"]], "picked": gym.press["_id"]})
    fields = dict(picked.form(f"{PAGE}/replace-exercise").fields)
    assert (fields["withExercise"], fields["withExerciseId"]) == ("Leg press", gym.press["_id"])
    (await preview(owner_page, selected, "adjust")).ok(400).says("enter a change of load")


async def test_changed_selection_is_rejected(coach: CoachClient, owner_page: Visitor, gym: Gym) -> None:
    page = await owner_page.get(PAGE, params={"assignedProgramId": gym.program["_id"]})
    shown = await preview(owner_page, page, "clear")
    await coach.put("/coach/customers/archive", {"id": gym.ana["_id"]})
    (await owner_page.submit(shown, f"{PAGE}/clear")).ok(409).says("the selection changed to 1 client")
    assert len(await blocks_of(coach, gym.bo)) == 2


async def test_many_clients_are_changed_by_a_job(
    coach: CoachClient, owner_page: Visitor, gym: Gym, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_AT_ONCE", 1)
    shown = await preview(owner_page, await owner_page.get(PAGE, params={"all": "true"}), "clear")
    job = await owner_page.submit(shown, f"{PAGE}/clear")

    async def has_ended() -> HtmlPage | None:
        page = await owner_page.get(job.path)
        return page if "Cancel" not in page.text else None

    ended = await until(has_ended, "the job has ended")
    assert ended is not None
    ended.says("Schedule cleared", "2 clients changed", "Undo")


async def test_pages_require_permission(colleague: Colleague, gym: Gym) -> None:
    """A coach sees only the own clients; without the permission to edit there is nothing to change."""
    eli = await colleague("customers.view", "programs.view", "exercises.view")
    assert "Change for everyone" not in (await eli.get(f"/app/programs/{gym.program['_id']}")).ok().text
    assert "Used by" not in (await eli.get(f"/app/exercises/{gym.squat['_id']}")).ok().text
    (await eli.get(PAGE, params={"ids": [gym.bo["_id"]]})).ok(403)
