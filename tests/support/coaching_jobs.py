"""Coaching jobs as data: a request, the state before, scripted calls, the state after, and a budget.

A job is a JSON file in tests/mcp/jobs:

- `request`: what a coach asks of an assistant.
- `state`: REST requests that make the state before: `call` (method and path), `body`, `as` (a client, by the name of the
  saved identifier), `save` (names for values of the answer, by path), `repeat` (how often, with `{number}`).
- `calls`: what a good assistant calls: `tool`, `arguments`, `save`, `find` (names for values of the text, by regular
  expression), `returns` (texts in the result) and `approve` (the reasons for which the call is proposed to the coach,
  who approves it over REST), `reject` (likewise, but rejected: `{proposal}` is its identifier) or `refused` (words of
  the error).
- `key`: the restrictions of the assistant's key; without it none.
- `answer`: what the answer to the coach has to contain; the calls return it. Dates may also be in words.
- `after`: REST requests and what they answer: objects by some of their fields, arrays whole, or `{"has": [...]}` for
  entries that are in an array in any order, `{"without": ...}` for one that is not; `{"says": [...]}` for words of a
  text. `save` as in `state`: a check refers to nothing that the calls have saved, since a model makes others.
- `budget`: the largest number of calls, and of tokens that they return (two bytes are counted as a token).

`{name}` stands for a saved value, `{today+1}` and `{monday-7}` for dates: days from today, or from this week's Monday.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Protocol

import orjson

from tests.support.attention import renew
from tests.support.client import CoachClient, Reply
from tests.support.mcp_client import approve

FOLDER = Path(__file__).parents[1] / "mcp" / "jobs"
_DATE = re.compile(r"(today|monday)([+-]\d+)?")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_+-]*)\}", re.IGNORECASE)
# Measured with o200k_base: 2.1 to 2.8, because identifiers and figures have more tokens than words.
_BYTES_PER_TOKEN = 2

Job = Mapping[str, Any]


def job_names() -> list[str]:
    """The names of all jobs."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load_job(name: str) -> Job:
    """Read a job."""
    job: Job = orjson.loads((FOLDER / f"{name}.json").read_bytes())
    return job


class ToolClient(Protocol):
    """A client that calls tools and returns results as JSON."""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool."""


@dataclass
class Run:
    """One run of a job: the saved values, what was called, and what it returned."""

    coach: CoachClient
    saved: dict[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Everything that the calls have returned for an assistant to read."""
        return "\n".join(each["content"][0]["text"] for each in self.results)

    def count_tokens(self) -> int:
        """The tokens that the calls have returned, in the longer one of their two forms."""
        return sum(
            max(len(each["content"][0]["text"].encode()), len(orjson.dumps(each.get("structuredContent", ""))))
            // _BYTES_PER_TOKEN
            for each in self.results
        )

    def fill(self, value: Any) -> Any:
        """A value of the job with its placeholders replaced."""
        if isinstance(value, dict):
            return {name: self.fill(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.fill(each) for each in value]
        if not isinstance(value, str):
            return value
        if match := _PLACEHOLDER.fullmatch(value):
            return self._look_up(match[1])
        return _PLACEHOLDER.sub(lambda each: str(self._look_up(each[1])), value)

    def _look_up(self, name: str) -> Any:
        if (day := _DATE.fullmatch(name)) is None:
            return self.saved[name]
        today: date = self.coach.ctx.caller.today()
        start = today if day[1] == "today" else today - timedelta(days=today.weekday())
        return str(start + timedelta(days=int(day[2] or 0)))

    def save(self, paths: Mapping[str, str], answer: Any) -> None:
        """Save values of an answer, by path."""
        for name, path in paths.items():
            value = answer
            for part in path.split("."):
                value = value[int(part)] if part.isdigit() else value[part]
            self.saved[name] = value

    async def prepare(self, job: Job) -> None:
        """Make the state before; what follows from it, such as compliance, is up to date."""
        change_id = None
        for step in job["state"]:
            for number in range(step.get("repeat", 1)):
                self.saved["number"] = f"{number + 1:02}"
                reply = await self._request(step)
                change_id = reply.headers.get("X-Change-Id", change_id)
        if change_id is not None:
            await self.coach.wait_until_numbered(change_id)
        await renew(self.coach)

    async def _request(self, step: Mapping[str, Any]) -> Reply:
        client = self.coach
        if "as" in step:
            client = await self.coach.as_client({"_id": self.saved[step["as"]]})
        method, path = self.fill(step["call"]).split(" ", 1)
        options = {} if method == "GET" else {"json": self.fill(step.get("body", {}))}
        reply = await client.send(method, path, **options)
        assert reply.status < 300, (step, reply.raw)
        self.save(step.get("save", {}), reply.json)
        return reply

    async def follow_script(self, job: Job, tools: ToolClient) -> None:
        """Make the calls of the job."""
        for call in job["calls"]:
            arguments = self.fill(call.get("arguments", {}))
            result = await self.call(tools, call["tool"], arguments)
            if "refused" in call:
                assert result.get("isError") and call["refused"] in result["content"][0]["text"], result
                continue
            assert not result.get("isError"), result
            data = result["structuredContent"]
            if "approve" in call:
                assert (data["executed"], data["reasons"]) == (False, call["approve"]), data
                data = await approve(self.coach, data)
            if "reject" in call:
                assert (data["executed"], data["reasons"]) == (False, call["reject"]), data
                self.saved["proposal"] = data["proposalId"]
                session = await self.coach.interactive()
                (await session.post(f"/coach/proposals/{data['proposalId']}/reject")).ok()
                continue
            assert data.get("executed", True), result
            self.save(call.get("save", {}), data)
            for name, pattern in call.get("find", {}).items():
                match = re.search(self.fill(pattern), result["content"][0]["text"])
                assert match, (pattern, result["content"][0]["text"])
                self.saved[name] = match[1]
            for words in self.fill(call.get("returns", [])):
                assert words in result["content"][0]["text"], (words, result["content"][0]["text"])

    async def make_key(self, job: Job) -> str:
        """The key of the assistant, with the restrictions of the job."""
        if "key" not in job:
            return str(self.coach.key)
        session = await self.coach.interactive()
        key: str = (await session.post("/coach/api-keys", {"name": "Job", "restrictions": job["key"]})).ok(201)["key"]
        return key

    async def call(self, tools: ToolClient, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and keep its result."""
        result = await tools.call(tool, **arguments)
        self.results.append(result)
        return result

    def check_answer(self, job: Job, answer: str) -> None:
        """Assert that the answer to the coach contains what the job asks for."""
        for words in self.fill(job.get("answer", [])):
            assert says(answer, words, self.coach.ctx.caller.today()), f"{words!r} is not in {answer!r}"

    def check_budget(self, job: Job) -> None:
        """Assert that the calls were few and their results short."""
        budget = job["budget"]
        assert len(self.results) <= budget["calls"], f"{len(self.results)} calls"
        assert self.count_tokens() <= budget["tokens"], f"{self.count_tokens()} tokens"

    async def check_state(self, job: Job) -> None:
        """Assert that the state is the expected one."""
        for check in job["after"]:
            method, path = self.fill(check["call"]).split(" ", 1)
            reply = await self.coach.send(method, path)
            assert reply.status == check.get("status", 200), reply.raw
            if "answers" in check:
                compare(self.fill(check["answers"]), reply.json, path)
            self.save(check.get("save", {}), reply.json)


def says(answer: str, words: str, today: date) -> bool:
    """Whether an answer contains words, or a date (YYYY-MM-DD) in words: `17 Nov`, `November 17th`, `12 days ago`."""
    if words.casefold() in answer.casefold():
        return True
    if not _ISO_DATE.fullmatch(words):
        return False
    day = date.fromisoformat(words)
    number, month = rf"\b0?{day.day}(?:st|nd|rd|th)?\b", rf"\b{day:%b}(?:{f'{day:%B}'[3:]})?\b\.?"
    others = r"(?:,? (?:and |to )?\d{1,2})*"  # 17, 19 and 21 Nov
    patterns = [rf"{number}{others}(?: of)? {month}", rf"{month} {number}", rf"\b{(today - day).days} days ago\b"]
    return any(re.search(pattern, answer, re.IGNORECASE) for pattern in patterns)


def compare(expected: Any, actual: Any, path: str) -> None:
    """Assert that a value is the expected one: objects by the expected fields, arrays entry by entry."""
    if isinstance(expected, dict) and expected.keys() & _WORDS:
        _compare_loosely(expected, actual, path)
    elif isinstance(expected, dict):
        assert isinstance(actual, dict), f"{path}: {actual!r}"
        for name, value in expected.items():
            assert name in actual, f"{path}.{name} is missing"
            compare(value, actual[name], f"{path}.{name}")
    elif isinstance(expected, list):
        assert isinstance(actual, list), f"{path}: {actual!r}"
        assert len(actual) == len(expected), f"{path}: {len(actual)} entries instead of {len(expected)}: {actual!r}"
        for position, (value, entry) in enumerate(zip(expected, actual, strict=True)):
            compare(value, entry, f"{path}.{position}")
    else:
        assert actual == expected, f"{path}: {actual!r} instead of {expected!r}"


_WORDS = {"has", "without", "says"}


def _compare_loosely(expected: Mapping[str, Any], actual: Any, path: str) -> None:
    """Assert that an array has some entries, each another one, and lacks one, or that a text has some words."""
    for words in expected.get("says", ()):
        assert words.casefold() in actual.casefold(), f"{path}: {words!r} is not in {actual!r}"
    left = list(actual) if "says" not in expected else []
    for entry in expected.get("has", ()):
        found = next((each for each in left if _matches(entry, each)), None)
        assert found is not None, f"{path}: nothing is {entry!r} in {actual!r}"
        left.remove(found)
    if "without" in expected:
        assert actual, f"{path} is empty"
        assert not any(_matches(expected["without"], each) for each in actual), f"{path}: {actual!r}"


def _matches(expected: Any, actual: Any) -> bool:
    try:
        compare(expected, actual, "")
    except AssertionError:
        return False
    return True
