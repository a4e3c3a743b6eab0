"""The pages of workout templates: made, edited like any workout, and added to days of clients and programs."""

from __future__ import annotations

from coaching_service.core.fields import input_of
from coaching_service.training.workouts.blocks.models import WorkoutSettings
from tests.mcp.test_planned_fields import values_of
from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.training import Json
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage
from tests.web.test_programs import base, page_of, plan_of

LIST = "/app/templates"


async def stored(coach: CoachClient, template: Json | str) -> Json:
    identifier = template if isinstance(template, str) else template["_id"]
    result: Json = (await coach.get(f"/coach/workout-templates/{identifier}")).ok()
    return result


async def test_a_template_is_made_and_edited_like_a_workout(coach: CoachClient, owner_page: Visitor) -> None:
    squat, row = await coach.create_exercise("Squat"), await coach.create_exercise("Row")
    page = (await owner_page.get(LIST)).ok().says("No templates yet", "Exercises Programs Templates")
    fields = {"name": "Legs A", "type": "strength", "text": "Squat: 3x8 @60kg\nRow: 2x10"}
    page = (
        (await owner_page.submit(page, LIST, **fields)).ok().says("Legs A created.", "3 × 8 × 60 kg", "Row", "strength")
    )
    here = page.path.partition("#")[0]
    template = await stored(coach, here.rpartition("/")[2])
    first, second = (f"{here}/items/{item['_id']}" for item in template["items"])

    page = await owner_page.submit(page, f"{first}/card", sets__0__load="62,5")
    page.ok().says("Changes saved.", "1 × 8 × 62.5 kg")
    (await owner_page.submit(page, f"{second}/move", place="1")).ok().says("Moved.")
    page = await owner_page.submit(await owner_page.get(here), f"{here}/items", exerciseId=row["_id"], circuit="new")
    page = await owner_page.submit(page, page.path + "/circuit", circuitName="Finisher", rounds="4")
    page.ok().says("Finisher, 4 rounds")
    (await owner_page.submit(page, f"{here}/tasks", title="Stretch")).ok().says("Stretch added.")
    (await owner_page.submit(await owner_page.get(here), f"{second}/delete")).ok().says("Item removed.")
    edit = (await owner_page.get(f"{here}/edit")).ok()
    (await owner_page.submit(edit, f"{here}/edit", name="Legs B", tags="home\nshort")).ok().says(
        "Changes saved.", "home"
    )
    (await owner_page.submit(edit, f"{here}/edit", name="Too late")).ok(409).says("has been changed since")

    after = await stored(coach, template)
    assert (after["name"], after["type"], after["tags"]) == ("Legs B", "strength", ["home", "short"])
    assert [item["type"] for item in after["items"]] == ["EXERCISE", "CIRCUIT", "TASK"]
    assert after["items"][0]["exerciseId"] == squat["_id"]
    assert [each["load"] for each in after["items"][0]["exerciseSets"]] == [62.5, 60, 60]
    (await owner_page.get(f"{LIST}?keywords=short")).ok().says("Legs B", "Squat, Finisher, 4 rounds, Stretch")
    (await owner_page.get(f"{LIST}?keywords=gym")).ok().says("No template matches")
    confirmation = (await owner_page.get(f"{here}/delete")).ok().says("Its 3 items will be deleted.")
    page = (await owner_page.submit(confirmation, f"{here}/delete")).ok().says("Legs B deleted.", "No templates yet")
    (undo,) = (form.action for form in page.forms if form.action.endswith("/undo"))
    (await owner_page.submit(page, undo)).ok().says("Undone", "Legs B")


async def test_two_users_edit_a_template_at_the_same_time(coach: CoachClient, owner_page: Visitor) -> None:
    squat = await coach.create_exercise("Squat")
    body = {"name": "Legs", "items": [training.exercise_of(squat, {"type": "reps", "minPlannedReps": 8})]}
    template = (await coach.post("/coach/workout-templates", body)).ok(201)
    here = f"{LIST}/{template['_id']}"
    card = f"{here}/items/{template['items'][0]['_id']}/card"
    page = (await owner_page.get(here)).ok()
    (await coach.patch(f"/coach/workout-templates/{template['_id']}", {"tags": ["new"]})).ok()

    (await owner_page.submit(page, card, sets__0__reps="5")).ok(409).says("has been changed since")

    assert (await stored(coach, template))["items"][0]["exerciseSets"][0]["minPlannedReps"] == 8


async def test_a_workout_is_saved_as_template_and_added_to_days(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await training.block_with(coach, ana, training.exercise_of(squat))
    (await training.log(coach, block, block["items"][0], customerSets=[{"reps": 5, "load": 80}])).ok()
    path = f"/app/customers/{ana['_id']}/blocks/{block['_id']}"
    saved = await owner_page.submit(await owner_page.get(path), f"{path}/template", name="Élan")
    saved.ok().says("Template Élan created.", "Squat")
    assert "80 kg" not in saved.text, "what was done is not part of the template"

    week, blocks = f"/app/customers/{ana['_id']}", f"/app/customers/{ana['_id']}/blocks"
    page = await owner_page.get(f"{week}?week=2026-03-09")
    unknown = await owner_page.submit(page, blocks, template="Elan 2")
    unknown.ok(400).says("This must be the name of a template.")
    (await owner_page.submit(page, blocks, template="Elan", isRest="true")).ok(400).says("must be empty for a rest day")
    (await owner_page.submit(page, blocks, template="elan", text="Squat: 1x5")).ok().says("Élan added.")
    (await owner_page.submit(page, blocks, template="élan", name="Short")).ok().says("Short added.")
    program = await base(coach)
    page = await owner_page.get(page_of(program))
    (await owner_page.submit(page, f"{page_of(program)}/blocks", template="Élan", day="3")).ok().says("Élan added.")

    calendar = await coach.calendar(ana, end="2026-03-15")
    assert [(each["name"], len(each["items"])) for each in calendar] == [(block["name"], 1), ("Élan", 2), ("Short", 1)]
    assert [each["date"] for each in calendar] == [MONDAY, "2026-03-09", "2026-03-09"]
    assert not any(item["isCompleted"] for each in calendar[1:] for item in each["items"])
    assert [(each["name"], each["day"]) for each in await plan_of(coach, program)] == [("Élan", 3)]
    (await coach.post("/coach/workout-templates", {"name": "ELAN"})).ok(201)
    page = await owner_page.submit(await owner_page.get(week), blocks, template="Élan")
    page.ok(400).says("is the name of several templates")


async def test_pages_take_and_show_every_setting_of_workouts(
    coach: CoachClient, owner_page: Visitor, client_page: ClientPage
) -> None:
    """The settings come from their declaration, so that one that is added later is tested as well."""
    ana = await coach.create_customer("Ana")
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    values = values_of(input_of(WorkoutSettings)().fields, {})
    typed = {"name": "Legs", **{name: str(value) for name, value in values.items()}}
    words = ["Legs", *(f"{name.lower()} {value}" for name, value in typed.items() if name != "name")]
    missing: list[str] = []

    async def send(page: HtmlPage, action: str, **fields: str) -> HtmlPage:
        missing.extend(f"{name}: form {action}" for name in typed if name not in page.form(action).controls)
        page = (await owner_page.submit(page, action, **fields)).ok()
        return page

    def require_words(page: HtmlPage) -> None:
        text = page.ok().text.lower()
        missing.extend(f"{each}: page {page.path}" for each in words if each.lower() not in text)

    page = await send(await owner_page.get(LIST), LIST, text="task: Walk", **typed)
    require_words(page)
    week, days = f"/app/customers/{ana['_id']}?week={MONDAY}", f"/app/programs/{program['_id']}/blocks"
    added = f"/app/customers/{ana['_id']}/blocks"
    for fields in ({"template": "Legs"}, {"template": "Legs", **typed}, {"text": "task: Walk", **typed}):
        await send((await owner_page.get(week)).ok(), added, date=MONDAY, **fields)
        await send(await owner_page.get(f"/app/programs/{program['_id']}"), days, day="1", **fields)
    (await owner_page.submit(await owner_page.get(week), added, date=MONDAY, name="Plain")).ok()
    blocks = await coach.calendar(ana)
    [plain] = [block for block in blocks if block["name"] == "Plain"]
    path = f"/app/customers/{ana['_id']}/blocks/{plain['_id']}"
    require_words(await send(await owner_page.get(path), path, **typed))
    template = (await coach.get("/coach/workout-templates")).ok()[0]
    edit = await owner_page.get(f"{LIST}/{template['_id']}/edit")
    require_words(await send(edit, f"{LIST}/{template['_id']}/edit", **typed))
    for block in await coach.calendar(ana):
        page = await (await client_page(coach, ana)).get(f"/train/workouts/{block['_id']}")
        require_words(page)
        assert {name: block[name] for name in values} == values
    listed = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=7)).ok()
    assert [{name: block[name] for name in typed} for block in listed] == 3 * [{"name": "Legs", **values}]
    assert missing == []
