"""Finding the exercises that names mean (contract 10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.name_resolution import resolve_names
from coaching_service.people.customers import service as customers
from tests.support.client import CoachClient
from tests.support.mcp_client import TODAY, McpHttpClient, tool_change, tool_error
from tests.support.sampled import some
from tests.support.training import Json, employee_key


@pytest.fixture
async def mcp_tools(public_server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """Calls tools with the coach's key."""
    async with McpHttpClient(public_server, {"X-API-Key": coach.key or ""}) as client:
        yield client


async def resolve(coach: CoachClient, *names: str) -> list[Json]:
    """What the names mean."""
    results: list[Json] = (await coach.post("/exercises/resolve", {"names": list(names)})).ok()["results"]
    return results


# The name as a person writes it, and the exercise of the shared library that it means.
MEANT = [
    ("Romanian Deadlift", "Romanian Deadlift"),
    ("RDL", "Romanian Deadlift"),
    ("db bench press", "Dumbbell Bench Press"),
    ("  Pull-ups ", "Pull-Up"),
    ("pullups", "Pull-Up"),
    ("Dumbell bench pres", "Dumbbell Bench Press"),
    ("Walking Lunges DB", "Dumbbell Walking Lunge"),
    ("leg press machine", "Leg Press"),
    ("Seated Leg Curl (machine)", "Seated Leg Curl"),
    ("OHP", "Barbell Overhead Press"),
    ("KB swing", "Kettlebell Swing"),
    ("Gemelos", "Bodyweight Calf Raise"),
]
# The same with numbers, in several spellings.
MEANT_WITH_NUMBERS = [
    ("45° Leg Press", "Leg Press"),
    ("leg press 45º", "Leg Press"),
    ("45 degree back extensions", "Back Extension"),
    ("500 m row", "500-Meter Row Sprint"),
    ("90-90 hip switch", "90/90 Hip Switch"),
]
# Without a sure match, with an exercise that it may mean, or none.
UNSURE = [
    ("press", "Barbell Bench Press"),
    ("Dumbel benc pres", "Dumbbell Bench Press"),
    ("Seated Machine Curl", "Machine Preacher Curl"),  # not the Seated Leg Curl
    ("Half raise", "Bodyweight Calf Raise"),
    ("Captain's chair leg raise", "Captain's Chair Knee Raise"),
    ("30° back extension", "Back Extension"),
    ("45 kg leg press", "Leg Press"),
    ("400 m row", "500-Meter Row Sprint"),
    ("calves", "Bodyweight Calf Raise"),  # in Spanish its alias is Gemelos
    ("zzzz", None),
    ("???", None),
]


async def test_names_mean_the_exercises_that_people_mean(coach: CoachClient) -> None:
    results = await resolve(coach, *(name for name, _ in MEANT))
    assert [result["name"] for result in results] == [name.strip() for name, _ in MEANT]
    assert [result["match"] and result["match"]["name"] for result in results] == [meant for _, meant in MEANT]
    for result in results:
        assert 85 <= result["match"]["score"] <= 100
        assert len(result["alternatives"]) <= 3
        assert result["match"]["_id"] not in [each["_id"] for each in result["alternatives"]]
    assert [result["match"]["score"] for result in results[:2]] == [100, 100]


async def test_numbers_and_units_tell_exercises_apart(coach: CoachClient) -> None:
    results = await resolve(coach, *(name for name, _ in MEANT_WITH_NUMBERS))
    assert [result["match"] and result["match"]["name"] for result in results] == [
        meant for _, meant in MEANT_WITH_NUMBERS
    ]
    name = "Chest-supported reverse cable crossover fly at 45"
    await coach.create_exercise(f"{name} degrees")
    [degrees, kilograms] = await resolve(coach, f"{name}°", f"{name} kg")
    assert (degrees["match"]["name"], kilograms["match"]) == (f"{name} degrees", None)
    assert kilograms["alternatives"][0]["score"] >= 85, "the unit alone tells them apart"


async def test_unsure_names_have_only_alternatives(coach: CoachClient) -> None:
    results = await resolve(coach, *(name for name, _ in UNSURE))
    for result, (name, maybe) in zip(results, UNSURE, strict=True):
        names = [each["name"] for each in result["alternatives"]]
        assert result["match"] is None, name
        assert (maybe in names) if maybe else names == [], name


async def test_match_is_the_first_result_of_the_search(coach: CoachClient) -> None:
    for name in ("squat", "bench press", "lat pulldown"):
        [result] = await resolve(coach, name)
        results = (await coach.get("/exercises/unified", keywords=name, pageSize=4, pageNum=1)).ok()["docs"]
        named = [result["match"], *result["alternatives"]]
        assert [each["_id"] for each in named] == [each["_id"] for each in results][: len(named)]


async def test_own_exercises_are_found_by_name_and_alias(coach: CoachClient, other_company: CoachClient) -> None:
    own = await coach.create_exercise("Garage Zercher March", aliases=["GZM"])
    [by_name, by_alias] = await resolve(coach, "zercher march garage", "gzm")
    assert (by_name["match"], by_alias["match"]) == (
        {"_id": own["_id"], "name": "Garage Zercher March", "score": 100},
        {"_id": own["_id"], "name": "Garage Zercher March", "score": 100},
    )
    [foreign] = await resolve(other_company, "Garage Zercher March")
    assert own["_id"] not in [each["_id"] for each in [foreign["match"] or {"_id": None}, *foreign["alternatives"]]]
    (await coach.delete(f"/exercises/{own['_id']}")).ok(204)
    [deleted] = await resolve(coach, "gzm")
    assert deleted["match"] is None


async def test_own_exercise_is_meant_before_a_shared_one_of_the_same_name(coach: CoachClient) -> None:
    own = await coach.create_exercise("Leg Press")
    [result] = await resolve(coach, "leg press")
    assert result["match"]["_id"] == own["_id"]
    assert "Leg Press" in [each["name"] for each in result["alternatives"]], "the shared one"
    second = await coach.create_exercise("Leg press")
    [result] = await resolve(coach, "leg press")
    assert result["match"] is None
    assert {own["_id"], second["_id"]} <= {each["_id"] for each in result["alternatives"]}


@pytest.mark.usefixtures("wednesday")
async def test_long_name_is_found_only_by_exactly_this_name(coach: CoachClient, mcp_tools: McpHttpClient) -> None:
    long = f"Coach's Zercher-march, {'with a heavy sandbag and ' * 3}24 kg of chains"
    await coach.create_exercise(long)
    ana = await coach.create_customer("Ana")
    (await coach.post("/exercises/resolve", {"names": ["x" * 81]})).refused(400, "names")

    async def create(name: str) -> Json:
        arguments = {"customerId": ana["_id"], "name": "Legs", "date": TODAY}
        return await mcp_tools.call("create_workout", **arguments, exercises=[{"name": name, "sets": "3x8"}])

    tool_change(await create(long))
    tool_error(await create(long.replace("24", "32")), "no exercise has this name")


async def test_names_are_resolved_outside_of_the_transaction(coach: CoachClient) -> None:
    attempts = []

    async def work(ctx: Context) -> list[Any]:
        attempts.append(ctx)
        await customers.lock_and_mark_figures(ctx, ObjectId(ana["_id"]))
        return await resolve_names(ctx, ["Leg press", "Wibble"]) + await resolve_names(ctx, ["Wibble"])

    ana = await coach.create_customer("Ana")
    press, wibble, again = await in_transaction(coach.ctx, work)
    assert (press["match"]["name"], wibble["match"], again) == ("Leg Press", None, wibble)
    assert len(attempts) == 2, "the first ended for the names, the second had them"
    assert coach.ctx.resolved == {}, "another transaction resolves them again"


async def test_one_to_fifty_names_are_required(coach: CoachClient) -> None:
    wrong: tuple[Any, ...] = ([], ["a"] * 51, [" "], [1], "a")
    for body in ({}, *({"names": names} for names in wrong)):
        (await coach.post("/exercises/resolve", body)).refused(400, "names")
    assert len(await resolve(coach, *["squat"] * 50)) == 50


async def test_read_only_key_may_resolve_names(coach: CoachClient) -> None:
    session = await coach.interactive()
    body = {"name": "Reader", "restrictions": {"readOnly": True}}
    reader = coach.with_key((await session.post("/coach/api-keys", body)).ok(201)["key"])
    assert (await resolve(reader, "squat"))[0]["match"]
    (await reader.post("/exercises", {"name": "Mine"})).refused(403)
    eli = coach.with_key(await employee_key(coach, "customers.view"))
    (await eli.post("/exercises/resolve", {"names": ["squat"]})).refused(403)


async def test_spanish_names_and_aliases_of_the_company_are_understood(coach: CoachClient) -> None:
    [deadlift] = await resolve(coach, "Romanian Deadlift")
    path = f"/exercises/{deadlift['match']['_id']}/override"
    (await coach.put(path, {"aliases": ["Olga's hinge"]})).ok()
    [own, spanish] = await resolve(coach, "olga's hinge", "peso muerto rumano")
    for result in (own, spanish):
        assert result["match"] == {"_id": deadlift["match"]["_id"], "name": "Romanian Deadlift", "score": 100}


@pytest.mark.usefixtures("wednesday")
@pytest.mark.parametrize("hidden", some(["\u200b", "\u00ad", "\u2060", "\ufeff"], 2))
async def test_characters_without_a_shape_make_no_other_name(
    coach: CoachClient, mcp_tools: McpHttpClient, hidden: str
) -> None:
    """As in names copied from web pages: tools show none, and the list and the text of a workout find the exercise."""
    own, client = await coach.create_exercise(f"Zer{hidden}cher carry"), await coach.create_customer()
    for name in ("Zercher carry", f"Zercher{hidden} carry", f"zercher ca{hidden}rry"):
        [result] = await resolve(coach, name)
        assert result["match"] == {"_id": own["_id"], "name": own["name"], "score": 100}, name
        found = (await coach.get("/exercises/unified", pageSize=5, pageNum=1, keywords=name)).ok()["docs"]
        assert found[0]["_id"] == own["_id"], name
    for text in ("Zercher carry: 2x20m", f"Zer{hidden}cher carry: 2x20m"):
        days = [{"date": TODAY, "name": "A", "text": text}]
        planned = tool_change(await mcp_tools.call("create_workout", customerId=client["_id"], days=days))
        assert "Read «" not in planned["summary"]
    assert [item["exerciseId"] for block in await coach.calendar(client, TODAY, TODAY) for item in block["items"]] == [
        own["_id"]
    ] * 2
