"""JSON bodies that programs could read in different ways are rejected."""

from __future__ import annotations

import pytest

from tests.support.client import CoachClient

JSON = {"Content-Type": "application/json"}
DEEP = b"[" * 100 + b"]" * 100


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
