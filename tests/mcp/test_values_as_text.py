"""Arguments that models write as text: arrays, objects, numbers, booleans, and an empty text for nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from marshmallow import fields

from coaching_service.core.mcp import Arguments, InvalidArguments, optional, validate_arguments
from coaching_service.core.validation import Boolean, Date, Integer, ListOf, Number, StringList, Text
from tests.support.client import MONDAY, CoachClient
from tests.support.mcp_client import McpHttpClient, tool_change, tool_error, tool_result


class Inner(Arguments):
    count = Integer(load_default=1)


class Outer(Arguments):
    text = Text(**optional("A text."))
    blank = Text(allow_blank=True, load_default=None)
    needed = Text(load_default="")
    day = Date(**optional("A day."))
    number = Number(load_default=None, allow_none=True)
    count = Integer(load_default=None, allow_none=True)
    flag = Boolean(load_default=None, allow_none=True)
    names = StringList(load_default=None)
    inner = fields.Nested(Inner, load_default=None)
    entries = ListOf(fields.Nested(Inner), load_default=None)


def read(**sent: Any) -> dict[str, Any]:
    loaded = validate_arguments(Outer(), sent)
    return {name: loaded[name] for name in loaded if loaded[name] not in (None, "")}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"number": "62.5"}, {"number": 62.5}),
        ({"number": " -3 "}, {"number": -3}),
        ({"count": "8"}, {"count": 8}),
        ({"count": "8.0"}, {"count": 8}),
        ({"flag": "true"}, {"flag": True}),
        ({"flag": "False"}, {"flag": False}),
        ({"names": '["Ana", "Bo"]'}, {"names": ["Ana", "Bo"]}),
        ({"inner": '{"count": "3"}'}, {"inner": {"count": 3}}),
        ({"entries": '[{"count": "3"}, {}]'}, {"entries": [{"count": 3}, {"count": 1}]}),
        ({"entries": ['{"count": 4}']}, {"entries": [{"count": 4}]}),
        ({"text": "", "day": " ", "names": "", "number": "", "flag": ""}, {}),
        ({"text": "[1]"}, {"text": "[1]"}),
        ({"text": "true"}, {"text": "true"}),
        ({"text": "12"}, {"text": "12"}),
    ],
)
def test_values_are_read_as_what_the_argument_takes(sent: dict[str, Any], expected: dict[str, Any]) -> None:
    assert read(**sent) == expected


@pytest.mark.parametrize(
    "sent",
    [
        {"count": "8 reps"},
        {"count": "8.5"},
        {"number": "1e999"},
        {"number": "62,5"},
        {"flag": "yes"},
        {"names": "Ana"},
        {"names": '["Ana"'},
        {"inner": "[1]"},
        {"names": "[" * 100 + "]" * 100},
    ],
)
def test_other_texts_are_refused(sent: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        read(**sent)


async def test_a_workout_whose_days_are_text(coach: CoachClient, mcp: McpHttpClient) -> None:
    customer, _ = await coach.create_customer(), await coach.create_exercise("Back squat")
    days = [{"date": MONDAY, "name": "S", "text": "Back squat: 3x8 @60kg"}]
    created = await mcp.call("create_workout", customerId=customer["_id"], days=json.dumps(days))
    tool_change(created)
    assert [block["name"] for block in await coach.calendar(customer)] == ["S"]


async def test_numbers_booleans_and_lists_of_a_listing(coach: CoachClient, mcp: McpHttpClient) -> None:
    for name, groups in (("Ana", ["Runners"]), ("Bo", []), ("Cy", ["Runners"])):
        await coach.create_customer(name, groups=groups)
    listed = tool_result(
        await mcp.call("list_customers", groups='["Runners"]', pageSize="1", page="2", search="", isArchived="false")
    )
    assert (listed["totalDocs"], [each["line"] for each in listed["docs"]]) == (2, ["Cy»; groups «Runners"])
    tool_error(await mcp.call("list_customers", page="two"), "page must be an integer")


@pytest.mark.parametrize("method", ["tools/list", "ping", "prompts/list"])
async def test_null_is_the_same_as_no_parameters(mcp: McpHttpClient, method: str) -> None:
    without = await mcp.post_json({"jsonrpc": "2.0", "id": 1, "method": method})
    null = await mcp.post_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": None})
    assert (null.status, null.json) == (200, without.json)


async def test_null_parameters_of_a_notification(mcp: McpHttpClient) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": None}
    assert (await mcp.post_json(body)).status == 202


async def test_other_parameters_than_objects_are_refused(mcp: McpHttpClient) -> None:
    values: list[object] = [[], "x", 0, False]
    for params in values:
        reply = await mcp.post_json({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})
        assert reply.json["error"]["code"] == -32600
