"""Traces: off without cost by default, and without personal data when they are on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from opentelemetry.sdk.trace import Span

import coaching_service
from coaching_service import logs, runtime
from coaching_service.app import create_app
from coaching_service.core.database.context import Context, Services
from coaching_service.core.jobs import queue, worker
from coaching_service.core.outbound import OutboundClient, OutboundError
from coaching_service.core.tracing import NO_TRACER, TracingUnusable, measure, start_tracing
from coaching_service.settings import Settings
from tests.support.client import UNKNOWN, CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.sampled import proof
from tests.support.trace_receiver import ReceivedSpan, receiving

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PACKAGE = Path(coaching_service.__file__).parent
TELEMETRY = r"(from|import) opentelemetry\.(sdk|exporter)\b"
SECRETS = ("Zanzibar", "zanzibar", "4711", "deltoid")


def parts(spans: list[ReceivedSpan]) -> set[str]:
    return {span.name for span in spans}


async def test_spans_are_received_without_personal_data(
    settings: Settings, services: Services, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        async with runtime.open_services(settings) as traced, TestServer(create_app(settings, traced)) as server:
            client = CoachClient(server, coach.key, coach.ctx)
            body = {"name": "Zanzibar", "email": "zanzibar@4711.test", "notes": "deltoid"}
            traced_headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-Id": "zanzibar-4711"}
            client.checks = False
            ana = (await client.send("POST", "/coach/customers", json=body, headers=traced_headers)).ok(201)
            await client.get("/coach/customers", archived="false", pageSize=20, pageNum=1, contains="Zanzibar")
            await client.get("/coach/customers/4711")
            await client.get(f"/coach/customers/{UNKNOWN}", zanzibar="4711")
            await client.get("/zanzibar/4711")
            await client.get("/healthz")
            async with McpHttpClient(server, {"Authorization": f"Bearer {coach.key}"}) as mcp:
                await mcp.call("list_customers", contains="Zanzibar")
                await mcp.call("get_customer", customerId=ana["_id"])
            await failing_job(traced)
            outbound_client = OutboundClient(tracer=traced.tracer)
            with pytest.raises(OutboundError):
                await outbound_client.get("https://unknown.invalid/zanzibar?4711=Zanzibar")
            await outbound_client.close()
            await client.close()

    assert received.resource["service.name"] == "coaching-service"
    assert received.resource["deployment.environment.name"] == "test"

    (created,) = received.named("POST /coach/customers")
    assert (created.trace_id, created.parent_id) == (TRACE, PARENT)
    assert created.attributes == {
        "http.request.method": "POST",
        "http.route": "/coach/customers",
        "http.response.status_code": 201,
    }
    (transaction,) = [span for span in received.below(created) if span.name == "transaction"]
    assert transaction.attributes["coaching.operation"] == "createCustomer"
    assert {"insert customers", "commitTransaction"} <= parts(received.below(transaction))
    (insert,) = [span for span in received.below(transaction) if span.name == "insert customers"]
    assert insert.attributes == {
        "db.system.name": "mongodb",
        "db.operation.name": "insert",
        "db.collection.name": "customers",
    }

    (listed,) = received.named("GET /coach/customers")
    assert listed.trace_id != TRACE
    assert parts(received.below(listed)) & {"find customers", "aggregate customers"}
    assert not any(span.is_error for span in received.named("GET /coach/customers/{customerId}")), "400 is no error"
    assert received.named("other unknown")
    assert "find customers" in parts(received.below(received.named("POST /mcp")[-1])), "in tools too"
    assert not [name for name in parts(received.spans) if "/healthz" in name]

    (job,) = received.named("job test tracing")
    assert (job.is_error, job.attributes["error.type"], job.parent_id) == (True, "ValueError", "")
    (outbound,) = received.named("GET")
    assert outbound.attributes == {
        "http.request.method": "GET",
        "server.address": "unknown.invalid",
        "error.type": "NAME_NOT_RESOLVED",
    }

    identifiers = (ana["_id"], str(coach.ctx.company_id), str(coach.key), str(coach.ctx.caller.email))
    for secret in (*SECRETS, *identifiers):
        assert secret.encode() not in received.raw, secret
    keys = {name for span in received.spans for name in span.attributes}
    assert keys - {"coaching.retries"} == {
        *("http.request.method", "http.route", "http.response.status_code", "server.address", "error.type"),
        *("db.system.name", "db.operation.name", "db.collection.name", "coaching.operation"),
    }


async def failing_job(services: Services) -> None:
    """Run a job that fails with a message that must not be sent."""

    async def step(_: Services, __: queue.Job) -> None:
        raise ValueError("Zanzibar 4711")

    await queue.enqueue(Context(services), "test tracing", {"name": "Zanzibar"})
    await worker.run_due(services, {"test tracing": step}, limit=1)
    await services.db["jobs"].delete_many({"kind": "test tracing"})


async def test_log_lines_name_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        tracer, close = start_tracing(os.environ)
        assert logs.add_trace_id(None, "info", {"event": "before"}) == {"event": "before"}
        with measure(tracer, "outer", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}):
            assert logs.add_trace_id(None, "info", {}) == {"trace_id": TRACE}
        assert logs.add_trace_id(None, "info", {}) == {}
        await close()
    assert [span.name for span in received.spans] == ["outer"]


async def test_no_span_is_made_while_tracing_is_off(
    settings: Settings, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[Any] = []
    original = Span.__init__

    def count(self: Span, *arguments: Any, **options: Any) -> None:
        created.append(self)
        original(self, *arguments, **options)

    monkeypatch.setattr(Span, "__init__", count)
    async with runtime.open_services(settings) as services, TestServer(create_app(settings, services)) as server:
        assert services.tracer is NO_TRACER
        client = CoachClient(server, coach.key, coach.ctx)
        await client.create_customer()
        await client.close()
    assert created == []
    assert measure(NO_TRACER, "one") is measure(NO_TRACER, "another"), "one object for all"


def test_one_module_imports_the_packages_of_tracing_when_it_is_turned_on() -> None:
    """Only in functions: none of them is loaded while tracing is off."""
    modules = [each for each in PACKAGE.rglob("*.py") if re.search(TELEMETRY, each.read_text("utf-8"))]
    assert modules == [PACKAGE / "core" / "tracing.py"]
    text = modules[0].read_text("utf-8")
    assert re.search(rf"^ +{TELEMETRY}", text, re.MULTILINE)
    assert not re.search(rf"^{TELEMETRY}", text, re.MULTILINE)


@proof
def test_packages_of_tracing_are_not_loaded_while_it_is_off() -> None:
    program = (
        "import sys, coaching_service.command_line.serving; "
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "coaching"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_tracing_is_off(environment: dict[str, str]) -> None:
    assert start_tracing(environment)[0] is NO_TRACER


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    ],
)
def test_unsupported_ways_of_tracing_are_refused(environment: dict[str, str], word: str) -> None:
    with pytest.raises(TracingUnusable, match=word):
        start_tracing(environment)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(TracingUnusable, match=r"coaching-service\[telemetry\]"):
        start_tracing({"OTEL_TRACES_EXPORTER": "otlp"})


async def test_unreachable_receiver_does_not_delay_the_end(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    assert "OTEL_SDK_DISABLED" not in os.environ
    async with runtime.open_services(settings) as services:
        with measure(services.tracer, "lost"):
            pass
