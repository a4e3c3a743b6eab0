"""Deprecated operations are marked in the API document, in each response and in the documentation."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer

from coaching_service import features
from coaching_service.app import authenticate
from coaching_service.core.auth import anyone, public
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import NotFound
from coaching_service.core.http.handlers import HandlerDependencies, mount
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import Deprecation, Route, Routes, routes_of
from coaching_service.core.slots import RequestSlots
from coaching_service.documentation.openapi import describe
from coaching_service.http_server import request_middleware

CHANGES = Path(__file__).parents[2] / "docs" / "api-changes.md"
OLD = Deprecation(since=date(2026, 12, 1), sunset=date(2027, 6, 1), instead="`GET /new`")
HEADERS = {"Deprecation": "@1796083200", "Sunset": "Tue, 01 Jun 2027 00:00:00 GMT"}


def declared_routes() -> list[Route]:
    """Deprecated routes of each kind of response, and one that is not."""
    routes = Routes("/old", tag="Old")

    @routes.get("/file", access=public(), returns=bytes, deprecated=OLD)
    async def download_old(_: Context) -> Download:
        """Download."""

        async def read(_start: int, _end: int) -> AsyncGenerator[bytes]:
            yield b"old"

        return Download("application/octet-stream", "it", read)

    @routes.delete("/missing", access=public(), deprecated=OLD)
    async def delete_old(_: Context) -> None:
        """Delete."""
        raise NotFound("note")

    @routes.delete("/defect", access=public(), deprecated=OLD)
    async def delete_defect(_: Context) -> None:
        """Delete."""
        raise RuntimeError

    @routes.delete("/private", access=anyone(), deprecated=OLD)
    async def delete_private(_: Context) -> None:
        """Delete."""

    @routes.delete("/done", access=public(), deprecated=OLD)
    async def delete_done(_: Context) -> None:
        """Delete."""

    @routes.delete("/current", access=public())
    async def delete_current(_: Context) -> None:
        """Delete."""

    return routes.declared


@pytest.fixture
async def server(services: Services) -> AsyncIterator[BaseTestServer]:
    """Serves these routes."""
    app = web.Application(middlewares=[request_middleware(services)])
    slots, bulk = [RequestSlots(number, queued=100, seconds=60) for number in (8, 2)]
    mount(
        app, declared_routes(), HandlerDependencies(services, authenticate, slots, bulk, RequestSlots(1), body_limit=1)
    )
    async with TestServer(app) as listening:
        yield listening


@pytest.mark.parametrize(
    ("method", "path", "status", "expected"),
    [
        ("GET", "/old/file", 200, HEADERS),
        ("DELETE", "/old/done", 204, HEADERS),
        ("DELETE", "/old/missing", 404, HEADERS),
        ("DELETE", "/old/defect", 500, HEADERS),
        ("DELETE", "/old/private", 401, HEADERS),
        ("DELETE", "/old/current", 204, {}),
        ("POST", "/old/done", 405, {}),
    ],
)
async def test_each_response_of_a_deprecated_operation_names_its_end(
    server: BaseTestServer, method: str, path: str, status: int, expected: dict[str, str]
) -> None:
    async with aiohttp.ClientSession() as http, http.request(method, server.make_url(path)) as response:
        assert response.status == status
        assert {name: response.headers[name] for name in HEADERS if name in response.headers} == expected


def test_headers_are_the_days_of_the_declaration() -> None:
    headers = OLD.headers()
    assert datetime.fromtimestamp(int(headers["Deprecation"].removeprefix("@")), UTC).date() == OLD.since
    assert parsedate_to_datetime(headers["Sunset"]).date() == OLD.sunset


def test_api_document_marks_deprecated_operations() -> None:
    document = describe(declared_routes(), [("Old", "Old operations.")], "http://coaching.test")
    old, current = (document["paths"][f"/old/{name}"]["delete"] for name in ("done", "current"))
    assert old["deprecated"] is True
    assert old["description"].endswith("Deprecated since 2026-12-01, removed on 2027-06-01 or later. Use `GET /new`.")
    assert {"Deprecation", "Sunset"} <= old["responses"]["204"]["headers"].keys()
    assert "deprecated" not in current
    assert not {"Deprecation", "Sunset"} & current["responses"]["204"]["headers"].keys()


def listed_operations(text: str) -> list[tuple[Any, ...]]:
    """The table of deprecated operations: operation, since, sunset, what to use instead."""
    section = text.partition("## Deprecated operations\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \| ([\d-]+) \| ([\d-]+) \| (.+) \|$", section, re.MULTILINE)


def test_documentation_lists_deprecated_operations() -> None:
    declared = [(f"{route.method} {route.path}", route.deprecated) for route in routes_of(features.ROUTES)]
    expected = [(name, str(old.since), str(old.sunset), old.instead) for name, old in declared if old is not None]
    assert listed_operations(CHANGES.read_text("utf-8")) == expected
    row = "| `DELETE /old` | 2026-12-01 | 2027-06-01 | `GET /new` |"
    assert listed_operations(f"## Deprecated operations\n\n{row}\n") == [
        ("DELETE /old", "2026-12-01", "2027-06-01", "`GET /new`")
    ]
