"""The tools that are listed: their names, their hints and what they have to have confirmed, written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.mcp import tools_of
from tests.support.mcp_client import McpHttpClient

# Each tool that is listed: r (reads) or w (writes), then d (replaces or removes data), i (a repetition changes nothing
# more), o (reaches people outside the service); and the reasons for which it has to be confirmed.
CATALOGUE: dict[str, tuple[str, set[str]]] = {
    "list_customers": ("r", set()),
    "get_customer": ("r", set()),
    "create_customer": ("wo", {"MANY_CLIENTS"}),
    "get_attention": ("r", set()),
    "get_activity": ("r", set()),
    "get_compliance": ("r", set()),
    "get_workouts": ("r", set()),
    "find_workouts": ("r", set()),
    "create_workout": ("w", {"MANY_DAYS", "FAR_DATE"}),
    "update_workout": ("wd", {"DONE_WORK", "FAR_DATE"}),
    "update_workout_items": ("wd", {"DONE_WORK"}),
    "remove_workout": ("wd", {"DONE_WORK"}),
    "log_workout": ("wd", {"DONE_WORK"}),
    "import_rows": ("w", {"HISTORY"}),
    "copy_schedule": ("wd", {"MANY_DAYS", "FAR_DATE", "MANY_CLIENTS"}),
    "adjust_schedule": ("wd", {"MANY_DAYS", "FAR_DATE", "MANY_CLIENTS"}),
    "replace_exercise": ("wd", {"MANY_DAYS", "FAR_DATE", "MANY_CLIENTS"}),
    "clear_schedule": ("wd", {"MANY_DAYS", "FAR_DATE", "MANY_CLIENTS"}),
    "set_availability": ("wd", {"MANY_DAYS", "FAR_DATE"}),
    "set_training_max": ("wdi", set()),
    "list_exercises": ("r", set()),
    "create_exercise": ("w", set()),
    "get_exercise_history": ("r", set()),
    "list_programs": ("r", set()),
    "get_program": ("r", set()),
    "save_program": ("wd", {"PROGRAM_DAYS"}),
    "assign_program": ("wd", {"MANY_DAYS", "FAR_DATE", "MANY_CLIENTS"}),
    "list_metric_sets": ("r", set()),
    "get_metric_history": ("r", set()),
    "record_metric": ("wdi", {"FAR_DATE", "FAR_VALUE"}),
    "get_training_load": ("r", set()),
    "list_check_ins": ("r", set()),
    "schedule_check_in": ("w", {"MANY_DAYS", "FAR_DATE"}),
    "review_check_in": ("wo", set()),
    "list_notes": ("r", set()),
    "add_note": ("w", set()),
    "list_messages": ("r", set()),
    "send_message": ("wdo", {"MANY_CLIENTS"}),
    "get_proposal": ("r", set()),
    "undo": ("wd", {"MANY_DAYS", "MANY_CLIENTS"}),
}
# The tools of earlier releases.
REMOVED = ("add_workout_item", "move_workout_item", "list_form_responses")
# Of the whole response: at most 44,000 bytes and 11,000 tokens.
MAX_LIST_BYTES = 44_000
# Arguments whose names and limits say all.
EXPLAINED = ("page", "pageSize", "limit", "surname", "email", "phone", "groups", "startDate", "endDate")


def listed_names() -> set[str]:
    """The tools that `tools/list` names for a caller with all rights."""
    return set(CATALOGUE)


def hints(annotations: dict[str, Any]) -> str:
    """The hints of a listed tool as the catalogue abbreviates them."""
    reads = annotations["readOnlyHint"]
    return "".join(
        [
            "r" if reads else "w",
            "d" if annotations.get("destructiveHint") else "",
            "i" if annotations.get("idempotentHint") else "",
            "o" if annotations["openWorldHint"] else "",
        ]
    )


async def test_listed_tools_are_those_of_the_catalogue_with_its_hints(mcp: McpHttpClient) -> None:
    tools = (await mcp.request("tools/list")).ok()["result"]["tools"]
    listed = {tool["name"]: hints(tool["annotations"]) for tool in tools}
    assert listed == {name: CATALOGUE[name][0] for name in listed_names()}
    assert len(CATALOGUE) <= 40
    for tool in tools:
        of_writing = set() if tool["annotations"]["readOnlyHint"] else {"destructiveHint"}
        assert tool["annotations"].keys() - {"idempotentHint"} == {"readOnlyHint", "openWorldHint"} | of_writing
        assert ("outputSchema" in tool) is tool["annotations"]["readOnlyHint"], tool["name"]


def test_tools_declare_what_has_to_be_confirmed() -> None:
    listed = [tool for tool in tools_of(features.TOOLS) if not tool.unlisted]
    declared = {tool.name: {reason.name for reason in tool.confirms} for tool in listed}
    assert declared == {name: CATALOGUE[name][1] for name in listed_names()}


@pytest.mark.parametrize("name", REMOVED)
async def test_removed_tool_is_unknown(mcp: McpHttpClient, name: str) -> None:
    reply = await mcp.request("tools/call", {"name": name, "arguments": {}})
    assert "unknown tool" in reply.raw.decode().lower()


async def test_list_of_tools_is_short(mcp: McpHttpClient) -> None:
    for reply in (await mcp.request("tools/list"), await mcp.request_modern("tools/list")):
        assert len(reply.ok()["result"]["tools"]) == len(CATALOGUE)
        assert len(reply.raw) < MAX_LIST_BYTES


def parameters(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every parameter of an input schema, those inside others included."""
    assert schema["additionalProperties"] is False, path
    for name, about in schema["properties"].items():
        yield f"{path}.{name}", about
        inner = about.get("items", about)
        if inner["type"] == "object":
            yield from parameters(inner, f"{path}.{name}")


async def test_every_argument_is_described_and_bounded(mcp: McpHttpClient) -> None:
    for tool in (await mcp.request("tools/list")).ok()["result"]["tools"]:
        assert re.fullmatch("[a-z_]{1,64}", tool["name"])
        assert tool["title"] and len(tool["description"]) > 60
        for path, about in parameters(tool["inputSchema"], tool["name"]):
            assert about.get("description") or path.split(".")[-1] in EXPLAINED, f"{path} is not described"
            if about["type"] in ("integer", "number"):
                assert {"minimum", "maximum"} <= about.keys(), f"{path} has no bounds"
            if about["type"] == "array":
                assert "maxItems" in about, f"{path} has no bounds"
            if about["type"] == "string":
                assert about.keys() & {"maxLength", "pattern", "format", "enum"}, f"{path} has no bounds"
        own = {"idempotencyKey"} <= tool["inputSchema"]["properties"].keys()
        assert own is not tool["annotations"]["readOnlyHint"], tool["name"]
