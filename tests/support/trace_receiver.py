"""A receiver of traces, as operators run one: OTLP over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass
class ReceivedSpan:
    """One span; identifiers are hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    is_error: bool
    attributes: dict[str, str | int]


@dataclass
class Received:
    """What was received: parsed, and as bytes."""

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    resource: dict[str, str | int] = field(default_factory=dict)
    raw: bytes = b""

    def named(self, name: str) -> list[ReceivedSpan]:
        """The spans of this name."""
        return [span for span in self.spans if span.name == name]

    def below(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        """The spans inside of another one, at any depth."""
        own = [span for span in self.spans if span.parent_id == parent.span_id]
        return own + [span for each in own for span in self.below(each)]

    def add(self, body: bytes) -> None:
        """Parse a request."""
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = _values(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.status.code == 2,
                        _values(span.attributes),
                    )
                    for span in scope.spans
                ]


def _values(attributes: object) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in attributes}  # type: ignore[attr-defined]


@asynccontextmanager
async def receiving() -> AsyncIterator[Received]:
    """Receive traces while the context is open."""
    received = Received()

    async def receive(request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        received.add(await request.read())
        body = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")

    app = web.Application()
    app.router.add_post("/v1/traces", receive)
    async with TestServer(app) as server:
        received.url = str(server.make_url("/")).rstrip("/")
        yield received
