"""Lets a language model do a job: a loop of its answers and the calls of tools that it asks for.

The model is reached over HTTP, in the form of OpenAI's chat completions or, if the address ends with `/messages`, of
Anthropic's messages.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
import orjson

from tests.support.coaching_jobs import Run, ToolClient

MAX_TURNS, MAX_ANSWER_TOKENS, TIMEOUT_SECONDS = 12, 2_000, 120
_SITUATION = (
    "You work for a coach. Today is {today}. The coach has read and agrees to whatever a tool asks to have confirmed, "
    "if it is what the request says. Do what the request asks with as few calls as possible, then answer in a few "
    "sentences, with the figures and dates that matter."
)


@dataclass(frozen=True)
class Endpoint:
    """Where a model is reached."""

    url: str
    model: str
    key: str

    @classmethod
    def from_environment(cls) -> Self | None:
        """The model that COACHING_EVALUATION_URL, _MODEL and _KEY name, or None."""
        url = os.environ.get("COACHING_EVALUATION_URL")
        model, key = (os.environ.get(f"COACHING_EVALUATION_{name}", "") for name in ("MODEL", "KEY"))
        return cls(url, model, key) if url else None

    @property
    def is_anthropic(self) -> bool:
        """Whether it takes Anthropic's messages."""
        return self.url.endswith("/messages")


@dataclass(frozen=True)
class Call:
    """A call of a tool that the model asks for."""

    id: str
    tool: str
    arguments: dict[str, Any]


class Conversation:
    """The messages between the driver and a model."""

    def __init__(self, endpoint: Endpoint, instructions: str, tools: Sequence[dict[str, Any]], request: str) -> None:
        self._endpoint, self._tools, self._instructions = endpoint, tools, instructions
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": request}]
        if not endpoint.is_anthropic:
            self._messages.insert(0, {"role": "system", "content": instructions})

    async def ask(self, http: aiohttp.ClientSession) -> tuple[str, list[Call]]:
        """Send the messages, and return the text of the answer and the calls that it asks for."""
        headers = {"Authorization": f"Bearer {self._endpoint.key}"}
        body: dict[str, Any] = {"model": self._endpoint.model, "messages": self._messages, "tools": self._describe()}
        if self._endpoint.is_anthropic:
            headers = {"x-api-key": self._endpoint.key, "anthropic-version": "2023-06-01"}
            body |= {"system": self._instructions, "max_tokens": MAX_ANSWER_TOKENS}
        async with http.post(self._endpoint.url, json=body, headers=headers) as response:
            raw = await response.read()
            assert response.status == 200, raw[:500]
        return self._take_anthropic(raw) if self._endpoint.is_anthropic else self._take_openai(raw)

    def _describe(self) -> list[dict[str, Any]]:
        if self._endpoint.is_anthropic:
            return [
                {"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]}
                for tool in self._tools
            ]
        return [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool["description"],
                    "parameters": tool["inputSchema"],
                },
            }
            for tool in self._tools
        ]

    def _take_openai(self, raw: bytes) -> tuple[str, list[Call]]:
        message = orjson.loads(raw)["choices"][0]["message"]
        self._messages.append(message)
        calls = [
            Call(each["id"], each["function"]["name"], orjson.loads(each["function"]["arguments"] or "{}"))
            for each in message.get("tool_calls") or []
        ]
        return message.get("content") or "", calls

    def _take_anthropic(self, raw: bytes) -> tuple[str, list[Call]]:
        content = orjson.loads(raw)["content"]
        self._messages.append({"role": "assistant", "content": content})
        calls = [Call(each["id"], each["name"], each["input"]) for each in content if each["type"] == "tool_use"]
        return "".join(each["text"] for each in content if each["type"] == "text"), calls

    def add_results(self, results: Sequence[tuple[Call, str]]) -> None:
        """Add what the calls have returned."""
        if self._endpoint.is_anthropic:
            content = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in results]
            self._messages.append({"role": "user", "content": content})
        else:
            self._messages += [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results]


async def follow_model(
    run: Run,
    tools: ToolClient,
    listed: Sequence[dict[str, Any]],
    instructions: str,
    request: str,
    endpoint: Endpoint,
) -> str:
    """Let a model do what a coach requests, and return its last answer. Raises AssertionError if it does not end."""
    situation = _SITUATION.format(today=run.coach.ctx.caller.today())
    conversation = Conversation(endpoint, f"{instructions}\n{situation}", listed, request)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)) as http:
        for _ in range(MAX_TURNS):
            answer, calls = await conversation.ask(http)
            if not calls:
                return answer
            results = []
            for call in calls:
                result = await run.call(tools, call.tool, call.arguments)
                results.append((call, str(result["content"][0]["text"])))
            conversation.add_results(results)
    raise AssertionError(f"no answer after {MAX_TURNS} turns")
