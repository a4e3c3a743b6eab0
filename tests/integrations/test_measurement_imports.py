"""Imports of tables of body measurements: they become values of metrics, and never clients."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pytest

from coaching_service.integrations.company_import import service as company_import
from coaching_service.people import team
from tests.support.client import CoachClient
from tests.support.imported_history import events
from tests.support.sampled import proof
from tests.support.training import employee_key
from tests.support.transfer import ended, import_file, pick, send, undo

LONG = b"""date,name,value,unit
2026-01-05,Weight,180,lb
2026-01-05,Waist,33.5,in
2026-01-12,Gewicht,81.2,kg
2026-01-12,Mood,7,
2026-01-12,Waist,-3,cm
2026-01-13,Waist,85,furlong
"""
HEVY = b""""date","weight_kg","fat_percent","neck_cm","waist_cm","left_bicep_cm"
"17 Nov 2025, 00:00",82.5,18.5,,86,
"18 Nov 2025, 00:00",82.1,,38,,36.5
"19 Nov 2025, 00:00",,,,,
"""
UNITS = {"Weight": "kg", "Body fat": "%", "Waist": "cm", "Neck": "cm", "Left biceps": "cm", "Sleep": "h"}


async def body_set(coach: CoachClient, name: str = "Body", **metrics: str) -> dict[str, Any]:
    """A metric set of the company; the metrics by name, with `_set`."""
    units = {each["shortName"]: each["_id"] for each in (await coach.get("/metrics-units")).ok()}
    listed = [{"name": each, "metricUnitId": units[unit]} for each, unit in (metrics or UNITS).items()]
    made = (await coach.post("/coach/metrics-sets", {"name": name, "metrics": listed})).ok(201)
    return {"_set": made["_id"], **{each["name"]: each["_id"] for each in made["metrics"]}}


async def values(coach: CoachClient, customer: dict[str, Any], body: dict[str, Any], name: str) -> dict[str, float]:
    """The values of a metric by date."""
    path = f"/coach/customers/{customer['_id']}/metrics-sets/{body['_set']}/metrics/{body[name]}/history"
    return {each["date"]: each["value"] for each in (await coach.get(path)).ok()}


async def customers_of(coach: CoachClient) -> list[dict[str, Any]]:
    """The clients of the company."""
    docs: list[dict[str, Any]] = (await coach.get("/coach/customers", archived="false", pageSize=10, pageNum=1)).ok()[
        "docs"
    ]
    return docs


async def test_a_row_for_each_value(coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach)
    answers: dict[str, Any] = {"name": "m.csv", "customerId": ana["_id"]}
    asked = await import_file(coach, LONG, dry_run=True, **answers)
    [question] = asked["result"]["questions"]
    assert (question["code"], question["name"], asked["result"]["format"]) == ("METRIC", "Mood", "measurements")
    assert body["Sleep"] in question["options"] and question["options"][-1] == "skip"
    refused = await import_file(coach, LONG, **answers)
    assert (refused["status"], refused["errors"][-1]["code"]) == ("failed", "QUESTIONS_OPEN")
    assert (await coach.get(f"/coach/customers/{ana['_id']}/metrics-sets")).ok() == []

    wrong = await import_file(coach, LONG, names='{"Mood": "create"}', **answers)
    assert [each["code"] for each in wrong["errors"]] == ["INVALID_ANSWER"]
    answers["names"] = '{"Mood": "skip"}'
    dry = await import_file(coach, LONG, dry_run=True, **answers)
    assert (await coach.get(f"/coach/customers/{ana['_id']}/metrics-sets")).ok() == []
    job = await import_file(coach, LONG, **answers)
    assert dry["result"] | {"dryRun": False} == job["result"]
    assert dry["errors"] == job["errors"]
    result = job["result"]
    assert (job["status"], result["rows"], result["imported"], result["reported"]) == ("done", 6, 3, 3)
    assert result["created"] == {"customers": 0, "sessions": 0, "sets": 0, "exercises": 0, "values": 3}
    assert (result["from"], result["to"]) == ("2026-01-05", "2026-01-12")
    assert pick(job["errors"], "line", "field", "code") == [
        (5, "Mood", "SKIPPED"),
        (6, "Waist", "VALUE_LEFT_OUT"),
        (7, "Waist", "VALUE_LEFT_OUT"),
    ]
    assert await values(coach, ana, body, "Weight") == {"2026-01-05": 81.65, "2026-01-12": 81.2}
    assert await values(coach, ana, body, "Waist") == {"2026-01-05": 85.09}
    assert len(await customers_of(coach)) == 1


async def test_an_export_of_hevy(coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach)
    job = await import_file(coach, HEVY, name="measurement_data.csv", customerId=ana["_id"])
    assert (job["status"], job["result"]["created"]["values"]) == ("done", 6)
    assert pick(job["errors"], "line", "field", "code") == [(4, None, "REQUIRED")]
    assert await values(coach, ana, body, "Weight") == {"2025-11-17": 82.5, "2025-11-18": 82.1}
    assert await values(coach, ana, body, "Body fat") == {"2025-11-17": 18.5}
    assert await values(coach, ana, body, "Left biceps") == {"2025-11-18": 36.5}


async def test_units_signs_and_orders_that_the_file_does_not_say_are_asked_for(coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach)
    sheet = b"Fecha;Peso;Cintura;Notas\n03/04/2026;80,5;32;bien\n04/04/2026;80;32,5;\n"
    asked = await import_file(coach, sheet, dry_run=True, name="m.csv", customerId=ana["_id"])
    assert pick(asked["result"]["questions"], "code", "options") == [
        ("DATE_ORDER", ["dmy", "mdy"]),
        ("LOAD_UNIT", ["kg", "lb"]),
        ("DISTANCE_UNIT", ["cm", "in"]),
    ]
    answers: dict[str, Any] = {"dateOrder": "dmy", "loadUnit": "kg", "distanceUnit": "in"}
    job = await import_file(coach, sheet, name="m.csv", customerId=ana["_id"], **answers)
    assert (job["status"], job["result"]["imported"]) == ("done", 2)
    assert [(each["code"], each["column"]) for each in job["result"]["problems"]] == [("UNKNOWN_COLUMN", "Notas")]
    assert await values(coach, ana, body, "Weight") == {"2026-04-03": 80.5, "2026-04-04": 80}
    assert await values(coach, ana, body, "Waist") == {"2026-04-03": 81.28, "2026-04-04": 82.55}


async def test_what_is_there_stays_and_the_undo_removes_what_the_import_has_recorded(coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach)
    other = await body_set(coach, "Other", Steps="steps")
    path = f"/coach/customers/{ana['_id']}/metrics-sets"
    (await coach.post(path, {"metricsSetId": other["_set"]})).ok(201)
    (await coach.post(path, {"metricsSetId": body["_set"]})).ok(201)
    recorded = {"metricId": body["Weight"], "date": "2026-01-05", "value": 79}
    (await coach.post(f"{path}/{body['_set']}/entries", recorded)).ok(201)
    rows = (
        b"Date,Weight (kg),Steps,Waist (cm)\n2026-01-05,80,,90\n2026-01-06,80,9000,\n2026-01-06,81,,\n2999-01-01,80,,"
    )
    job = await import_file(coach, rows, name="m.csv", customerId=ana["_id"])
    assert pick(job["errors"], "line", "field", "code") == [
        (2, "Weight (kg)", "OTHER_VALUE"),
        (4, "Weight (kg)", "OTHER_VALUE"),
        (5, "date", "INVALID_DATE"),
    ]
    assert job["result"]["created"]["values"] == 3
    again = await import_file(coach, rows, name="m.csv", customerId=ana["_id"])
    assert [each["code"] for each in again["errors"]].count("ALREADY_THERE") == 3
    assert (await coach.post(f"/coach/jobs/{again['_id']}/undo")).status == 409
    (await coach.post(f"{path}/{body['_set']}/entries", {**recorded, "date": "2026-01-06", "value": 78})).ok(201)
    undone = await undo(coach, job)
    assert undone["result"]["removed"] == {"customers": 0, "sessions": 0, "exercises": 0, "values": 2}
    assert [each["code"] for each in undone["result"]["failed"]] == ["CHANGED"]
    assert await values(coach, ana, body, "Weight") == {"2026-01-05": 79, "2026-01-06": 78}
    assert await values(coach, ana, body, "Waist") == {}
    assert len((await coach.get(path)).ok()) == 2


async def test_the_undo_removes_the_assignment_that_was_made(coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach)
    path = f"/coach/customers/{ana['_id']}/metrics-sets"
    job = await import_file(coach, HEVY, name="m.csv", customerId=ana["_id"])
    assert [each["metricsSet"]["_id"] for each in (await coach.get(path)).ok()] == [body["_set"]]
    await undo(coach, job)
    assert (await coach.get(path)).ok() == []


async def test_an_ended_assignment_is_not_renewed(coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach)
    path = f"/coach/customers/{ana['_id']}/metrics-sets"
    (await coach.post(path, {"metricsSetId": body["_set"]})).ok(201)
    (await coach.delete(f"{path}/{body['_set']}")).ok(204)
    job = await import_file(coach, HEVY, name="m.csv", customerId=ana["_id"])
    assert {each["code"] for each in job["errors"]} == {"NOT_ASSIGNED", "REQUIRED"}
    assert (job["result"]["imported"], job["result"]["reported"]) == (0, 3)


async def test_several_clients_and_names_that_several_metrics_have(coach: CoachClient) -> None:
    ana, ben = await coach.create_customer("Ana"), await coach.create_customer("Ben")
    body, other = await body_set(coach), await body_set(coach, "Other", Weight="lb")
    rows = b"Client,Date,Measurement,Value\nAna,2026-01-05,Body weight,80 kg\nBen,2026-01-05,Waist,90 cm\nCleo,2026-01-05,Waist,70 cm"
    asked = await import_file(coach, rows, dry_run=True, name="m.csv")
    metric, client = asked["result"]["questions"]
    assert set(metric["options"]) >= {body["Weight"], other["Weight"]}
    assert (client["code"], client["name"], "create" in client["options"]) == ("CUSTOMER", "Cleo", False)
    created: dict[str, Any] = {"customers": '{"Cleo": "create"}', "names": json.dumps({"Body weight": other["Weight"]})}
    refused = await import_file(coach, rows, name="m.csv", **created)
    assert [each["code"] for each in refused["errors"]] == ["INVALID_ANSWER"]
    job = await import_file(coach, rows, name="m.csv", **created | {"customers": '{"Cleo": "skip"}'})
    assert pick(job["errors"], "line", "code") == [(4, "SKIPPED")]
    assert await values(coach, ana, other, "Weight") == {"2026-01-05": 176.37}
    assert await values(coach, ben, body, "Waist") == {"2026-01-05": 90}
    assert len(await customers_of(coach)) == 2


async def test_a_table_of_sets_or_clients_is_none_of_measurements(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    await body_set(coach)
    sets = b"Date,Exercise,Weight (kg),Waist,Reps\n2026-01-05,Squat,80,90,5\n"
    checked = await import_file(coach, sets, dry_run=True, name="m.csv", customerId=ana["_id"])
    assert checked["result"]["format"] == "sets"
    roster = b"Name,Email,Weight,Waist\nBo,bo@example.com,80,90\n"
    assert (await import_file(coach, roster, dry_run=True, name="m.csv"))["result"]["format"] == "customers"
    dated = b"Name,Date,Weight (kg),Waist (cm)\nAna,2026-01-05,80,90\nBo,2026-01-05,81,0\n"
    job = await import_file(coach, dated, name="m.csv")
    assert [each["code"] for each in job["result"]["questions"]] == ["CUSTOMER"]
    job = await import_file(coach, dated, name="m.csv", customers=json.dumps({"Bo": ana["_id"]}))
    assert pick(job["errors"], "line", "field", "code") == [
        (3, "Weight (kg)", "OTHER_VALUE"),
        (3, "Waist (cm)", "VALUE_LEFT_OUT"),
    ]
    client = await coach.as_client(ana)
    own = (await send(client, dated, name="m.csv", path="/customer/import")).ok(202)
    await ended(coach, own)
    own = (await client.get(f"/customer/jobs/{own['_id']}")).ok()
    assert (own["status"], own["errors"][0]["code"]) == ("failed", "NOT_SUPPORTED")


async def test_who_may_import_measurements(coach: CoachClient, other_company: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach)
    foreign = await send(other_company, HEVY, name="m.csv", customerId=ana["_id"])
    assert foreign.status == 404
    rights = ("customers.view", "customers.edit", "metrics.view")
    helper = coach.with_key(await employee_key(coach, *rights, scope="all"))
    for dry_run in (True, False):
        job = await import_file(helper, HEVY, dry_run=dry_run, name="m.csv", customerId=ana["_id"])
        assert (job["status"], [each["code"] for each in job["errors"]]) == ("failed", ["PERMISSION_MISSING"])
    recorder = coach.with_key(await employee_key(coach, *rights, "metrics.edit", scope="all"))
    assert (await send(recorder, HEVY, name="m.csv")).status == 403
    job = await import_file(recorder, HEVY, name="m.csv", customerId=ana["_id"])
    assert job["result"]["created"]["values"] == 6
    [eli] = [
        each
        for each in await team.list_coaches(coach.ctx)
        if each["role"] != "OWNER" and "metrics.edit" in each["permissions"]
    ]
    await team.update_employee(coach.ctx, eli["_id"], {"permissions": list(rights)})
    assert "metrics.edit" in str((await recorder.post(f"/coach/jobs/{job['_id']}/undo")).refused(403))
    assert await values(coach, ana, body, "Waist") == {"2025-11-17": 86}


async def test_another_process_goes_on(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(company_import, "_STEP_SECONDS", -1)
    reopened: list[company_import._Open] = []

    def forget(opened: company_import._Open) -> None:
        reopened.append(opened)
        opened.close()

    monkeypatch.setattr(company_import._Open, "keep", forget)
    ana, _ = await coach.create_customer("Ana"), await coach.create_customer("Ben")
    body = await body_set(coach)
    days = [f"{2024 + n // 336}-{n % 336 // 28 + 1:02}-{n % 28 + 1:02}" for n in range(200)]
    lines = [f"{('Ana', 'Ben')[n % 2]},{day},80,18,{0 if n % 5 == 0 else 90},7" for n, day in enumerate(days)]
    lines.append(lines[0])
    table = "\n".join(["client,date,weight_kg,fat_percent,waist_cm,mood", *lines]).encode()
    checked = await import_file(coach, table, dry_run=True, name="m.csv")
    job = await import_file(coach, table, name="m.csv")
    assert len(reopened) > 5
    assert (job["status"], job["result"]["imported"], job["result"]["created"]["values"]) == ("done", 200, 560)
    assert checked["result"] | {"dryRun": False} == job["result"]
    assert [(each["code"], each["count"]) for each in job["result"]["problems"]] == [
        ("VALUE_LEFT_OUT", 41),
        ("ALREADY_THERE", 1),
        ("ALREADY_THERE", 1),
        ("UNKNOWN_COLUMN", 201),
    ]
    assert len(await values(coach, ana, body, "Weight")) == 100
    assert len(await events(coach, "metric.recorded")) == 100, "of 560, a page"
    assert (await undo(coach, job))["result"]["removed"]["values"] == 560
    assert await values(coach, ana, body, "Weight") == {}
    feed = await coach.get(f"/coach/customers/{ana['_id']}/activity-feed", page=1, limit=5)
    assert feed.ok()["totalDocs"] == 0


@proof
async def test_two_thousand_values(coach: CoachClient) -> None:
    ana, _ = await coach.create_customer("Ana"), await body_set(coach)
    lines = [f"{2014 + n // 336}-{n % 336 // 28 + 1:02}-{n % 28 + 1:02},80.5,18,90" for n in range(667)]
    began = time.monotonic()
    job = await import_file(
        coach, "\n".join(["date,weight_kg,fat_percent,waist_cm", *lines]).encode(), name="m.csv", customerId=ana["_id"]
    )
    assert time.monotonic() - began < 30, "about 2 s on a quiet machine"
    assert job["result"]["created"]["values"] == 2001


async def test_boundaries_of_dates_numbers_and_units(coach: CoachClient) -> None:
    """What is at a boundary is stored as it is; what is beyond it is reported, and is never another number."""
    ana = await coach.create_customer("Ana")
    body = await body_set(coach, Weight="kg", Waist="cm", Sleep="h", Balance="°C", Steps="score")
    today = coach.ctx.caller.today()
    tomorrow, far = today + timedelta(days=1), today.replace(year=today.year + 11, day=1)
    rows = {
        "1950-01-01,Weight,80,kg": ("Weight", "1950-01-01", 80),
        "1949-12-31,Weight,80,kg": "INVALID_DATE",
        "0001-01-01,Weight,80,kg": "INVALID_DATE",
        f"{today},Weight,81,kg": ("Weight", str(today), 81),
        f"{tomorrow},Weight,81,kg": "IN_THE_FUTURE",
        f"{far},Weight,81,kg": "INVALID_DATE",
        "2025-02-29,Weight,81,kg": "INVALID_DATE",
        "2024-02-29,Weight,81,kg": ("Weight", "2024-02-29", 81),
        ",Weight,81,kg": "ALREADY_THERE",  # an empty date is the one above
        "2026-01-01,Steps,1000000000000,": ("Steps", "2026-01-01", 1e12),
        "2026-01-02,Steps,1000000000001,": "VALUE_LEFT_OUT",
        "2026-01-03,Steps,1e400,": "VALUE_LEFT_OUT",
        "2026-01-04,Steps,NaN,": "VALUE_LEFT_OUT",
        "2026-01-05,Steps,0,": ("Steps", "2026-01-05", 0),
        "2026-01-06,Balance,-1000000000000,": ("Balance", "2026-01-06", -1e12),
        "2026-01-07,Weight,-64,kg": "VALUE_LEFT_OUT",
        "2026-01-08,Weight,0,kg": "VALUE_LEFT_OUT",
        "2026-01-09,Weight,0.01,kg": ("Weight", "2026-01-09", 0.01),
        "2026-01-10,Weight,,kg": "REQUIRED",
        "2026-01-11,Weight,eighty,kg": "VALUE_LEFT_OUT",
        "2026-01-12,,80,kg": "REQUIRED",
        "2026-01-13,Weight,80,kg": ("Weight", "2026-01-13", 80),
        "2026-01-13,Weight,80.0,kg": "ALREADY_THERE",
        "2026-01-13,Weight,82,kg": "OTHER_VALUE",
        "2026-01-14,Weight,176.37,lb": ("Weight", "2026-01-14", 80),
        "2026-01-15,Weight,80 lb,kg": ("Weight", "2026-01-15", 36.29),
        "2026-01-16,Waist,33.5,in": ("Waist", "2026-01-16", 85.09),
        "2026-01-17,Waist,0.85,m": ("Waist", "2026-01-17", 85),
        "2026-01-18,Waist,85,kg": "VALUE_LEFT_OUT",
        "2026-01-19,Sleep,450,min": ("Sleep", "2026-01-19", 7.5),
    }
    file = ("date,name,value,unit\n" + "\n".join(rows)).encode()
    job = await import_file(coach, file, name="m.csv", customerId=ana["_id"])
    assert job["status"] == "done", job
    seen: dict[str, Any] = {}
    for line, row in enumerate(rows, 2):
        reported = [each["code"] for each in job["errors"] if each["line"] == line]
        seen[row] = reported[0] if reported else None
    stored = {name: await values(coach, ana, body, name) for name in ("Weight", "Waist", "Sleep", "Balance", "Steps")}
    differing = []
    for row, expected in rows.items():
        found: Any = seen[row]
        if isinstance(expected, tuple) and found is None:
            name, day, _ = expected
            found = (name, day, stored[name].pop(day, None))
        differing += [(row, found, expected)] if found != expected else []
    assert not differing
    assert not any(stored.values()), "and nothing else"


async def test_signs_of_the_whole_file_and_columns_that_are_not_read(coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach, Weight="lb", Waist="in", Steps="score")
    file = (
        b"Date;Weight (kg);Waist (cm);Steps;Mood;Weight (lb)\n"
        b"25.01.2026;81,5;85,09;1.234,5;7;200\n"
        b"26.01.2026;81,25;;1.500;8;\n"
        b"27.01.2026;81.5.0;84,1 in;12;;\n"
    )
    job = await import_file(coach, file, name="m.csv", customerId=ana["_id"], format="measurements")
    assert [each["code"] for each in job["result"]["questions"]] == ["METRIC"], "Mood may be a measurement"
    answers = {"customerId": ana["_id"], "format": "measurements", "names": '{"Mood": "skip"}'}
    job = await import_file(coach, file, name="m.csv", **answers)
    assert job["status"] == "done", job
    stored = [await values(coach, ana, body, name) for name in ("Weight", "Waist", "Steps")]
    days = ("2026-01-25", "2026-01-26", "2026-01-27")
    assert [[each.get(day) for day in days] for each in stored] == [
        [179.68, 179.13, None],
        [33.5, None, 84.1],
        [1234.5, 1500, 12],
    ]
    kinds = {(each["code"], each["column"]): each["lines"] for each in job["result"]["problems"]}
    assert kinds == {
        ("REPEATED_COLUMN", "Weight (lb)"): [2],
        ("SKIPPED", "Mood"): [2, 3],
        ("VALUE_LEFT_OUT", "Weight (kg)"): [4],
    }
    job = await import_file(coach, file, name="m.csv", dry_run=True, customerId=ana["_id"])
    kinds = {(each["code"], each["column"]): each["lines"] for each in job["result"]["problems"]}
    assert kinds["UNKNOWN_COLUMN", "Mood"] == [2, 3]


async def test_rows_with_too_many_cells_and_headings_below_the_rows(coach: CoachClient) -> None:
    ana, body = await coach.create_customer("Ana"), await body_set(coach)
    sheet = (
        "Date,Weight (kg),,Waist (cm)\n2026-01-05,82,5,,84\n2026-01-06,81.9,fine,83\nDate,Weight (lbs)\n"
        "2026-01-07,180\nDate,Waist (in)\n2026-01-08,33\n"
    )
    job = await import_file(coach, sheet.encode(), name="m.csv", customerId=ana["_id"])
    assert await values(coach, ana, body, "Weight") == {"2026-01-06": 81.9, "2026-01-07": 81.65}
    assert await values(coach, ana, body, "Waist") == {"2026-01-06": 83, "2026-01-08": 83.82}
    assert [(each["line"], each["code"]) for each in job["errors"]] == [(2, "TOO_MANY_CELLS")]
    kinds = [(each["code"], each["column"], each["count"]) for each in job["result"]["problems"]]
    assert kinds == [("TOO_MANY_CELLS", None, 1), ("UNKNOWN_COLUMN", "column 3", 1)]
    assert [job["result"][name] for name in ("rows", "imported", "reported")] == [4, 3, 1]
