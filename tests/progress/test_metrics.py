"""A client's metrics: assigned sets, recorded values and their history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.client import MONDAY, SUNDAY, TUESDAY, UNKNOWN, CoachClient, Reply
from tests.support.training import (
    Json,
    assigned_sets,
    block_with,
    client_path,
    employee_key,
    feed,
    feed_types,
    history,
    log,
    metric_set,
    metrics_of,
    read,
)


async def assign(coach: CoachClient, customer: Json, body: Json) -> Json:
    assignment: Json = (await coach.post(client_path(customer, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    return assignment


async def unassign(coach: CoachClient, customer: Json, body: Json) -> Reply:
    return await coach.delete(client_path(customer, "metrics-sets", body["_id"]))


async def record(coach: CoachClient, customer: Json, body: Json, value: Any, date: str = MONDAY, at: int = 0) -> Reply:
    entry = {"metricId": body["metrics"][at]["_id"], "date": date, "value": value}
    return await coach.post(client_path(customer, "metrics-sets", body["_id"], "entries"), entry)


async def first_and_last(coach: CoachClient, customer: Json, at: int = 0) -> tuple[float | None, float | None]:
    tracked = (await assigned_sets(coach, customer))[0]["metrics"][at]
    return tracked["initialValue"], tracked["currentValue"]


async def test_units_are_the_same_for_all_companies(coach: CoachClient, other_company: CoachClient) -> None:
    """Contract 6: GET /metrics-units (plain array of `{_id, name, shortName}`)."""
    units = (await coach.get("/metrics-units")).ok()
    assert {"kg", "lb", "cm", "%", "bpm"} <= {unit["shortName"] for unit in units}
    assert len({unit["_id"] for unit in units}) == len({unit["shortName"] for unit in units}) == len(units)
    assert (await other_company.get("/metrics-units")).ok() == units


async def test_set_is_assigned(coach: CoachClient) -> None:
    """Contract 7: `{_id, customerId, metricsSet {_id, name}, metrics [{metric {_id, name, metricUnit}, initialValue,
    currentValue}]}`."""
    ana, body = await coach.create_customer(), await metric_set(coach, "Weight", "Waist")
    other = await metric_set(coach, "Steps")
    assert await assigned_sets(coach, ana) == []

    assignment = await assign(coach, ana, body)

    assert assignment == {
        "_id": assignment["_id"],
        "customerId": ana["_id"],
        "metricsSet": {"_id": body["_id"], "name": "Body"},
        "metrics": [{"metric": metric, "initialValue": None, "currentValue": None} for metric in body["metrics"]],
        "createdAt": assignment["createdAt"],
        "updatedAt": assignment["createdAt"],
        "version": 0,
    }
    assert await assign(coach, ana, body) == assignment, "repeating is harmless"
    await assign(coach, ana, other)
    assert [each["metricsSet"]["_id"] for each in await assigned_sets(coach, ana)] == [body["_id"], other["_id"]]
    assert await assigned_sets(coach, await coach.create_customer("Bo")) == []


async def test_first_and_last_value_are_those_by_date(coach: CoachClient) -> None:
    """Contract 7: numbers: earliest and latest by date; one value a metric and date: a second replaces it."""
    ana, body = await coach.create_customer(), await metric_set(coach, "Weight", "Waist")
    await assign(coach, ana, body)
    expected = [(TUESDAY, 72, (72, 72)), (SUNDAY, 70.5, (72, 70.5)), (MONDAY, 73, (73, 70.5))]
    for date, value, both in expected:
        entry = (await record(coach, ana, body, value, date)).ok(201)
        assert (entry["metricsSetId"], entry["metricId"]) == (body["_id"], body["metrics"][0]["_id"])
        assert (entry["date"], entry["value"]) == (date, value)
        assert await first_and_last(coach, ana) == both
    second = (await record(coach, ana, body, 1.5, SUNDAY)).ok(201)
    assert second["value"] == 1.5

    assert await first_and_last(coach, ana) == (73, 1.5)
    assert await history(coach, ana, body) == [
        {"date": MONDAY, "value": 73},
        {"date": TUESDAY, "value": 72},
        {"date": SUNDAY, "value": 1.5},
    ]
    assert (await first_and_last(coach, ana, 1), await history(coach, ana, body, body["metrics"][1])) == (
        (None, None),
        [],
    )
    (await record(coach, ana, body, 0, MONDAY, at=1)).ok(201)
    assert await first_and_last(coach, ana, 1) == (0, 0), "zero is a value"
    days = sorted(event["data"]["day"] for event in await feed(coach, ana))
    assert (days, set(await feed_types(coach, ana))) == ([MONDAY, MONDAY, TUESDAY, SUNDAY], {"metric_recorded"})


async def test_values_belong_to_one_client(coach: CoachClient) -> None:
    ana, bo, body = await coach.create_customer("Ana"), await coach.create_customer("Bo"), await metric_set(coach)
    for customer, value in [(ana, 70), (bo, 90)]:
        await assign(coach, customer, body)
        (await record(coach, customer, body, value)).ok(201)
    assert (await first_and_last(coach, ana), await first_and_last(coach, bo)) == ((70, 70), (90, 90))
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 70}]


async def test_history_remains_when_a_set_is_unassigned_and_assigned_again(coach: CoachClient) -> None:
    """Contract 7: unassigned: history stays readable, new values are 409; assigned again: the history is back."""
    ana, body = await coach.create_customer(), await metric_set(coach)
    assignment = await assign(coach, ana, body)
    (await record(coach, ana, body, 70)).ok(201)

    (await unassign(coach, ana, body)).ok(204)

    assert await assigned_sets(coach, ana) == []
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 70}]
    (await record(coach, ana, body, 71)).refused(409)
    (await unassign(coach, ana, body)).refused(404)
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 70}]
    again = await assign(coach, ana, body)
    assert (again["_id"], again["metrics"][0]["currentValue"]) == (assignment["_id"], 70)
    (await record(coach, ana, body, 71, TUESDAY)).ok(201)
    assert await first_and_last(coach, ana) == (70, 71)
    (await record(coach, await coach.create_customer("Bo"), body, 5)).refused(409), "never assigned"


async def test_first_logged_values_assign_the_set(coach: CoachClient) -> None:
    """A scheduled set is assigned with its first values, unless an earlier assignment has ended."""
    ana, body = await coach.create_customer(), await metric_set(coach)
    block = await block_with(coach, ana, metrics_of(body))
    [item] = block["items"]
    values = [{"metricId": body["metrics"][0]["_id"], "value": 70}]
    (await log(coach, block, item)).ok()
    assert await assigned_sets(coach, ana) == [], "no values yet"

    (await log(coach, block, item, values=values)).ok()

    assert await first_and_last(coach, ana) == (70, 70)
    (await unassign(coach, ana, body)).ok(204)
    (await log(coach, block, item, values=[values[0] | {"value": 71}])).refused(409, "not assigned")
    (await log(coach, block, item)).ok()
    assert await history(coach, ana, body) == [], "a log without values deletes those of the log before"


async def test_new_clients_are_assigned_automatic_sets(coach: CoachClient) -> None:
    before = await coach.create_customer("Before")
    body, _ = await metric_set(coach, assignAutomatically=True), await metric_set(coach, "Steps")
    after = await coach.create_customer("After")
    assert await assigned_sets(coach, before) == []
    assert [each["metricsSet"]["_id"] for each in await assigned_sets(coach, after)] == [body["_id"]]
    (await record(coach, after, body, 70)).ok(201)
    (await coach.patch(f"/coach/metrics-sets/{body['_id']}", {"assignAutomatically": False})).ok()
    assert await assigned_sets(coach, await coach.create_customer("Later")) == []
    (await coach.patch(f"/coach/metrics-sets/{body['_id']}", {"assignAutomatically": True})).ok()
    (await coach.delete(f"/coach/metrics-sets/{body['_id']}")).ok(204)
    assert await assigned_sets(coach, await coach.create_customer("Last")) == []


@pytest.mark.parametrize("which", ["unknown", "another company's", "deleted"])
async def test_missing_set_is_the_documented_500(coach: CoachClient, other_company: CoachClient, which: str) -> None:
    """Contract 3: a metrics set that does not exist, under /coach/customers/{cid}/metrics-sets (elsewhere 404): 500
    with `{code, message}`, nothing written."""
    ana = await coach.create_customer()
    body = await metric_set(other_company if which == "another company's" else coach)
    body = {**body, "_id": UNKNOWN} if which == "unknown" else body
    if which == "deleted":
        await assign(coach, ana, body)
        (await coach.delete(f"/coach/metrics-sets/{body['_id']}")).ok(204)
    metric_id = body["metrics"][0]["_id"]
    replies = [
        await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]}),
        await record(coach, ana, body, 70),
    ]
    if which != "deleted":
        replies.append(await unassign(coach, ana, body))
        replies.append(await coach.get(client_path(ana, "metrics-sets", body["_id"], "metrics", metric_id, "history")))
    for reply in replies:
        error = reply.refused(500)
        assert (set(error), error["code"]) == ({"code", "message"}, "METRICS_SET_MISSING")
    assert await feed(coach, ana) == []
    (await coach.get(f"/coach/metrics-sets/{body['_id']}")).refused(404, "Metrics set")
    assert await coach.ctx.db["metricEntries"].count_documents({"companyId": coach.ctx.company_id}) == 0


async def test_history_of_a_deleted_set_is_readable(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    await assign(coach, ana, body)
    (await record(coach, ana, body, 70)).ok(201)
    (await coach.delete(f"/coach/metrics-sets/{body['_id']}")).ok(204)
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 70}]
    assert await first_and_last(coach, ana) == (70, 70)
    (await unassign(coach, ana, body)).ok(204)
    assert await assigned_sets(coach, ana) == []
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 70}]


async def test_removed_metric_is_archived(coach: CoachClient) -> None:
    """Contract 7: a removed metric is archived, not lost."""
    ana, body = await coach.create_customer(), await metric_set(coach, "Weight", "Waist")
    weight, waist = body["metrics"]
    await assign(coach, ana, body)
    (await record(coach, ana, body, 80, at=1)).ok(201)
    block = await block_with(coach, ana, metrics_of(body))

    weight_metric = {"_id": weight["_id"], "name": "Weight", "metricUnitId": weight["metricUnit"]["_id"]}
    (await coach.patch(f"/coach/metrics-sets/{body['_id']}", {"metrics": [weight_metric, weight_metric]})).refused(
        400, "only once"
    )
    (await coach.patch(f"/coach/metrics-sets/{body['_id']}", {"metrics": [weight_metric]})).ok()

    assert [each["metric"]["name"] for each in (await assigned_sets(coach, ana))[0]["metrics"]] == ["Weight"]
    assert await history(coach, ana, body, waist) == [{"date": MONDAY, "value": 80}]
    (await record(coach, ana, body, 81, TUESDAY, at=1)).refused(409)
    value = {"metricId": waist["_id"], "value": 82}
    before = await read(coach, block)
    (await log(coach, block, block["items"][0], values=[value])).refused(409)
    assert await read(coach, block) == before
    back = {"_id": waist["_id"], "name": "Waist", "metricUnitId": waist["metricUnit"]["_id"]}
    (await coach.patch(f"/coach/metrics-sets/{body['_id']}", {"metrics": [weight_metric, back]})).ok()
    assert await first_and_last(coach, ana, 1) == (80, 80)
    (await record(coach, ana, body, 81, TUESDAY, at=1)).ok(201)


async def test_values_of_a_removed_metric_stay_when_an_item_is_logged_again(coach: CoachClient) -> None:
    """Contract 7: a removed metric is archived, not lost: also not with a log that has only what the set has now."""
    ana, body = await coach.create_customer(), await metric_set(coach, "Weight", "Waist")
    weight, waist = body["metrics"]
    block = await block_with(coach, ana, metrics_of(body))
    [item] = block["items"]
    old = {"metricId": waist["_id"], "value": 82}
    (await log(coach, block, item, values=[{"metricId": weight["_id"], "value": 80}, old])).ok()
    remaining = {"_id": weight["_id"], "name": "Weight", "metricUnitId": weight["metricUnit"]["_id"]}
    (await coach.patch(f"/coach/metrics-sets/{body['_id']}", {"metrics": [remaining]})).ok()

    (await log(coach, block, item, values=[{"metricId": weight["_id"], "value": 79}, old])).ok()
    (await log(coach, block, item, values=[old | {"value": 83}])).refused(409, "removed")
    (await log(coach, block, item, values=[{"metricId": weight["_id"], "value": 78}])).ok()

    assert await history(coach, ana, body, weight) == [{"date": MONDAY, "value": 78}]
    assert await history(coach, ana, body, waist) == [{"date": MONDAY, "value": 82}]


async def test_log_with_the_recorded_values_is_accepted_after_the_set_was_unassigned(coach: CoachClient) -> None:
    """Contract 7: new values are 409; those of an earlier log, such as with another comment, are not new."""
    ana, body = await coach.create_customer(), await metric_set(coach)
    block = await block_with(coach, ana, metrics_of(body))
    [item] = block["items"]
    values = [{"metricId": body["metrics"][0]["_id"], "value": 70}]
    (await log(coach, block, item, values=values)).ok()
    (await unassign(coach, ana, body)).ok(204)

    logged = (await log(coach, block, item, values=values, comment="Before breakfast")).ok()

    assert (logged["comment"], logged["values"]) == ("Before breakfast", values)
    without_metrics = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    (await log(without_metrics, block, item, comment="After breakfast")).ok()
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 70}]
    (await log(coach, block, item, values=[values[0] | {"value": 71}])).refused(409, "not assigned")


async def test_corrected_value_stays_when_the_rest_of_its_log_changes(coach: CoachClient) -> None:
    """Contract 7: a second value of a date replaces the first, not a log that was sent before."""
    ana, body = await coach.create_customer(), await metric_set(coach, "Weight", "Waist")
    block = await block_with(coach, ana, metrics_of(body))
    [item] = block["items"]
    logged = [{"metricId": metric["_id"], "value": 80} for metric in body["metrics"]]
    (await log(coach, block, item, values=logged)).ok()
    (await record(coach, ana, body, 78)).ok(201)
    (await log(coach, block, item, values=[logged[0], logged[1] | {"value": 91}], comment="After breakfast")).ok()
    assert [await history(coach, ana, body, metric) for metric in body["metrics"]] == [
        [{"date": MONDAY, "value": 78}],
        [{"date": MONDAY, "value": 91}],
    ]
    (await log(coach, block, item, values=[logged[0] | {"value": 79}])).ok()
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 79}]
    assert await history(coach, ana, body, body["metrics"][1]) == []


async def test_invalid_values_are_rejected(coach: CoachClient) -> None:
    ana, body, other = await coach.create_customer(), await metric_set(coach), await metric_set(coach)
    await assign(coach, ana, body)
    path = client_path(ana, "metrics-sets", body["_id"], "entries")
    good = {"metricId": body["metrics"][0]["_id"], "date": MONDAY, "value": 70}
    invalid: list[tuple[Json, str]] = [
        ({"value": "70"}, "value"),
        ({"value": None}, "value"),
        ({"value": True}, "value"),
        ({"value": 1e13}, "value"),
        ({"date": "2026-02-29"}, "date"),
        ({"date": "2026-03-02T08:00:00Z"}, "date"),
        ({"metricId": "short"}, "metricId"),
    ]
    for wrong, field in invalid:
        (await coach.post(path, good | wrong)).refused(400, field)
        (await coach.post(path, {name: value for name, value in good.items() if name != field})).refused(400, field)
    for unknown in (UNKNOWN, other["metrics"][0]["_id"]):
        (await coach.post(path, good | {"metricId": unknown})).refused(404, "Metric")
        gone = client_path(ana, "metrics-sets", body["_id"], "metrics", unknown, "history")
        (await coach.get(gone)).refused(404, "Metric")
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": "x"})).refused(400, "metricsSetId")
    assert await history(coach, ana, body) == []


async def test_concurrent_values_of_one_date_result_in_one_value(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    await assign(coach, ana, body)
    replies = await asyncio.gather(*(record(coach, ana, body, n) for n in range(12)))
    assert {reply.status for reply in replies} == {201}
    [entry] = await history(coach, ana, body)
    assert entry["value"] in range(12)


async def test_concurrent_assigning_and_unassigning(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    path = client_path(ana, "metrics-sets")
    work = [coach.post(path, {"metricsSetId": body["_id"]}) for _ in range(10)]
    replies = await asyncio.gather(*work, *(unassign(coach, ana, body) for _ in range(10)))
    assert {reply.status for reply in replies[:10]} == {201}
    assert {reply.status for reply in replies[10:]} <= {204, 404}
    await assign(coach, ana, body)
    assert len(await assigned_sets(coach, ana)) == 1


async def test_client_outside_the_scope_is_forbidden(coach: CoachClient) -> None:
    ana, body = await coach.create_customer(), await metric_set(coach)
    await assign(coach, ana, body)
    scoped = coach.with_key(await employee_key(coach, "metrics.view", "metrics.edit"))
    (await scoped.get(client_path(ana, "metrics-sets"))).refused(403)
    (await record(scoped, ana, body, 1)).refused(403)
    (await unassign(scoped, ana, body)).refused(403)
    assert await history(coach, ana, body) == []
