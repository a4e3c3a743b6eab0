"""`Prefer: handling=strict`: unknown query parameters and body fields are errors (contract 14, strictness)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.test_uploads import form, picture
from tests.support.client import CoachClient, Reply
from tests.support.training import block_with, client_path, exercise_of, path_of, task

STRICT = {"Prefer": "handling=strict"}
PAGE = "/coach/customers?archived=false&pageSize=1&pageNum=1"


def unknown(reply: Reply) -> list[str]:
    """The unknown fields that a response names."""
    errors: list[dict[str, Any]] = reply.refused(400)["errors"]
    assert {error["code"] for error in errors} == {"UNKNOWN_FIELD"}
    assert reply.headers["Preference-Applied"] == "handling=strict"
    return [error["field"] for error in errors]


@pytest.mark.parametrize(
    "prefer", ["handling=strict", "Handling = Strict", 'wait=5, handling="strict"; why=tests', "handling=strict;a=b"]
)
async def test_unknown_parameters_are_refused_on_request(coach: CoachClient, prefer: str) -> None:
    headers = {"Prefer": prefer}
    assert unknown(await coach.send("GET", f"{PAGE}&contain=ana&order=name", headers=headers)) == ["contain", "order"]
    assert unknown(await coach.send("GET", "/me?verbose=1", headers=headers)) == ["verbose"]
    known = await coach.send("GET", PAGE, headers=headers)
    assert (known.status, known.headers["Preference-Applied"]) == (200, "handling=strict")


@pytest.mark.parametrize("prefer", ["", "handling=lenient", "return=minimal", "handling=lenient, handling=strict"])
async def test_unknown_names_are_ignored_otherwise(coach: CoachClient, prefer: str) -> None:
    reply = await coach.send("GET", f"{PAGE}&contain=ana", headers={"Prefer": prefer})
    assert reply.status == 200
    assert "Preference-Applied" not in reply.headers
    created = await coach.post("/coach/customers", {"name": "Ana", "sirname": "Flores"}, headers={"Prefer": prefer})
    created.ok(201)


async def test_unknown_fields_are_refused_at_any_depth(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    assert unknown(await coach.post("/coach/customers", {"name": "Bo", "sirname": "X"}, headers=STRICT)) == ["sirname"]
    item = exercise_of(squat, {"type": "reps", "minPlannedReps": 5, "repz": 6})
    block = {"name": "Legs", "date": "2026-03-02", "items": [item, task() | {"titel": "Run"}], "colour": "red"}
    path = client_path(ana, "wblocks")
    refused = unknown(await coach.post(path, block, headers=STRICT))
    assert sorted(refused) == ["colour", "items.0.exerciseSets.0.repz", "items.1.titel"]
    assert await coach.calendar(ana) == []
    (await coach.post(path, {"name": "Legs", "date": "2026-03-02", "items": [task()]}, headers=STRICT)).ok(201)
    assert await coach.names() == ["Ana"]


async def test_fields_of_another_type_than_the_stored_one_are_refused(coach: CoachClient) -> None:
    block = await block_with(coach, await coach.create_customer(), task())
    path = f"{path_of(block)}/witems/{block['items'][0]['_id']}"
    change = {"taskFields": {"title": "Run", "tittle": "Walk"}, "circuitName": "Finisher"}
    reply = await coach.send("PATCH", path, json=change, headers=STRICT)
    assert sorted(unknown(reply)) == ["circuitName", "taskFields.tittle"]
    (await coach.send("PATCH", path, json=change)).ok()


async def test_unknown_parts_of_an_upload_are_refused(coach: CoachClient) -> None:
    path = client_path(await coach.create_customer(), "progress-photos")
    fields = {"createdAt": "2026-03-02", "imageSideIndex": "1"}
    sent = form(picture(), **fields, note="front")
    assert unknown(await coach.send("POST", path, data=sent, headers=STRICT)) == ["note"]
    assert (await coach.get(path, pageSize=1, pageNum=1)).ok()["totalDocs"] == 0
    (await coach.send("POST", path, data=form(picture(), **fields), headers=STRICT)).ok(201)


@pytest.mark.parametrize("name", ["groups[]", "groups[0]", "groups[a][b]", "archived[]", "pageSize[0]", "ids[0]"])
async def test_brackets_after_a_known_parameter_are_refused(coach: CoachClient, name: str) -> None:
    """Such a parameter is never meant to be ignored."""
    query = {"archived": "false", "pageSize": "3", "pageNum": "1", name: "Runners"}
    refused = (await coach.get("/coach/customers", **query)).refused(400)
    assert [(each["field"], each["code"]) for each in refused["errors"]] == [(name, "BRACKETS")]


async def test_brackets_after_an_unknown_parameter_are_ignored(coach: CoachClient) -> None:
    (await coach.get("/coach/customers", archived="false", pageSize="3", pageNum="1", **{"color[]": "x"})).ok()
    (await coach.get("/coach/events", limit="3", **{"types[]": "customer.created"})).refused(400, "repeat")
