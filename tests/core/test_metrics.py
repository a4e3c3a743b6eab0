"""The metrics of /metrics: their names, and labels that stay bounded whatever callers send."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from aiohttp.test_utils import TestServer
from prometheus_client.parser import text_string_to_metric_families

from coaching_service import __version__, features
from coaching_service.core.database.across_companies import count_backlog
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Unavailable
from coaching_service.core.jobs import queue, worker
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.metrics import NO_BACKLOG, Metrics
from coaching_service.core.slots import RequestSlots
from tests.core.test_uploads import form
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.media_files import picture
from tests.support.other_process import AsServed

LONG_AGO = datetime(2000, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
# By hand: dashboards and alert rules of operators depend on these names.
DECLARED = {
    "notifications_due": "",
    "notifications_oldest_due_seconds": "",
    "work_failing": "kind",
    "coaching_service_build_info": "version python",
    "backup_age_seconds": "",
    "erasures_pending": "",
    "mail_oldest_seconds": "",
    "mail_total": "outcome",
    "verify_age_seconds": "",
    "change_log_oldest_pending_seconds": "",
    "change_log_pending": "",
    "check_ins_due": "",
    "check_ins_oldest_due_seconds": "",
    "database_command_duration_seconds": "command",
    "database_connections_in_use": "",
    "database_connections_open": "",
    "database_connections_waiting": "",
    "disk_free_bytes": "folder",
    "disk_size_bytes": "folder",
    "figures_due": "lane",
    "figures_oldest_due_seconds": "lane",
    "file_upload_bytes_total": "",
    "file_uploads_total": "outcome",
    "files_stored_bytes": "",
    "http_request_duration_seconds": "method route",
    "http_requests_in_flight": "",
    "http_requests_total": "method route status",
    "job_run_duration_seconds": "kind",
    "job_runs_total": "kind outcome",
    "jobs_oldest_pending_seconds": "kind",
    "jobs_pending": "kind",
    "mcp_tool_call_duration_seconds": "tool",
    "mcp_tool_calls_total": "tool application outcome",
    "process_cpu_seconds_total": "",
    "process_max_fds": "",
    "process_open_fds": "",
    "process_resident_memory_bytes": "",
    "process_start_time_seconds": "",
    "process_virtual_memory_bytes": "",
    "push_messages_total": "outcome",
    "rate_limited_requests_total": "limit",
    "request_queue_duration_seconds": "queue",
    "request_queue_rejected_total": "queue reason",
    "request_queue_waiting": "queue",
    "sign_in_failures_total": "reason",
    "worker_failures_total": "",
    "workers_running": "",
    "webhook_attempts_total": "outcome",
    "webhook_deliveries_pending": "",
    "webhook_oldest_pending_seconds": "",
}

Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def figure(figures: Figures, name: str, **labels: str) -> float:
    """The value of one series; 0 if there is none."""
    return figures.get((name, frozenset(labels.items())), 0.0)


async def read(client: CoachClient) -> Figures:
    """All series, by name and labels."""
    client.checks = False
    text = (await client.get("/metrics")).raw.decode()
    client.checks = True
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_names_and_labels_are_those_that_operators_rely_on(coach: CoachClient) -> None:
    assert {name: " ".join(labels) for name, labels in Metrics().declared.items()} == DECLARED
    ana = await coach.create_customer()
    await coach.get(f"/coach/customers/{ana['_id']}")
    allowed = {name: set(labels.split()) for name, labels in DECLARED.items()}
    for name, labels in await read(coach):
        histogram = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
        assert {label for label, _ in labels} == (
            allowed[name] if name in allowed else allowed[histogram] | ({"le"} if name.endswith("_bucket") else set())
        ), name


async def test_build_and_process_are_reported(coach: CoachClient) -> None:
    figures = await read(coach)
    (build,) = [dict(labels) for name, labels in figures if name == "coaching_service_build_info"]
    assert build["version"] == __version__
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
        assert figure(figures, name) > 0
    assert figure(figures, "http_requests_in_flight") == 1, "this one"
    for folder in ("data", "temporary"):
        size = figure(figures, "disk_size_bytes", folder=folder)
        assert 0 < figure(figures, "disk_free_bytes", folder=folder) <= size
    assert figure(figures, "database_connections_open") > 0
    assert figure(figures, "database_connections_waiting") == 0


async def test_a_histogram_has_at_most_eight_buckets(coach: CoachClient) -> None:
    bounds: dict[tuple[str, frozenset[tuple[str, str]]], set[str]] = {}
    for name, labels in await read(coach):
        if name.endswith("_bucket"):
            others = frozenset(each for each in labels if each[0] != "le")
            bounds.setdefault((name, others), set()).add(dict(labels)["le"])
    assert bounds
    assert max(len(each) for each in bounds.values()) <= 8


async def test_labels_stay_bounded_whatever_callers_send(
    coach: CoachClient, anonymous: CoachClient, server: TestServer
) -> None:
    for path in ("/nothing/4711", "/coach/customers/4711/nothing", "/app/nothing/4711", "/files/4711.4711"):
        await anonymous.send("GET", path)
    for method in ("PROPFIND", "MKCOL", "TRACE"):
        await anonymous.send(method, "/coach/customers")
        await anonymous.send(method, "/nothing/4711")
    agent = {"Authorization": f"Bearer {coach.key}", "User-Agent": "Zanzibar 4711"}
    async with McpHttpClient(server, agent) as mcp:
        await mcp.call("list_customers", pageNum=1, pageSize=10)
        await mcp.request("tools/call", {"name": "zanzibar_4711", "arguments": {}})
    figures = await read(coach)
    values: dict[str, set[str]] = {}
    for _, labels in figures:
        for label, value in labels:
            values.setdefault(label, set()).add(value)
    assert not [value for each in values.values() for value in each if "4711" in value or "anzibar" in value]
    assert values["method"] <= {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"}
    assert {"other"} < values["method"]
    assert "unknown" in values["route"]
    assert values["kind"] >= set(features.STEPS)
    assert values["command"] == {
        *("find", "getMore", "aggregate", "count", "distinct", "insert", "update", "delete", "findAndModify"),
        *("commitTransaction", "abortTransaction", "other"),
    }


async def test_commands_of_the_database_are_measured_by_name(coach: CoachClient) -> None:
    name = "database_command_duration_seconds_count"
    before = await read(coach)
    await coach.create_customer()
    after = await read(coach)
    for command in ("find", "insert", "commitTransaction"):
        assert figure(after, name, command=command) > figure(before, name, command=command), command
    seconds = "database_command_duration_seconds_sum"
    waited = figure(after, seconds, command="getMore") - figure(before, seconds, command="getMore")
    assert waited < 0.5, "reads that wait for new changes are not measured"


async def test_steps_of_jobs_are_counted_by_kind_and_outcome(coach: CoachClient, services: Services) -> None:
    outcomes: list[RunAgain | Exception | None] = [RunAgain(), RuntimeError("defect"), Unavailable("lost"), None]

    async def step(_: Services, __: Job) -> RunAgain | None:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    await queue.enqueue(Context(services), "test metrics", {})
    while outcomes:
        await services.db["jobs"].update_one({"kind": "test metrics"}, [{"$set": {"runAfter": "$$NOW"}}])
        await worker.run_due(services, {"test metrics": step})
    figures = await read(coach)
    for outcome in ("done", "continued", "interrupted", "failed"):
        assert figure(figures, "job_runs_total", kind="test metrics", outcome=outcome) == 1, outcome
    assert figure(figures, "job_run_duration_seconds_count", kind="test metrics") == 4


async def test_jobs_that_no_worker_runs_are_pending(services: Services) -> None:
    kind = "test pending"
    assert await worker.count_due(services, [kind]) == {}
    for minutes in (-3, -2, 5):
        await queue.enqueue(Context(services), kind, {}, after=timedelta(minutes=minutes))
    count, seconds = (await worker.count_due(services, [kind]))[kind]
    await services.db["jobs"].delete_many({"kind": kind})
    assert count == 2, "the third is not due yet"
    assert 180 <= seconds < 240


async def test_work_that_waits_and_its_age_are_reported(coach: CoachClient) -> None:
    figures = await read(coach)
    notifications = ("notifications_due", "notifications_oldest_due_seconds")
    for name in (*notifications, "check_ins_due", "check_ins_oldest_due_seconds", "change_log_oldest_pending_seconds"):
        assert (name, frozenset()) in figures
        assert figure(figures, name) >= 0
    for lane in ("changes", "daily"):
        for name in ("figures_due", "figures_oldest_due_seconds"):
            assert figures[name, frozenset({("lane", lane)})] >= 0
    assert figure(figures, "backup_age_seconds") > 0
    assert figure(figures, "verify_age_seconds") > 0
    assert figure(figures, "erasures_pending") == 0
    assert figure(figures, "mail_oldest_seconds") >= 0


async def test_a_backlog_is_counted_up_to_a_limit_and_is_as_old_as_its_first(services: Services) -> None:
    waiting = services.db["backlogOfTest"]
    await waiting.create_index("since", name="since")
    assert await count_backlog(waiting, {"since": {"$gt": LONG_AGO}}, "since", 3, hint="since") == NO_BACKLOG
    ages = (50, 4_000, 300, 2_000)
    await waiting.insert_many([{"since": now() - timedelta(seconds=age)} for age in ages])
    backlog = await count_backlog(waiting, {"since": {"$gt": LONG_AGO}}, "since", 3, hint="since")
    await waiting.drop()
    assert backlog["count"] == 3
    assert 4_000 <= backlog["oldestSeconds"] < 4_120


async def test_sign_in_failures_are_counted_by_reason(coach: CoachClient, anonymous: CoachClient) -> None:
    before, email = await read(coach), str(coach.ctx.caller.email)
    await anonymous.post("/auth/login", {"email": "unknown@nowhere.test", "password": "not the password"})
    for _ in range(7):
        await anonymous.post("/auth/login", {"email": email, "password": "not the password"})
    after = await read(coach)
    rises = {
        reason: figure(after, "sign_in_failures_total", reason=reason)
        - figure(before, "sign_in_failures_total", reason=reason)
        for reason in ("unknown_address", "wrong_password", "no_access", "too_many_failures")
    }
    assert rises == {"unknown_address": 1, "wrong_password": 5, "no_access": 0, "too_many_failures": 2}
    limited = {"limit": "sign-in"}
    assert (
        figure(after, "rate_limited_requests_total", **limited)
        - figure(before, "rate_limited_requests_total", **limited)
        == 2
    )


async def test_files_are_counted_and_their_bytes(coach: CoachClient) -> None:
    path, before = f"/coach/customers/{(await coach.create_customer())['_id']}/progress-photos", await read(coach)
    statuses: list[int] = []
    for content in (picture(), b"not a picture"):
        data = form(content, createdAt="2024-01-01", imageSideIndex="1")
        statuses.append((await coach.send("POST", path, data=data)).status)
    assert statuses == [201, 400]
    after = await read(coach)
    for outcome in ("stored", "rejected"):
        labels = {"outcome": outcome}
        assert figure(after, "file_uploads_total", **labels) - figure(before, "file_uploads_total", **labels) == 1
    assert figure(after, "file_upload_bytes_total") > figure(before, "file_upload_bytes_total")
    assert figure(after, "files_stored_bytes") > figure(before, "files_stored_bytes")


async def test_queue_for_the_database_is_observed() -> None:
    metrics = Metrics()
    slots = RequestSlots(1, 1, 0.01, metrics.queue("bulk"))

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"request_queue_{name}", {"queue": "bulk", **labels})

    async with slots.holding("company"):
        waiting = asyncio.create_task(slots.acquire("company"))
        await asyncio.sleep(0)
        assert value("waiting") == 1
        with pytest.raises(Unavailable):
            await slots.acquire("company")
        with pytest.raises(Unavailable):
            await waiting
    assert (value("waiting"), value("duration_seconds_count")) == (0, 2)
    assert (value("rejected_total", reason="full"), value("rejected_total", reason="timed_out")) == (1, 1)


async def test_requests_in_flight_end_also_when_they_fail(as_served: AsServed) -> None:
    client = CoachClient(as_served, None, None)
    await asyncio.gather(*(client.get("/coach/customers") for _ in range(3)), client.get("/nothing"))
    assert figure(await read(client), "http_requests_in_flight") == 1, "only the one that asks"
    await client.close()
