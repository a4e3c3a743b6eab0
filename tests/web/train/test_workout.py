"""The workout page of a client, without scripts: sets, supersets, circuits, and what is hidden."""

from __future__ import annotations

import gzip
import re
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import Json, block_with, circuit_of, exercise_of, hide, log, read, task
from tests.support.visitor import HtmlForm, HtmlPage, Visitor
from tests.web.conftest import ClientPage
from tests.web.train.test_days import day

LAST_WEEK = "2026-02-23"


def set_forms(page: HtmlPage, item: Json) -> list[HtmlForm]:
    """The forms of an item's sets, in the order in which they are shown."""
    return [form for form in page.forms if form.action.endswith(f"/items/{item['_id']}/sets")]


def values(form: HtmlForm) -> dict[str, str]:
    return {name: value for name, value in form.fields if name not in ("csrf", "submission")}


async def send(browser: Visitor, form: HtmlForm, *, follow: bool = True, **typed: Any) -> HtmlPage:
    """Tap the button of a set, with other values if given."""
    data = {**dict(form.fields), "isCompleted": "true", **typed}
    return await browser.send("POST", form.action, data=data, follow=follow)


def workout(block: Json) -> str:
    return f"/train/workouts/{block['_id']}"


async def test_sets_are_prefilled_logged_and_taken_back(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    before = await block_with(coach, ana, exercise_of(squat), date=LAST_WEEK)
    done = [{"reps": 9, "load": 57.5}, {"reps": 8, "load": 57.5}]
    (await log(coach, before, before["items"][0], customerSets=done)).ok()
    warm_up = {"type": "reps_load", "minPlannedReps": 12, "load": 40, "isWarmup": True, "rest": 90}
    heavy = {"type": "reps_load", "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60, "rest": 90}
    block = await block_with(coach, ana, exercise_of(squat, warm_up, heavy, exerciseInstructions="Deep"))
    item = block["items"][0]
    browser = await client_page(coach, ana)

    page = (await browser.get(workout(block))).ok().says("Legs", "0 of 2 sets", "Rest 90 s", "warm-up", "8–10 × 60 kg")
    page.says("Last: 9 × 57.5 kg", "Last: 8 × 57.5 kg", "Deep")
    assert f"/train/exercises/{squat['_id']}" in page.links
    _, second, extra = set_forms(page, item)
    assert values(second) == {
        "index": "2", "round": "", "exerciseId": squat["_id"], "loggedAt": "", "load": "60", "loadUnit": "kg", "reps": "8",
        "rpe": "", "rir": "",
    }  # fmt: skip
    saved = await send(browser, second, load="62,5", reps="9", rpe="8")
    saved.ok().says("1 of 2 sets", "RPE 8")
    stored = (await read(coach, block))["items"][0]
    assert [(each["index"], each["load"], each["reps"], each["rpe"]) for each in stored["customerSets"]] == [
        (2, 62.5, 9, 8)
    ]
    assert "loggedAt" in stored["customerSets"][0]
    _, second, _ = set_forms(saved, item)
    assert values(second)["load"] == "62.5"
    back = await send(browser, second, isCompleted="false")
    back.ok().says("0 of 2 sets")
    assert values(set_forms(back, item)[1])["load"] == "62.5", "the values stay"

    more = await send(browser, extra, reps="7")
    more.ok().says("1 of 3 sets")
    _, _, third, fourth = set_forms(more, item)
    assert (values(third)["reps"], values(fourth)["index"]) == ("7", "4")
    for form in (set_forms(more, item)[0], set_forms(more, item)[1]):
        finished = await send(browser, form)
    finished.says("3 of 3 sets")
    assert (await read(coach, block))["isCompleted"] is True


async def test_a_corrected_set_stays_a_warm_up(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat))
    item, browser = block["items"][0], await client_page(coach, ana)
    done = [{"reps": 5, "load": 40, "isWarmup": True}, {"reps": 8, "load": 60, "setKind": "drop"}]
    (await log(coach, block, item, customerSets=done)).ok()
    first, second, *_ = set_forms((await browser.get(workout(block))).ok(), item)
    for form in (first, second):
        (await send(browser, form, reps="6")).ok()
    stored = (await read(coach, block))["items"][0]["customerSets"]
    assert [(each["reps"], each["isWarmup"], each["setKind"]) for each in stored] == [
        (6, True, "normal"),
        (6, False, "drop"),
    ]


async def test_a_set_of_an_exercise_with_a_round_is_logged(coach: CoachClient, client_page: ClientPage) -> None:
    """Scripts may send a round, which means nothing outside of circuits."""
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat))
    browser = await client_page(coach, ana)
    first = set_forms((await browser.get(workout(block))).ok(), block["items"][0])[0]
    (await send(browser, first, round="3", reps="6")).ok()
    (await send(browser, first, round="4", reps="7")).ok()
    (stored,) = (await read(coach, block))["items"][0]["customerSets"]
    assert stored["reps"] == 7


async def test_wrong_values_of_a_set_are_kept(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    block = await block_with(coach, ana, exercise_of(squat))
    item, browser = block["items"][0], await client_page(coach, ana)
    first = set_forms((await browser.get(workout(block))).ok(), item)[1]
    wrong = await send(browser, first, load="heavy", reps="8")
    wrong.ok(400).says("Load: This must be a number such as 77.5 or 77,5")
    shown = set_forms(wrong, item)
    assert [values(form)["load"] for form in shown[:3]] == ["60", "heavy", "60"]
    assert wrong.html.count('aria-invalid="true"') == 1


async def test_script_receives_the_state_and_new_records(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    earlier = await block_with(coach, ana, exercise_of(squat), date=LAST_WEEK)
    (await log(coach, earlier, earlier["items"][0], customerSets=[{"reps": 10, "load": 60}])).ok()
    block = await block_with(coach, ana, exercise_of(squat), task())
    item, browser = block["items"][0], await client_page(coach, ana)
    forms = set_forms((await browser.get(workout(block))).ok(), item)

    async def tap(at: int, **typed: str) -> Any:
        data = {**dict(forms[at].fields), "isCompleted": "true", **typed}
        async with browser._http.post(forms[at].action, data=data, headers={"Accept": "application/json"}) as reply:
            return reply.status, await reply.json()

    _, first = await tap(0, reps="8", loggedAt="2026-03-02T08:30:00.000Z")
    assert first["data"] == {
        "set": {
            "index": 1, "round": None, "exerciseId": squat["_id"], "isCompleted": True,
            "loggedAt": "2026-03-02T08:30:00.000Z",
            "reps": 8, "load": 60, "seconds": None, "meters": None, "rpe": None, "rir": None,
        },
        "item": {"_id": item["_id"], "isCompleted": False},
        "workout": {"completedSets": 1, "plannedSets": 3, "isCompleted": False},
        "records": [],
    }  # fmt: skip
    _, second = await tap(1, load="65", reps="8", loggedAt="2026-03-02T08:32:00.000Z")
    assert second["data"]["records"] == [
        {"exercise": "Squat", "text": "best estimated one-rep max: 82.3\N{NO-BREAK SPACE}kg"},
        {"exercise": "Squat", "text": "heaviest set: 65\N{NO-BREAK SPACE}kg for 8 reps"},
    ]
    _, again = await tap(1, load="65", reps="8", loggedAt="2026-03-02T08:32:00.000Z")
    assert again["data"]["records"] == []
    _, late = await tap(1, isCompleted="false", loggedAt="2026-03-02T08:31:00.000Z")
    assert late["data"]["set"]["isCompleted"] is True, "the later one wins"
    _, ahead = await tap(1, load="70", loggedAt="9999-12-31T23:59:59.999Z")
    assert ahead["data"]["set"]["loggedAt"] < "9999", "a wrong clock does not lock a set"
    (await coach.delete(f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems/{item['_id']}")).ok(204)
    status, gone = await tap(2)
    assert (status, gone["code"]) == (409, "ITEM_GONE")
    assert "Your coach has removed this from the workout" in gone["message"]
    await hide(coach, ana, block["date"])
    status, hidden = await tap(2)
    assert (status, hidden["message"]) == (404, "This workout is no longer available. Ask your coach.")


async def test_supersets_and_circuits_are_shown_by_round(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await coach.create_customer("Ana")
    squat, press, row = [await coach.create_exercise(name) for name in ("Squat", "Press", "Row")]
    short = [{"type": "reps", "minPlannedReps": 12}] * 2
    pair = [exercise_of(squat, supersetId="x"), exercise_of(press, *short, supersetId="x")]
    block = await block_with(coach, ana, *pair, circuit_of(row, squat))
    browser = await client_page(coach, ana)
    page = (await browser.get(workout(block))).ok().says("A1", "A1 Squat", "A2 Press", "Circuit, 2 rounds")
    _, _, circuit = block["items"]
    in_order = [values(form) for form in page.forms if form.action.endswith("/sets")]
    assert [(each["exerciseId"], each["round"], each["index"]) for each in in_order] == [
        (squat["_id"], "", "1"), (press["_id"], "", "1"), (squat["_id"], "", "2"), (press["_id"], "", "2"),
        (squat["_id"], "", "3"), (squat["_id"], "", "4"), (press["_id"], "", "3"),
        (row["_id"], "1", "1"), (squat["_id"], "1", "1"), (row["_id"], "2", "1"), (squat["_id"], "2", "1"),
    ]  # fmt: skip
    last = set_forms(page, circuit)[3]
    (await send(browser, last)).ok().says("1 of 9 sets")
    stored = (await read(coach, block))["items"][2]["customerSets"]
    assert [(each["round"], each["exerciseId"]) for each in stored] == [(2, squat["_id"])]


async def test_hidden_and_unknown_workouts_are_not_found(coach: CoachClient, client_page: ClientPage) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    secret = await block_with(coach, ana, exercise_of(squat), date=LAST_WEEK, name="Secret")
    (await log(coach, secret, secret["items"][0], customerSets=[{"reps": 3, "load": 123}])).ok()
    block, browser = await block_with(coach, ana, exercise_of(squat)), await client_page(coach, ana)
    (await browser.get(workout(block))).ok().says("Last: 3 × 123 kg")
    await hide(coach, ana, LAST_WEEK)
    assert "123" not in (await browser.get(workout(block))).ok().text
    (await browser.get(workout(secret))).ok(404)
    (await browser.get(f"/train/workouts/{UNKNOWN}")).ok(404)


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
