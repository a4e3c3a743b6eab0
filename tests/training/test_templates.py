"""Workout templates: stored, listed, changed, and applied to a calendar."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.training import Json, block_with, client_path, exercise_of, log, one_of_each, read, task, titles

PATH = "/coach/workout-templates"


async def create(coach: CoachClient, name: str = "Short", **fields: Any) -> Json:
    template: Json = (await coach.post(PATH, {"name": name, **fields})).ok(201)
    return template


async def list_names(coach: CoachClient, **query: str) -> list[str]:
    return [template["name"] for template in (await coach.get(PATH, **query)).ok()]


async def apply(coach: CoachClient, template: Json, customer: Json, date: str = MONDAY, **options: Any) -> Reply:
    body = {"customerId": customer["_id"], "date": date}
    return await coach.post(f"{PATH}/{template['_id']}/apply", body, **options)


async def test_templates_are_filtered_by_type_tag_and_keywords(coach: CoachClient, other_company: CoachClient) -> None:
    """Contract 6: workout templates: optional query `type`, `tag`, `q`; a plain array."""
    await create(coach, "zeta Legs", type="strength", tags=["home", "short"])
    await create(coach, "Álpha legs", type="strength", tags=["gym"])
    await create(coach, "Mobility", type="mobility", tags=["home"])
    await create(coach, "Untyped")
    await create(other_company, "theirs", type="strength")

    all_names = ["Álpha legs", "Mobility", "Untyped", "zeta Legs"]
    for query, expected in [
        ({}, all_names),
        ({"type": "strength"}, ["Álpha legs", "zeta Legs"]),
        ({"type": "Strength"}, []),
        ({"type": "streng"}, []),
        ({"tag": "home"}, ["Mobility", "zeta Legs"]),
        ({"tag": "hom"}, []),
        ({"q": "LEGS"}, ["Álpha legs", "zeta Legs"]),
        ({"q": "alpha"}, ["Álpha legs"]),
        ({"q": "legs alph"}, ["Álpha legs"]),
        ({"q": "ob"}, ["Mobility"]),
        ({"q": "gym"}, ["Álpha legs"]),
        ({"q": "strength"}, []),
        ({"q": "  "}, all_names),
        ({"q": ".*"}, []),
        ({"q": "\0"}, []),
        ({"q": "legs", "tag": "home", "type": "strength"}, ["zeta Legs"]),
        ({"q": "legs", "tag": "home", "type": "mobility"}, []),
    ]:
        assert await list_names(coach, **query) == expected, query


async def test_template_has_items_of_every_type(coach: CoachClient) -> None:
    """Contract 6: `{_id, name, type, tags[], items[]}`."""
    items = await one_of_each(coach)

    template = await create(coach, "Full", type="strength", tags=["a", "b", "a"], items=items)

    assert (template["name"], template["type"], template["tags"], template["version"]) == (
        "Full",
        "strength",
        ["a", "b"],
        0,
    )
    assert [(item["order"], item["type"]) for item in template["items"]] == [
        (at, item["type"]) for at, item in enumerate(items)
    ]
    assert template["items"][0]["exercise"]["name"] == "Squat"
    assert template["items"][0]["exerciseSets"][0]["variables"][1]["unit"] == "kg"
    assert (await coach.get(f"{PATH}/{template['_id']}")).ok() == template
    assert (await coach.get(PATH)).ok() == [template]
    bare = await create(coach, "Bare")
    assert (bare["type"], bare["tags"], bare["items"]) == (None, [], [])
    (await coach.patch("/coach/account", {"loadUnit": "lb"})).refused(409), "a load is stored in it"


async def test_template_is_applied_to_a_date(coach: CoachClient) -> None:
    """Apply to a date."""
    ana = await coach.create_customer()
    template = await create(coach, "Full", items=await one_of_each(coach))
    await coach.schedule(ana, TUESDAY)

    block = (await apply(coach, template, ana, TUESDAY)).ok(201)

    assert (block["name"], block["date"], block["order"], block["isRest"]) == ("Full", TUESDAY, 1, False)
    assert (block["programId"], block["day"], block["isCompleted"]) == (None, None, False)
    stamps = ("_id", "createdAt", "updatedAt", "version")
    assert [{k: v for k, v in item.items() if k not in stamps} for item in block["items"]] == [
        {k: v for k, v in item.items() if k not in stamps} for item in template["items"]
    ]
    assert not {item["_id"] for item in block["items"]} & {item["_id"] for item in template["items"]}
    assert await read(coach, block) == block
    for item in block["items"]:
        (await log(coach, block, item)).ok()
    assert (await coach.get(f"{PATH}/{template['_id']}")).ok() == template, "what was done is not the template's"
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["lastWorkoutDate"] == TUESDAY


async def test_applying_requires_client_date_and_template(coach: CoachClient, other_company: CoachClient) -> None:
    ana, template = await coach.create_customer(), await create(coach)
    stranger, theirs = await other_company.create_customer(), await create(other_company)
    client_error = (await apply(coach, template, {"_id": UNKNOWN})).refused(404, "Customer")
    assert (await apply(coach, template, stranger)).refused(404) == client_error
    template_error = (await apply(coach, {"_id": UNKNOWN}, ana)).refused(404, "Workout template")
    assert (await apply(coach, theirs, ana)).refused(404) == template_error
    for wrong in (None, "2026-02-29", 5):
        (await coach.post(f"{PATH}/{template['_id']}/apply", {"customerId": ana["_id"], "date": wrong})).refused(
            400, "date"
        )
    (await coach.post(f"{PATH}/{template['_id']}/apply", {"date": MONDAY})).refused(400, "customerId")
    assert await coach.calendar(ana) == []
    key = {"Idempotency-Key": "apply-1"}
    assert (await apply(coach, template, ana, headers=key)).ok(201) == (
        await apply(coach, template, ana, headers=key)
    ).ok(201)
    assert len(await coach.calendar(ana)) == 1


async def test_template_is_changed_and_its_items_replaced(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    template = await create(coach, "Before", type="strength", tags=["old"], items=[task("a"), task("b")])
    path = f"{PATH}/{template['_id']}"
    block = (await apply(coach, template, ana)).ok(201)

    changed = (await coach.patch(path, {"name": "After", "tags": ["new"], "version": 0})).ok()
    assert (changed["name"], changed["tags"], changed["type"], titles(changed)) == (
        "After",
        ["new"],
        "strength",
        ["a", "b"],
    )
    assert (
        await list_names(coach, q="after"),
        await list_names(coach, q="before"),
        await list_names(coach, tag="old"),
    ) == (
        ["After"],
        [],
        [],
    )
    replaced = (await coach.patch(path, {"items": [task("c")], "type": None})).ok()
    assert (titles(replaced), replaced["type"], replaced["version"]) == (["c"], None, 2)
    (await coach.patch(path, {"name": "x", "version": 1})).refused(409)
    (await coach.patch(path, {"version": 1})).refused(409)
    assert (await coach.patch(path, {})).ok() == replaced
    assert (await coach.patch(path, {"tags": None})).ok()["tags"] == []
    assert titles(await read(coach, block)) == ["a", "b"], "blocks template from it stay as they are"

    (await coach.delete(path)).ok(204)
    for gone in (await coach.get(path), await coach.delete(path), await coach.patch(path, {"name": "x"})):
        gone.refused(404, "Workout template")
    assert await read(coach, block) == block


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": " "}, "name"),
        ({"type": 5}, "type"),
        ({"tags": "home"}, "tags"),
        ({"tags": [5]}, "tags.0"),
        ({"items": {}}, "items"),
        ({"items": [{"type": "DANCE"}]}, "items.0.type"),
        ({"items": [task(), {"type": "TASK"}]}, "items.1.taskFields"),
        ({"items": [{"type": "EXERCISE", "exerciseId": "x", "exerciseSets": []}]}, "items.0.exerciseId"),
        ({"items": [task()] * 101}, "items"),
    ],
)
async def test_invalid_template_is_rejected_with_its_field(
    coach: CoachClient, fields: dict[str, Any], field: str
) -> None:
    error = (await coach.post(PATH, {"name": "A", **fields})).refused(400)
    assert [message for message in error["message"] if message.startswith(field + " ")], error
    template = await create(coach)
    (await coach.patch(f"{PATH}/{template['_id']}", fields)).refused(400)
    assert (await coach.get(PATH)).ok() == [template]


async def test_template_requires_documents_of_the_company(coach: CoachClient, other_company: CoachClient) -> None:
    theirs, ours = await other_company.create_exercise(), await coach.create_exercise("Garage Squat")
    template = await create(coach)
    for wrong in ({"_id": UNKNOWN}, theirs):
        (await coach.post(PATH, {"name": "A", "items": [task(), exercise_of(wrong)]})).refused(404, "Exercise")
        (await coach.patch(f"{PATH}/{template['_id']}", {"items": [exercise_of(wrong)]})).refused(404, "Exercise")
    assert (await coach.get(PATH)).ok() == [template]
    stored = await create(coach, "Kept", items=[exercise_of(ours)])
    (await coach.delete(f"/exercises/{ours['_id']}")).ok(204)
    block = (await apply(coach, stored, await coach.create_customer())).ok(201)
    assert block["items"][0]["exercise"]["name"] == "Garage Squat"


async def test_template_keeps_the_form_as_it_was(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    form = (await coach.post("/coach/forms", {"name": "Check-in", "questions": [{"label": "Well?"}]})).ok(201)
    template = await create(coach, items=[{"type": "FORM", "form": {"formId": form["_id"]}}])
    (await coach.delete(f"/coach/forms/{form['_id']}")).ok(204)
    assert (await apply(coach, template, ana)).ok(201)["items"][0]["form"] == template["items"][0]["form"]
    assert (await block_with(coach, ana, task()))["order"] == 1


async def test_q_finds_all_kinds_of_apostrophes(coach: CoachClient) -> None:
    (await coach.post("/coach/workout-templates", {"name": "Farmer’s day", "type": "strength"})).ok(201)
    for q in ("farmer's", "Farmer’s day"):
        assert [each["name"] for each in (await coach.get("/coach/workout-templates", q=q)).ok()] == ["Farmer’s day"]


async def test_template_with_a_deleted_exercise_can_be_changed(coach: CoachClient) -> None:
    squat = await coach.create_exercise()
    template = await create(coach, items=[exercise_of(squat)])
    (await coach.delete(f"/exercises/{squat['_id']}")).ok(204)
    path = f"{PATH}/{template['_id']}"
    assert len((await coach.patch(path, {"items": [task(), exercise_of(squat)]})).ok()["items"]) == 2
    (await coach.patch(path, {"items": [task()]})).ok()
    (await coach.patch(path, {"items": [exercise_of(squat)]})).refused(404, "items.0.exerciseId")
