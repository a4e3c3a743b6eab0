"""Values of metrics: none of the future, those far from the last are confirmed, and wrong ones are deleted."""

from __future__ import annotations

from datetime import timedelta

from tests.support.client import MONDAY, TUESDAY, UNKNOWN, CoachClient
from tests.support.results import train
from tests.support.training import (
    Json,
    block_with,
    client_path,
    feed_types,
    history,
    log,
    metric_set,
    metrics_of,
    path_of,
    read,
)

ZONE = "Pacific/Kiritimati"


async def assigned(coach: CoachClient, **fields: str) -> tuple[Json, Json]:
    """A client and the metric set that they are assigned."""
    ana, body = await coach.create_customer("Ana", **fields), await metric_set(coach, "Weight", "Waist")
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    return ana, body


def day(coach: CoachClient, ahead: int, zone: str | None = None) -> str:
    """The local date so many days after today."""
    return str(coach.ctx.caller.today(zone) + timedelta(days=ahead))


async def test_values_of_the_future_are_refused(coach: CoachClient) -> None:
    """Of the client's today: the entry, many values, the log of an item, and an item that moves with its values."""
    ana, body = await assigned(coach, timezone=ZONE)
    today, tomorrow = day(coach, 0, ZONE), day(coach, 1, ZONE)
    value = {"metricId": body["metrics"][0]["_id"], "value": 80}
    entries = client_path(ana, "metrics-sets", body["_id"], "entries")
    refused = (await coach.post(entries, {**value, "date": tomorrow})).refused(400, "date")
    assert refused["errors"] == [{"field": "date", "code": "IN_THE_FUTURE", "message": "must not be after today"}]
    own = await coach.as_client(ana)
    (await own.post(f"/customer/metrics-sets/{body['_id']}/entries", {**value, "date": tomorrow})).refused(400, "date")
    many = [{**value, "date": today}, {**value, "date": tomorrow}]
    (await coach.post(client_path(ana, "metric-values"), {"values": many})).refused(400, "values.1.date")
    ahead = await block_with(coach, ana, metrics_of(body), date=tomorrow)
    logged = {"isCompleted": True, "values": [value]}
    (await log(coach, ahead, ahead["items"][0], **logged)).refused(400, "values")
    assert await history(coach, ana, body) == []

    (await coach.post(entries, {**value, "date": today})).ok(201)
    now = await block_with(coach, ana, metrics_of(body), date=today)
    (await log(coach, now, now["items"][0], **logged)).ok()
    (await coach.patch(path_of(now), {"date": tomorrow})).refused(400, "date")
    assert (await history(coach, ana, body))[-1] == {"date": today, "value": 80}


async def test_values_that_the_unit_does_not_allow_are_refused(coach: CoachClient) -> None:
    """By the entry, many values and the log of an item; a difference of scores may be negative."""
    ana = await coach.create_customer()
    own = await coach.as_client(ana)
    for short in ("kg", "cm"):
        unit = await metric_set(coach, "Body", short=short)
        (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": unit["_id"]})).ok(201)
        value = {"metricId": unit["metrics"][0]["_id"], "value": -64}
        dated = {**value, "date": MONDAY}
        entries = f"metrics-sets/{unit['_id']}/entries"
        for refused in (
            (await coach.post(client_path(ana, entries), dated)).refused(400, "value"),
            (await own.post(f"/customer/{entries}", dated)).refused(400, "value"),
        ):
            assert refused["errors"][0]["code"] == "OUT_OF_RANGE"
        many = {"values": [{**dated, "value": 64}, {**dated, "date": TUESDAY}]}
        (await coach.post(client_path(ana, "metric-values"), many)).refused(400, "values.1.value")
        block = await block_with(coach, ana, metrics_of(unit))
        (await log(coach, block, block["items"][0], isCompleted=True, values=[value])).refused(400, "values")
        assert await history(coach, ana, unit) == []
        (await coach.post(client_path(ana, entries), {**dated, "value": 0})).ok(201)
    score = await metric_set(coach, "Change", short="score")
    (await coach.post(client_path(ana, "metrics-sets"), {"metricsSetId": score["_id"]})).ok(201)
    below = {"metricId": score["metrics"][0]["_id"], "date": MONDAY, "value": -2}
    (await coach.post(client_path(ana, "metrics-sets", score["_id"], "entries"), below)).ok(201)


async def test_value_is_deleted_and_the_deletion_undone(coach: CoachClient, other_company: CoachClient) -> None:
    """Contract 7: DELETE .../history/{date} 204; the latest value and the feed follow."""
    ana, body = await assigned(coach)
    metric = body["metrics"][0]["_id"]
    entries = client_path(ana, "metrics-sets", body["_id"], "entries")
    for date, value in ((MONDAY, 72.5), (TUESDAY, 725)):
        (await coach.post(entries, {"metricId": metric, "date": date, "value": value})).ok(201)
    path = client_path(ana, "metrics-sets", body["_id"], "metrics", metric, "history")
    (await other_company.delete(f"{path}/{TUESDAY}")).refused(404)
    deleted = await coach.delete(f"{path}/{TUESDAY}")
    deleted.ok(204)
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 72.5}]
    assert await feed_types(coach, ana) == ["metric_recorded"]
    (await coach.delete(f"{path}/{TUESDAY}")).refused(404)
    (await coach.delete(f"{path}/2026-02-30")).refused(400, "date")
    (await coach.delete(path.replace(metric, UNKNOWN) + f"/{MONDAY}")).refused(404)
    (await coach.undo(deleted)).ok()
    assert (await history(coach, ana, body))[-1] == {"date": TUESDAY, "value": 725}

    own = await coach.as_client(ana)
    (await own.delete(f"/customer/metrics-sets/{body['_id']}/metrics/{metric}/history/{TUESDAY}")).ok(204)
    assert await history(coach, ana, body) == [{"date": MONDAY, "value": 72.5}]


async def test_deleted_value_is_gone_from_the_log_of_its_item(coach: CoachClient) -> None:
    """The other values of the item stay, and its log can be stored again."""
    ana, body = await assigned(coach)
    weight, waist = (metric["_id"] for metric in body["metrics"])
    block = await block_with(coach, ana, metrics_of(body))
    values = [{"metricId": weight, "value": 725}, {"metricId": waist, "value": 80}]
    (await log(coach, block, block["items"][0], isCompleted=True, values=values)).ok()
    await train(coach, ana, await coach.create_exercise(), (5, 50))
    path = client_path(ana, "metrics-sets", body["_id"], "metrics", weight, "history", MONDAY)
    (await coach.delete(path)).ok(204)
    assert await history(coach, ana, body) == []
    assert (await read(coach, block))["items"][0]["values"] == [values[1]]
