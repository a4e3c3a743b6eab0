"""Metric sets: managed under Settings, assigned on a client's Progress page."""

from __future__ import annotations

from tests.support import training
from tests.support.client import MONDAY, CoachClient
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague

SETS = "/app/settings/metric-sets"


def progress_of(customer: dict[str, str]) -> str:
    return f"/app/customers/{customer['_id']}/progress"


async def unit(coach: CoachClient, short: str) -> str:
    return next(str(each["_id"]) for each in (await coach.get("/metrics-units")).ok() if each["shortName"] == short)


async def test_metric_set_is_created_assigned_and_recorded(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    empty = (await owner_page.get(progress_of(ana))).says("No metrics assigned", "under Settings")
    assert SETS in empty.links
    assert SETS in (await owner_page.get("/app/settings/company")).links
    page = (await owner_page.get(SETS)).ok().says("No metric sets yet")

    kilograms, centimeters = await unit(coach, "kg"), await unit(coach, "cm")
    wrong = await owner_page.submit(page, SETS, name="Body", metricName="", metricUnitId=kilograms)
    wrong.ok(400).says("This should not be empty.")
    created = await owner_page.submit(page, SETS, name="Body", metricName="Weight", metricUnitId=kilograms)
    created.ok().says("Body created. Add more metrics to it here.", "Weight Kilograms (kg)")
    added = await owner_page.submit(created, f"{created.path}/metrics", name="Waist", metricUnitId=centimeters)
    added.ok().says("Waist added.", "Waist Centimeters (cm)")

    page = await owner_page.get(progress_of(ana))
    assigned = await owner_page.submit(page, f"{progress_of(ana)}/sets", metricsSetId=created.path.rpartition("/")[2])
    assigned.ok().says("Body assigned.", "Weight", "Waist")
    recorded = await owner_page.submit(assigned, progress_of(ana), value="79,5", date=MONDAY)
    recorded.ok().says("Value saved.", "79.5 kg")


async def test_unassigned_set_keeps_its_values(coach: CoachClient, owner_page: Visitor) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach)
    sets = training.client_path(ana, "metrics-sets")
    (await coach.post(sets, {"metricsSetId": body["_id"]})).ok(201)
    entry = {"metricId": body["metrics"][0]["_id"], "date": MONDAY, "value": 79.5}
    (await coach.post(f"{sets}/{body['_id']}/entries", entry)).ok(201)
    here = progress_of(ana)

    end = f"{here}/sets/{body['_id']}/end"
    assert end in (await owner_page.get(here)).links
    confirmation = (await owner_page.get(end)).says(
        "Unassign the metric set “Body”?", "Recorded values are not deleted.", "until you assign the set again"
    )
    ended = await owner_page.submit(confirmation, end)
    ended.ok().says("Metric set unassigned. Recorded values are not deleted.", "No metrics assigned")
    assert await training.assigned_sets(coach, ana) == []
    back = await owner_page.submit(ended, f"{here}/sets", metricsSetId=body["_id"])
    back.ok().says("Body assigned.", "79.5 kg latest")


async def test_set_and_metrics_are_renamed(coach: CoachClient, owner_page: Visitor) -> None:
    body = await training.metric_set(coach, "Weight", "Muscle")
    here = f"{SETS}/{body['_id']}"
    weight, muscle = (metric["_id"] for metric in body["metrics"])
    page = await owner_page.get(here)

    (await owner_page.submit(page, f"{here}/names", metricId=muscle, name=" ")).ok(400).says("Name: This should not be")
    named = await owner_page.submit(page, f"{here}/names", metricId=muscle, name="Muscle mass")
    named.ok().says("Metric renamed.", "Muscle mass")
    rejected = await owner_page.submit(page, here, name="Shape", assignAutomatically="true")
    rejected.ok(409).says("This has been changed since", "Saved value: Body", "Saved value: Assign manually")
    (await owner_page.submit(rejected, here)).ok().says("Changes saved.", "Shape")
    stored = (await coach.get(f"/coach/metrics-sets/{body['_id']}")).ok()
    assert (stored["name"], stored["assignAutomatically"]) == ("Shape", True)
    assert [(each["_id"], each["name"]) for each in stored["metrics"]] == [(weight, "Weight"), (muscle, "Muscle mass")]
    ana = await coach.create_customer("Ana")
    assert [each["metricsSet"]["name"] for each in await training.assigned_sets(coach, ana)] == ["Shape"]


async def test_last_metric_cannot_be_removed(coach: CoachClient, owner_page: Visitor) -> None:
    body = await training.metric_set(coach, "Weight", "Muscle")
    here = f"{SETS}/{body['_id']}"
    weight, muscle = (f"{here}/metrics/{metric['_id']}/remove" for metric in body["metrics"])
    both = [await owner_page.get(each) for each in (weight, muscle)]

    (await owner_page.submit(both[0].says("Remove the metric “Weight” from the set “Body”?"), weight)).ok().says(
        "Metric removed."
    )
    last = await owner_page.submit(both[1], muscle)

    last.ok(400).says("A set needs at least one metric: delete the set instead.")
    assert muscle not in (await owner_page.get(here)).links
    stored = (await coach.get(f"/coach/metrics-sets/{body['_id']}")).ok()
    assert [each["name"] for each in stored["metrics"]] == ["Muscle"]


async def test_deleted_set_keeps_recorded_values(coach: CoachClient, owner_page: Visitor) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach, "Weight", "Muscle")
    sets = training.client_path(ana, "metrics-sets")
    (await coach.post(sets, {"metricsSetId": body["_id"]})).ok(201)
    entry = {"metricId": body["metrics"][0]["_id"], "date": MONDAY, "value": 79.5}
    (await coach.post(f"{sets}/{body['_id']}/entries", entry)).ok(201)
    here = f"{SETS}/{body['_id']}/delete"

    confirmation = (await owner_page.get(here)).says(
        "Delete the metric set “Body”?", "2 metrics will be removed: Weight, Muscle."
    )
    (await owner_page.submit(confirmation, here)).ok().says("Body deleted.", "No metric sets yet")

    page = (await owner_page.get(progress_of(ana))).says("Deleted set", "79.5 kg latest")
    assert progress_of(ana) not in [form.action for form in page.forms], "no values can be recorded"
    end = f"{progress_of(ana)}/sets/{body['_id']}/end"
    ended = await owner_page.submit(await owner_page.get(end), end)
    ended.ok().says("Recorded values are not deleted.", "No metrics assigned")


async def test_metric_sets_are_read_only_without_edit_permission(coach: CoachClient, colleague: Colleague) -> None:
    ana, body = await coach.create_customer("Ana"), await training.metric_set(coach)
    (await coach.post(training.client_path(ana, "metrics-sets"), {"metricsSetId": body["_id"]})).ok(201)
    await training.metric_set(coach, "Pulse", short="bpm", name="Heart")
    eli = await colleague("customers.view", "metrics.view")

    def forms(page: HtmlPage) -> list[str]:
        return [form.action for form in page.forms if form.action not in ("/app/sign-out", "/app/search")]

    pages = [await eli.get(each) for each in (SETS, f"{SETS}/{body['_id']}", progress_of(ana))]
    assert [forms(page.ok()) for page in pages] == [[], [], []]
    assert not [link for page in pages for link in page.links if link.endswith(("/remove", "/delete"))]
    stranger = await colleague("customers.view")
    assert SETS not in (await stranger.get("/app/settings/company")).links
