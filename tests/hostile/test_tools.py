"""Hostile arguments of tools: identifiers of others, operators, and texts that some interpreter reads."""

from __future__ import annotations

from typing import Any

from aiohttp.test_utils import TestServer

from tests.hostile.cases import OPERATORS, SAMPLES, TEXTS, ToolCase, complete, tool_cases
from tests.hostile.conftest import Caller, Refusals, Victim
from tests.hostile.test_foreign_identifiers import KINDS
from tests.hostile.test_hostile_values import sample
from tests.mcp.test_tool_access import arguments
from tests.support.client import UNKNOWN, Reply
from tests.support.declared_world import World
from tests.support.mcp_client import McpHttpClient

# The names of arguments whose identifiers have another name in a path.
ARGUMENTS = KINDS | {
    "workoutId": "wblockId", "fromWorkoutId": "wblockId", "toWorkoutId": "wblockId", "itemId": "witemId",
    "exercise": "exerciseId", "withExercise": "exerciseId", "sourceCustomerId": "customerId",
}  # fmt: skip


def name_of(case: ToolCase) -> str:
    """The name of the argument in a world."""
    name = next(step for step in reversed(case.leaf.steps) if isinstance(step, str))
    return ARGUMENTS.get(name, name)


async def call(mcp: McpHttpClient, case: ToolCase, own: World, value: Any) -> Reply:
    """Call a tool with its own required arguments, and this value for the argument of the case."""
    given = case.leaf.put_into(arguments(case.tool, own), value)
    given = complete(case.tool.takes, given, SAMPLES | own)
    return await mcp.request("tools/call", {"name": case.tool.name, "arguments": given})


def is_refused(reply: Reply) -> bool:
    """Whether the call failed: a result that says so, or an error of the protocol."""
    return "error" in reply.json or bool(reply.json["result"].get("isError"))


def is_failure(reply: Reply) -> bool:
    """Whether the call failed unexpectedly."""
    return reply.status != 200 or "unexpected" in reply.raw.decode().lower() or b"-32603" in reply.raw


async def test_an_identifier_of_another_company_is_unknown_to_tools(
    public_server: TestServer, victim: Victim, stranger: Caller, refusals: Refusals
) -> None:
    differences = []
    async with McpHttpClient(public_server, {"X-API-Key": str(stranger.key.key)}) as assistant:
        for case in (case for case in tool_cases() if case.leaf.is_identifier):
            foreign = victim.world.get(name_of(case), UNKNOWN)
            theirs = await call(assistant, case, stranger.own, foreign)

            async def ask(case: ToolCase = case) -> str:
                return (await call(assistant, case, stranger.own, UNKNOWN)).raw.decode().replace(UNKNOWN, "")

            answer = theirs.raw.decode().replace(foreign, "")
            same = not is_refused(theirs) or answer == await refusals.like(name_of(case), answer, ask)
            if is_failure(theirs) or not same or set(victim.is_shown_in(theirs.raw)) - {foreign}:
                differences.append((str(case), theirs.raw[:300]))
    assert not differences, "\n".join(map(str, differences))
    assert await victim.references_in(stranger.key) == []


async def test_operators_and_hostile_texts_are_refused_or_stored_by_tools(
    public_server: TestServer, victim: Victim, target: Caller
) -> None:
    """One operator for each argument, and one text, by its name; the proofs send all."""
    differences = []
    async with McpHttpClient(public_server, {"X-API-Key": str(target.key.key)}) as assistant:
        for case in tool_cases():
            for value in (*sample(case, OPERATORS), *(sample(case, TEXTS) if case.leaf.is_text else ())):
                reply = await call(assistant, case, target.own, value)
                refused = is_refused(reply) or not isinstance(value, dict)
                if is_failure(reply) or not refused or victim.is_shown_in(reply.raw):
                    differences.append((str(case), str(value)[:30], reply.status, reply.raw[:300]))
    assert not differences, "\n".join(map(str, differences))
