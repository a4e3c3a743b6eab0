"""Import of training history in the web application, of coaches and of clients."""

from __future__ import annotations

import pytest

from coaching_service.web.views import transfer
from tests.support.client import CoachClient
from tests.support.sampled import proof, some
from tests.support.transfer import ended_page
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage, Colleague

STRONG = (
    b"Date,Workout Name,Duration,Exercise Name,Set Order,Weight,Reps,Distance,Seconds,Notes,Workout Notes,RPE\n"
    b'2026-02-11 07:05:00,"Lower A",48m,"Leg Press (Machine)",W,50.0,12.0,0,0.0,"","",\n'
    b'2026-02-11 07:05:00,"Lower A",48m,"Leg Press (Machine)",1,120.0,10.0,0,0.0,"","slept badly",7.5\n'
    b'2026-02-11 07:05:00,"Lower A",48m,"Leg Press (Machine)",Rest Timer,0,0,0,120.0,"","",\n'
    b'2026-02-11 07:05:00,"Lower A",48m,"Sled of Doom",1,20,8,0,0,"","",\n'
)


async def upload(visitor: Visitor, coach: CoachClient, path: str, content: bytes) -> HtmlPage:
    """Upload a file, and open its page once it is checked."""
    address = path.partition("?")[0]
    return await ended_page(
        visitor, coach, await visitor.submit(await visitor.get(path), address, file=("strong.csv", content))
    )


async def test_a_coach_imports_the_history_of_a_client(coach: CoachClient, colleague: Colleague) -> None:
    visitor = await colleague("customers.view", "customers.edit", "exercises.view", "exercises.create")
    mara = await coach.create_customer("Mara")
    details = await visitor.get(f"/app/customers/{mara['_id']}/details")
    assert f"/app/import?customerId={mara['_id']}" in details.links

    page = await upload(visitor, coach, f"/app/import?customerId={mara['_id']}", STRONG)
    page.says("An export of Strong", "Nothing has been imported yet", "Leg Press", "New exercise: Sled of Doom")
    page.says("In which unit are the loads", "Kilograms", "Pounds", "Rests, and rows without a set", "Report as CSV")
    assert (await coach.calendar(mara, "2026-02-01", "2026-02-28")) == []

    page = await ended_page(visitor, coach, await visitor.submit(page, f"{page.path}/run", loadUnit="kg"))
    page.says("Imported.", "11 Feb 2026", "rows left out")
    [block] = await coach.calendar(mara, "2026-02-01", "2026-02-28")
    assert [each["load"] for item in block["items"] for each in item["customerSets"]] == [50, 120, 20]
    report = await visitor.get(f"{page.path}/report.csv")
    assert "NOT_A_SET" in report.html

    page = await ended_page(visitor, coach, await visitor.submit(page, f"{page.path}/undo"))
    page.says("The import was undone")
    assert (await coach.calendar(mara, "2026-02-01", "2026-02-28")) == []


async def test_a_coach_who_may_not_create_exercises_chooses(coach: CoachClient, colleague: Colleague) -> None:
    visitor = await colleague("customers.view", "customers.edit")
    mara = await coach.create_customer("Mara")
    page = await upload(visitor, coach, f"/app/import?customerId={mara['_id']}", STRONG)
    page.says("you do not have the permission to create exercises", "Choose…")
    assert "New exercise" not in page.text
    answers = {"loadUnit": "kg", "names__0__answer": "skip"}
    page = await ended_page(visitor, coach, await visitor.submit(page, f"{page.path}/run", **answers))
    page.says("Imported.", "has the name of an exercise that is left out")


async def test_names_are_matched_created_and_left_out(coach: CoachClient, owner_page: Visitor) -> None:
    mara, sled = await coach.create_customer("Mara"), await coach.create_exercise("Prowler Push")
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", STRONG)
    found = (await owner_page.get("/app/pick-exercise?keywords=prowler")).ok()
    assert f'data-exercise="{sled["_id"]}"' in found.html

    answers = {"loadUnit": "lb", "names__0__answer": sled["_id"], "names__1__answer": "skip"}
    page = await ended_page(owner_page, coach, await owner_page.submit(page, f"{page.path}/run", **answers))

    page.says("Imported.")
    [block] = await coach.calendar(mara, "2026-02-01", "2026-02-28")
    assert [(item["exercise"]["name"], item["customerSets"][0]["load"]) for item in block["items"]] == [
        ("Prowler Push", 9.07)
    ]
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", STRONG)
    assert f'<option value="{sled["_id"]}" selected>' in page.html, "the answer is remembered"


async def test_a_coach_imports_body_measurements(
    coach: CoachClient, owner_page: Visitor, client_page: ClientPage
) -> None:
    mara = await coach.create_customer("Mara")
    units = {each["shortName"]: each["_id"] for each in (await coach.get("/metrics-units")).ok()}
    metrics = [{"name": "Weight", "metricUnitId": units["kg"]}, {"name": "Mood", "metricUnitId": units["score"]}]
    made = (await coach.post("/coach/metrics-sets", {"name": "Body", "metrics": metrics})).ok(201)
    table = b"Date,Measurement,Value\n2026-02-11,Weight,81.5\n2026-02-11,Feeling,7\n2026-02-18,Weight,80.25\n"
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", table)
    page.says(
        "A table of body measurements", "Which metric is Feeling?", "Mood (score)", "In which unit are the weights"
    )
    answers = {"loadUnit": "kg", "names__0__answer": made["metrics"][1]["_id"]}
    page = await ended_page(owner_page, coach, await owner_page.submit(page, f"{page.path}/run", **answers))
    page.says("Imported.", "3 measurements", "11 Feb 2026", "Undo")

    own = await client_page(coach, mara)
    (await own.get("/train/progress")).ok().says("Weight", "80.25")
    page = await ended_page(owner_page, coach, await owner_page.submit(page, f"{page.path}/undo"))
    page.says("The import was undone", "3 measurements removed")
    assert "80.25" not in (await own.get("/train/progress")).ok().text


async def test_a_file_that_is_no_table_is_explained(coach: CoachClient, owner_page: Visitor) -> None:
    mara = await coach.create_customer("Mara")
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", b"Mood,Weather\ngood,rain\n")
    page.says("Nothing was imported.", "Mood, Weather", "The nearest is")


async def test_a_client_brings_the_own_history(coach: CoachClient, client_page: ClientPage) -> None:
    mara = await coach.create_customer("Mara")
    visitor = await client_page(coach, mara)
    (await visitor.get("/train/settings")).says("Bring your history")

    page = await upload(visitor, coach, "/train/settings/import", STRONG)
    page.says("An export of Strong")
    page = await ended_page(visitor, coach, await visitor.submit(page, f"{page.path}/run", loadUnit="kg"))

    page.says("Imported.")
    [block] = await coach.calendar(mara, "2026-02-01", "2026-02-28")
    assert block["source"]["format"] == "strong"
    page = await ended_page(visitor, coach, await visitor.submit(page, f"{page.path}/undo"))
    assert (await coach.calendar(mara, "2026-02-01", "2026-02-28")) == []


async def test_the_owner_turns_imports_of_clients_off(
    coach: CoachClient, owner_page: Visitor, client_page: ClientPage
) -> None:
    visitor = await client_page(coach, await coach.create_customer("Mara"))
    settings = "/app/settings/company"
    (await owner_page.submit(await owner_page.get(settings), settings, clientsMayImport=None)).says("Changes saved")

    page = await visitor.get("/train/settings/import")

    page.says("has turned this off")
    assert [form.action for form in page.forms if form.multipart] == []


async def test_pages_of_another_client_and_company_are_missing(coach: CoachClient, client_page: ClientPage) -> None:
    mara, kim = await coach.create_customer("Mara"), await coach.create_customer("Kim")
    own, other = await client_page(coach, mara), await client_page(coach, kim)
    page = await upload(own, coach, "/train/settings/import", STRONG)
    for path in (page.path, f"{page.path}/report.csv", f"{page.path}/exercises"):
        (await other.get(path)).ok(404)


async def test_columns_are_asked_for_and_the_file_is_checked_again(coach: CoachClient, owner_page: Visitor) -> None:
    mara = await coach.create_customer("Mara")
    sheet = b"Tag,Exercise,Reps,kg?,skip\n2026-02-11,Squat,5,100,x\n"
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", sheet)
    page.says("Which column has the date?", "Tag", "kg?", "Continue")

    page = await ended_page(
        owner_page, coach, await owner_page.submit(page, f"{page.path}/run", columns__0__answer="Tag")
    )
    page.says("Nothing has been imported yet", "Squat")
    page = await ended_page(owner_page, coach, await owner_page.submit(page, f"{page.path}/run"))
    page.says("Imported.", "11 Feb 2026")


async def test_what_a_column_has_is_asked_for(coach: CoachClient, owner_page: Visitor) -> None:
    mara = await coach.create_customer("Mara")
    sheet = b"Date,Time,Exercise,Reps\n2026-02-11,18:30,Squat,5\n2026-02-11,0:45,Plank,\n"
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", sheet)
    page.says("What does the column Time have?", "The time of day at which the session began", "How long a set took")

    page = await ended_page(
        owner_page, coach, await owner_page.submit(page, f"{page.path}/run", columns__0__name="seconds")
    )
    page.says("Nothing has been imported yet", "Squat", "Plank")
    page = await ended_page(owner_page, coach, await owner_page.submit(page, f"{page.path}/run"))
    page.says("Imported.", "11 Feb 2026")


async def test_names_that_need_an_answer_are_listed_first(
    coach: CoachClient, owner_page: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    mara = await coach.create_customer("Mara")
    monkeypatch.setattr(transfer, "MOST_NAMES", 2)
    rows = ("Squat,5,100", "Squat,5,100", "Sled of Doom,5,100", "Zorking,5,100")
    sheet = "Date,Exercise,Reps,kg\n" + "".join(f"2026-02-11,{row}\n" for row in rows)
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", sheet.encode())
    page.says("1 of 3 names means", "New exercise: Sled of Doom", "New exercise: Zorking", "Only 2 names are listed")
    assert "Squat becomes" not in page.html


@proof
async def test_a_file_with_many_names_is_imported(coach: CoachClient, owner_page: Visitor) -> None:
    mara = await coach.create_customer("Mara")
    sheet = "Date,Exercise,Reps,kg\n" + "".join(f"2026-02-11,Zorking {at},5,100\n" for at in range(101))
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", sheet.encode())
    page = await ended_page(owner_page, coach, await owner_page.submit(page, f"{page.path}/run"))
    page.says("Imported.", "11 Feb 2026")


async def test_files_mean_the_same_through_the_page(coach: CoachClient, owner_page: Visitor) -> None:
    """Thousands next to decimal commas, lists in cells, flags of warm-ups, and sets without an exercise."""
    fitbod = "Date,Exercise,Reps,Weight(kg),Duration(s),Distance(m),Incline,Resistance,isWarmup,Note,multiplier\n"
    sets: dict[str, list[tuple[float | None, float | None, float | None, bool]]] = {
        "Datum;Übung;Wdh;Gewicht (kg);Distanz (m)\n13.05.2025;Rudern;;;1.500\n13.05.2025;Kniebeuge;5;102,5;\n": [
            (None, None, 1500, False),
            (5, 102.5, None, False),
        ],
        'Date,Exercise,Sets,Reps,Weight (kg)\n2025-05-13,Squat,2,5,"100, 95"\n2025-05-13,Dip,1,10,12.5\n': [
            (5, 100, None, False),
            (5, 95, None, False),
            (10, 12.5, None, False),
        ],
        f"{fitbod}2025-05-13 10:00:00 +0000,Squat,12,20,0,0,0,0,true,,1\n"
        "2025-05-13 10:00:00 +0000,Squat,10,40,0,0,0,0,false,,1\n": [(12, 20, None, True), (10, 40, None, False)],
    }
    for text, expected in some(list(sets.items()), 1):
        client = await coach.create_customer("Mara")
        page = await upload(owner_page, coach, f"/app/import?customerId={client['_id']}", text.encode())
        page = await ended_page(owner_page, coach, await owner_page.submit(page, f"{page.path}/run", loadUnit="kg"))
        page.says("Imported.")
        [block] = await coach.calendar(client, "2025-05-13", "2025-05-13")
        stored = [each for item in block["items"] for each in item["customerSets"]]
        assert [(each["reps"], each["load"], each["meters"], each["isWarmup"]) for each in stored] == expected, text

    mara = await coach.create_customer("Mara")
    lifts = b"Date,Lift Type,Reps,Weight (kg)\n2025-05-13,Squat,5,100\n"
    page = await upload(owner_page, coach, f"/app/import?customerId={mara['_id']}", lifts)
    page.says("Which column has the name of the exercise?", "Lift Type")
    refused = await owner_page.submit(page, f"{page.path}/run")
    refused.ok(400).says("columns.0.answer is required")
    assert await coach.calendar(mara, "2025-05-13", "2025-05-13") == []
