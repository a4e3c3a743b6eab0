"""JSON bodies that programs could read in different ways are rejected."""

from __future__ import annotations

import asyncio
from io import BytesIO

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.other_process import AsServed

JSON = {"Content-Type": "application/json"}
DEEP = b"[" * 100 + b"]" * 100
MANY = b"[" + b",".join([b"1"] * 60_000) + b"]"


@pytest.mark.parametrize(
    "body",
    [b'{"name": "Ana", "name": "Bea"}', b'{"name": "Ana", "address": {"a": 1, "b": 2, "\\u0061": 3}}'],
    ids=["at the top", "nested and escaped"],
)
async def test_name_that_is_given_twice_is_rejected(coach: CoachClient, body: bytes) -> None:
    reply = await coach.send("POST", "/coach/customers", data=body, headers=JSON)
    error = reply.refused(400, "twice in one object")
    assert error["code"] == "REPEATED_JSON_NAME"
    assert await coach.names() == []


async def test_equal_names_in_different_objects_are_accepted(coach: CoachClient) -> None:
    body = b'{"name": "Ana", "extra": [{"name": 1.5, "a": 123456789012345678}, {"name": 2}]}'
    (await coach.send("POST", "/coach/customers", data=body, headers=JSON)).ok(201)


@pytest.mark.parametrize("value", [DEEP, b'{"a":' * 65 + b"1" + b"}" * 65], ids=["lists", "objects"])
async def test_body_that_is_nested_too_deeply_is_rejected(coach: CoachClient, value: bytes) -> None:
    body = b'{"name": "Ana", "extra": ' + value + b"}"
    error = (await coach.send("POST", "/coach/customers", data=body, headers=JSON)).refused(400, "64 levels")
    assert error["code"] == "JSON_TOO_DEEP"


async def test_wide_bodies_are_not_deep(coach: CoachClient) -> None:
    body = b'{"name": "Ana", "extra": [' + b",".join([b"[[]]"] * 100) + b"]}"
    (await coach.send("POST", "/coach/customers", data=body, headers=JSON)).ok(201)


@pytest.mark.parametrize("value", [MANY, b"[" + b",".join([b"[]"] * 30_000) + b"]"], ids=["numbers", "lists"])
async def test_body_with_too_many_values_is_rejected_before_it_is_decoded(coach: CoachClient, value: bytes) -> None:
    body = b'{"name": "Ana", "groups": ' + value
    error = (await coach.send("POST", "/coach/customers", data=body, headers=JSON)).refused(400, "50000 values")
    assert error["code"] == "TOO_MANY_JSON_VALUES", "although it is not valid JSON"


async def test_body_with_too_many_values_is_rejected_before_it_has_arrived(
    as_served: AsServed, coach: CoachClient
) -> None:
    head = f"POST /coach/customers HTTP/1.1\r\nHost: x\r\nX-API-Key: {coach.key}\r\nContent-Type: application/json\r\n"
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(as_served.host, as_served.port)
        writer.write(head.encode() + b"Content-Length: 1000000\r\n\r\n" + MANY)
        response = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert response.startswith(b"HTTP/1.1 400")


async def test_million_values_are_413_unless_the_limit_of_bodies_is_higher(
    coach: CoachClient, settings: Settings, services: Services
) -> None:
    body = b'{"name": "Ana", "groups": [' + b",".join([b"1"] * 1_000_000) + b"]}"
    (await coach.send("POST", "/coach/customers", data=BytesIO(body), headers=JSON)).refused(413)
    higher = settings.model_copy(update={"max_body_bytes": 10_000_000})
    async with TestServer(create_app(higher, services)) as server:
        client = CoachClient(server, coach.key, coach.ctx)
        error = (await client.send("POST", "/coach/customers", data=BytesIO(body), headers=JSON)).refused(400)
        assert error["code"] == "TOO_MANY_JSON_VALUES"
        await client.close()


async def test_large_bodies_are_decoded_on_a_thread_with_the_same_result(coach: CoachClient) -> None:
    extra = b", ".join([b'"' + b"x" * 1000 + b'"'] * 100)
    body = b'{"name": "Ana", "extra": [' + extra + b"]}"
    (await coach.send("POST", "/coach/customers", data=body, headers=JSON)).ok(201)
    twice = b'{"name": "Bea", "name": "Cleo", "extra": [' + extra + b"]}"
    error = (await coach.send("POST", "/coach/customers", data=twice, headers=JSON)).refused(400)
    assert error["code"] == "REPEATED_JSON_NAME"
    assert await coach.names() == ["Ana"]


async def test_a_byte_order_mark_is_skipped(coach: CoachClient) -> None:
    """Some programs write one before UTF-8."""
    mark = "\ufeff".encode()
    (await coach.send("POST", "/coach/customers", data=mark + b'{"name": "Ana"}', headers=JSON)).ok(201)
    (await coach.send("POST", "/coach/customers", data=mark * 2 + b"{}", headers=JSON)).refused(400)
