"""Loads that are probably typing errors are asked about before they are saved."""

from __future__ import annotations

from typing import Any

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.visitor import HtmlPage, Visitor

CONFIRM = "The load is right"


async def heavy(coach: CoachClient, *, load: float = 60) -> tuple[str, dict[str, Any]]:
    """Return the path of a workout with a squat and a circuit, and the workout."""
    ana = await coach.create_customer("Ana")
    squat = await coach.create_exercise("Zercher squat")
    planned = {"type": "reps_load", "minPlannedReps": 8, "load": load}
    block = await training.block_with(
        coach, ana, training.exercise_of(squat, planned, planned), training.circuit_of(squat, rounds=2)
    )
    return f"/app/customers/{ana['_id']}/blocks/{block['_id']}", block


async def loads(coach: CoachClient, block: dict[str, Any]) -> list[Any]:
    return [each["load"] for each in (await training.read(coach, block))["items"][0]["exerciseSets"]]


def asked(page: HtmlPage, message: str) -> HtmlPage:
    """Assert that a page asks about a load."""
    return page.ok(400).says(message, CONFIRM)


async def test_planned_loads_are_asked_about(coach: CoachClient, owner_page: Visitor) -> None:
    path, block = await heavy(coach)
    item = f"{path}/items/{block['items'][0]['_id']}"
    page = await owner_page.get(path)
    wrong = asked(
        await owner_page.submit(page, f"{item}/card", sets__1__load="600"),
        "Load, kg: This load of 600 kg is more than 500 kg.",
    )
    assert wrong.form(f"{item}/card").controls["sets.1.load"]["aria-invalid"] == "true"
    assert "aria-invalid" not in wrong.form(f"{item}/card").controls["sets.0.load"]
    assert await loads(coach, block) == [60, 60]
    (await owner_page.submit(wrong, f"{item}/card", confirmed="true")).ok().says("Changes saved.")
    assert await loads(coach, block) == [60, 600]
    page = await owner_page.get(path)
    (await owner_page.submit(page, f"{item}/card", sets__0__load="580")).ok(), "a load like those before"

    page = await owner_page.get(item)
    (await owner_page.submit(page, f"{item}/set-text", setText="1x8 @20kg")).ok()
    page = await owner_page.get(item)
    far = await owner_page.submit(page, f"{item}/set-text", setText="2x8 @125kg")
    asked(far, "This load of 125 kg is more than five times the highest before, 20 kg.")
    asked(await owner_page.submit(page, f"{item}/sets", sets__0__load="101"), "Load, kg: This load of 101 kg")
    (await owner_page.submit(page, f"{item}/sets", sets__0__load="100")).ok().says("Changes saved.")
    page = await owner_page.get(item)
    (await owner_page.submit(page, f"{item}/set-text", setText="2x8 @501kg", confirmed="true")).ok()
    assert await loads(coach, block) == [501, 501]


async def test_loads_of_circuits_logs_and_maximums_are_asked_about(coach: CoachClient, owner_page: Visitor) -> None:
    path, block = await heavy(coach)
    squat, circuit = block["items"]
    entry = f"{path}/items/{circuit['_id']}/exercises/{squat['exerciseId']}"
    page = await owner_page.get(path)
    asked(await owner_page.submit(page, f"{entry}/card", sets__0__load="501"), "Load, kg: This load of 501 kg")
    asked(await owner_page.submit(await owner_page.get(entry), entry, sets__0__load="501"), "This load of 501 kg")

    log = f"{path}/items/{squat['_id']}/log"
    page = await owner_page.get(log)
    typed = {"customerSets__0__load": "625", "customerSets__0__isCompleted": "true"}
    wrong = asked(await owner_page.submit(page, f"{log}/exercise", **typed), "Load, kg: This load of 625 kg")
    (await owner_page.submit(wrong, f"{log}/exercise", customerSets__0__load="62,5")).ok().says("Log saved.")

    customer = path.partition("/blocks")[0]
    records = f"{customer}/records"
    page = await owner_page.get(f"{records}?exerciseId={squat['exerciseId']}")
    chosen = {"exerciseId": squat["exerciseId"]}
    (await owner_page.submit(page, records, **chosen, value="90")).ok().says("Changes saved.")
    asked(await owner_page.submit(page, records, **chosen, value="900"), "This load of 900 kg is more than 500 kg.")
    asked(await owner_page.submit(page, records, **chosen, value="455"), "more than five times the highest before")


async def test_loads_of_text_are_asked_about_in_the_unit_of_the_company(
    coach: CoachClient, owner_page: Visitor
) -> None:
    (await coach.patch("/coach/account", {"loadUnit": "lb"})).ok()
    path, _ = await heavy(coach, load=100)
    customer = path.partition("/blocks")[0]
    text = "Zercher squat: 3x8 @1200lb"
    for address, action, more in (
        (f"{customer}?week={MONDAY}", f"{customer}/blocks", {"name": "Legs"}),
        (path, f"{path}/text", {}),
        ("/app/templates", "/app/templates", {"name": "Legs"}),
    ):
        page = await owner_page.get(address)
        wrong = asked(
            await owner_page.submit(page, action, text=text, **more), "This load of 1,200 lb is more than 1,100 lb."
        )
        (await owner_page.submit(wrong, action, text=text.replace("1200", "1100"), **more)).ok()
        page = await owner_page.get(address)
        (await owner_page.submit(page, action, text=text, confirmed="true", **more)).ok()
    page = await owner_page.get("/app/programs")
    program = {"name": "Base", "text": f"Day 1: Legs\n{text}"}
    wrong = asked(await owner_page.submit(page, "/app/programs", **program), "This load of 1,200 lb")
    (await owner_page.submit(wrong, "/app/programs", confirmed="true")).ok().says("Base created.")
