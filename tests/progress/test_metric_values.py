"""Recording many values of a client's metrics at once (contract 14, many at once)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from coaching_service.core.ids import ObjectId
from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.training import Json, client_path, employee_key, feed, history, metric_set


async def record(coach: CoachClient, customer: Json, *values: tuple[str, str, float], **options: Any) -> Reply:
    entries = [{"metricId": metric, "date": day, "value": value} for metric, day, value in values]
    return await coach.post(client_path(customer, "metric-values"), {"values": entries}, **options)


async def assign(coach: CoachClient, customer: Json, *names: str) -> Json:
    body = await metric_set(coach, *names)
    (await coach.post(client_path(customer, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    return body


async def test_values_of_several_sets_are_recorded_like_single_ones(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    body, sleep = await assign(coach, ana, "Weight", "Waist"), await assign(coach, ana, "Sleep")
    weight, waist, hours = (each["_id"] for each in (*body["metrics"], *sleep["metrics"]))
    single = {"metricId": weight, "date": MONDAY, "value": 70}
    (await coach.post(client_path(ana, "metrics-sets", body["_id"], "entries"), single)).ok(201)

    reply = await record(
        coach, ana, (weight, MONDAY, 71), (weight, TUESDAY, 72.5), (waist, MONDAY, 80), (hours, MONDAY, 8)
    )

    assert reply.ok(201) == {"recorded": 4}
    assert [each["value"] for each in await history(coach, ana, body)] == [71, 72.5]
    assert [each["value"] for each in await history(coach, ana, body, body["metrics"][1])] == [80]
    assert [each["value"] for each in await history(coach, ana, sleep)] == [8]
    entries = await feed(coach, ana)
    assert sorted((each["data"]["metricName"], each["data"]["value"]) for each in entries) == [
        ("Sleep", 8),
        ("Waist", 80),
        ("Weight", 71),
        ("Weight", 72.5),
    ]
    [change] = await coach.ctx.db["changes"].find({"_id": ObjectId(reply.headers["X-Change-Id"])}).to_list(None)
    assert [event["type"] for event in change["events"]] == ["metric.recorded"] * 4
    assert sorted(each["action"] for each in change["documents"]) == ["changed", "created", "created", "created"]
    (await coach.post(f"/coach/changes/{change['_id']}/undo")).ok()
    assert [each["value"] for each in await history(coach, ana, body)] == [70]
    assert [each["data"]["value"] for each in await feed(coach, ana)] == [70]


async def test_one_value_that_cannot_be_recorded_refuses_all(coach: CoachClient, other_company: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    body = await assign(coach, ana, "Weight", "Waist")
    unassigned, deleted = await metric_set(coach, "Sleep"), await assign(coach, ana, "Steps")
    stranger = await metric_set(other_company, "Sleep")
    weight, waist = (each["_id"] for each in body["metrics"])
    (await coach.delete(f"/coach/metrics-sets/{deleted['_id']}")).ok(204)
    remaining = [{"_id": weight, "name": "Weight", "metricUnitId": body["metrics"][0]["metricUnit"]["_id"]}]
    (await coach.patch(f"/coach/metrics-sets/{body['_id']}", {"metrics": remaining})).ok()

    for metric, status, code in (
        (UNKNOWN, 404, "METRIC_NOT_FOUND"),
        (stranger["metrics"][0]["_id"], 404, "METRIC_NOT_FOUND"),
        (deleted["metrics"][0]["_id"], 404, "METRIC_NOT_FOUND"),
        (unassigned["metrics"][0]["_id"], 409, "METRICS_SET_NOT_ASSIGNED"),
        (waist, 409, "METRIC_ARCHIVED"),
    ):
        reply = await record(coach, ana, (weight, MONDAY, 70), (metric, MONDAY, 1))
        assert reply.refused(status, "values.1.metricId")["code"] == code
    repeated = (await record(coach, ana, (weight, MONDAY, 70), (weight, MONDAY, 71))).refused(400)
    assert [(error["field"], error["code"]) for error in repeated["errors"]] == [("values.1", "DUPLICATE")]
    malformed = (await record(coach, ana, (weight, MONDAY, 70), ("x", "yesterday", 1))).refused(400)
    assert [error["field"] for error in malformed["errors"]] == ["values.1.metricId", "values.1.date"]
    (await coach.post(client_path(ana, "metric-values"), {"values": []})).refused(400, "values")
    assert await history(coach, ana, body) == []
    assert await feed(coach, ana) == []


async def test_500_values_are_recorded_once_and_only_by_those_who_may(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    body = await assign(coach, ana)
    weight = body["metrics"][0]["_id"]
    days = [str(date(2025, 1, 1) + timedelta(days=number)) for number in range(501)]
    (await record(coach, ana, *((weight, day, 70) for day in days))).refused(400, "values")

    values = [(weight, day, 70.0 + number) for number, day in enumerate(days[:500])]
    first = await record(coach, ana, *values, headers={"Idempotency-Key": "values"})
    again = await record(coach, ana, *values, headers={"Idempotency-Key": "values"})

    assert (first.ok(201), again.ok(201)) == ({"recorded": 500}, {"recorded": 500})
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(await history(coach, ana, body)) == 500
    reader = coach.with_key(await employee_key(coach, "metrics.view", "customers.view", scope="all"))
    (await record(reader, ana, (weight, MONDAY, 70))).refused(403)
    scoped = coach.with_key(await employee_key(coach, "metrics.view", "metrics.edit"))
    (await record(scoped, ana, (weight, MONDAY, 70))).refused(403)
