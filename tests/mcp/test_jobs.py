"""Coaching jobs that an assistant does: with a script, and with a model if COACHING_EVALUATION_URL is set."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from mcp import Client

from coaching_service.mcp.server import INSTRUCTIONS
from tests.mcp import job_run
from tests.mcp.test_tool_catalogue import CATALOGUE
from tests.support.client import CoachClient
from tests.support.coaching_jobs import Run, compare, job_names, load_job, says
from tests.support.mcp_client import official_client
from tests.support.model_driver import Endpoint, follow_model
from tests.support.sampled import some
from tests.support.service_process import until

JOBS = job_names()
MOST_CALLS, MOST_TOKENS = 5, 6_000


class OfficialTools:
    """Calls tools with the official client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool."""
        result = await self._client.call_tool(tool, arguments)
        decoded: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return decoded


@pytest.mark.parametrize("name", some(JOBS, len(JOBS) // 4))
async def test_job_is_done_within_its_budget(public_server: TestServer, coach: CoachClient, name: str) -> None:
    job, run = load_job(name), Run(coach)
    await run.prepare(job)
    async with official_client(public_server, {"X-API-Key": await run.make_key(job)}, "auto") as client:
        await run.follow_script(job, OfficialTools(client))
    run.check_answer(job, run.text)
    await run.check_state(job)
    run.check_budget(job)


async def do_with_model(server: TestServer, coach: CoachClient, name: str, endpoint: Endpoint) -> Run:
    """Let a model do a job, and return the run once its answer and the state after have been checked."""
    job, run = load_job(name), Run(coach)
    await run.prepare(job)
    async with official_client(server, {"X-API-Key": await run.make_key(job)}, "auto") as client:
        tools = [tool.model_dump(by_alias=True, mode="json") for tool in (await client.list_tools()).tools]
        answer = await follow_model(run, OfficialTools(client), tools, INSTRUCTIONS, run.fill(job["request"]), endpoint)
    run.check_answer(job, answer)
    await run.check_state(job)
    return run


EVALUATED = Endpoint.from_environment()
if EVALUATED is not None:

    @pytest.mark.parametrize("name", JOBS)
    async def test_model_does_the_job_within_its_budget(
        public_server: TestServer, coach: CoachClient, name: str
    ) -> None:
        assert EVALUATED is not None
        run = await do_with_model(public_server, coach, name, EVALUATED)
        run.check_budget(load_job(name))


async def test_jobs_are_offered_without_their_answers(
    public_server: TestServer, new_company: Any, tmp_path: Path
) -> None:
    """One that is done as its script does it, and one that is not; or those that job_run names, done by a model."""
    is_run = job_run.FOLDER in os.environ
    folder = Path(os.environ.get(job_run.FOLDER, tmp_path))
    names = job_run.offered_names() if is_run else ["review_check_in_and_reply", "record_body_weight"]
    jobs = [job_run.OfferedJob(name, await new_company()) for name in names]
    for job in jobs:
        await job.prepare()
    offers = [job.offer(str(public_server.make_url("/mcp"))) for job in jobs]
    (folder / "jobs.json").write_text(json.dumps(offers, indent=1))
    shutil.copy(Path(job_run.__file__).with_name("call.py"), folder)
    assert all(offer.keys() == {"name", "request", "url", "headers"} for offer in offers)

    async def is_done() -> bool:
        for job in jobs:
            await job.decide()
        return (folder / "done").exists()

    if is_run:
        print(*[f"{offer['name']}: {offer['request']}" for offer in offers], sep="\n")
        await until(is_done, "the model has done the jobs", job_run.HOURS * 3600, pause=2.0)
    else:
        about = await run_call(folder, "review_check_in_and_reply")
        assert offers[0]["request"] in about and "Text between « and » was typed by people" in about
        assert "review_check_in: " in await run_call(folder, "review_check_in_and_reply", "--tools")
        listed = await run_call(folder, "review_check_in_and_reply", "list_check_ins", '{"status": "to_review"}')
        response = re.search("responseId ([0-9a-f]{24})", listed)
        assert response
        review = json.dumps({"responseId": response[1], "reply": "Take two days off."})
        assert "Nothing is done yet" in await run_call(folder, names[0], "review_check_in", review)
        used = json.loads((folder / f"{names[0]}.json").read_text())
        assert used["calls"] == 2 and used["tokens"] > 100
        (folder / "done").touch()
        assert await is_done()
    results = {job.name: await job.check(folder) or "done" for job in jobs}
    (folder / "results.json").write_text(json.dumps(results, indent=1))
    if is_run:
        print(*[f"{name}: {result}" for name, result in results.items()], sep="\n")
        assert set(results.values()) == {"done"}
    else:
        assert results["review_check_in_and_reply"] == "done"
        assert results["record_body_weight"] != "done", "nobody has recorded it"


async def run_call(folder: Path, *arguments: str) -> str:
    """What the client for models with a shell prints."""
    command = [sys.executable, str(folder / "call.py"), *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, output
    return output.decode()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_model_is_asked_and_its_calls_are_made(public_server: TestServer, coach: CoachClient, path: str) -> None:
    model = ScriptedModel(
        [("list_customers", {"search": "ana"}), ("add_note", {"text": "Knee pain", "isHealth": True})], "I noted it."
    )
    async with model.serve(path) as url:
        run = await do_with_model(public_server, coach, "note_knee_pain", Endpoint(url, "a-model", "a-key"))

    assert run.text.startswith("Active clients: 1")
    assert len(model.received) == 3
    first, _, last = model.received
    assert (first["model"], len(first["tools"])) == ("a-model", len(CATALOGUE))
    assert "Text between « and » was typed by people" in str(first)
    assert "Added a health note" in str(last["messages"][-1])


class ScriptedModel:
    """A receiver in place of a model, which asks for calls in turn; `customerId` is taken from what it was sent."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]], answer: str) -> None:
        self._calls, self._answer = calls, answer
        self.received: list[dict[str, Any]] = []

    @asynccontextmanager
    async def serve(self, path: str) -> AsyncIterator[str]:
        """Serve at a path, and return the address."""
        app = web.Application()
        app.router.add_post(path, self._anthropic if path.endswith("/messages") else self._openai)
        server = TestServer(app)
        await server.start_server()
        yield str(server.make_url(path))
        await server.close()

    async def _next(self, request: web.Request) -> tuple[str, dict[str, Any]] | None:
        body = await request.json()
        assert "a-key" in (request.headers.get("x-api-key", ""), request.headers.get("Authorization", "")[7:])
        self.received.append(body)
        if len(self.received) > len(self._calls):
            return None
        tool, arguments = self._calls[len(self.received) - 1]
        known = re.findall(r"«Ana» \[([0-9a-f]{24})\]", str(body["messages"]))
        return tool, arguments | ({"customerId": known[0]} if tool != "list_customers" else {})

    async def _openai(self, request: web.Request) -> web.Response:
        if (call := await self._next(request)) is None:
            message: dict[str, Any] = {"role": "assistant", "content": self._answer}
        else:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            asked = [{"id": f"call-{len(self.received)}", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": asked}
        return web.json_response({"choices": [{"message": message}]})

    async def _anthropic(self, request: web.Request) -> web.Response:
        if (call := await self._next(request)) is None:
            content: list[dict[str, Any]] = [{"type": "text", "text": self._answer}]
        else:
            content = [{"type": "tool_use", "id": f"call-{len(self.received)}", "name": call[0], "input": call[1]}]
        return web.json_response({"role": "assistant", "content": content})


def test_there_are_forty_jobs_with_a_budget() -> None:
    jobs = [load_job(name) for name in JOBS]
    assert len(jobs) == 44
    asking = [job["request"] for job in jobs if any({"approve", "reject"} & call.keys() for call in job["calls"])]
    assert len(asking) <= 10, "planning is not slowed down"
    for job in jobs:
        assert job.keys() >= {"request", "state", "calls", "after", "budget"}
        assert job["after"] or job.get("answer"), job["request"]
        known = {name for step in (*job["state"], *job["after"]) for name in step.get("save", ())}
        named = set(re.findall(r"\{([a-z_][a-z0-9_]*)[+}]", json.dumps(job["after"])))
        assert named <= known | {"today", "monday"}, f"{job['request']}: a model makes calls of its own"
        assert job["budget"]["calls"] <= MOST_CALLS
        assert job["budget"]["tokens"] <= MOST_TOKENS


@pytest.mark.parametrize(
    ("answer", "is_said"),
    [
        ("Ana last trained on 2026-11-17.", True),
        ("Ana last trained on Tue 17 Nov.", True),
        ("Sessions on 12, 15 and 17 November", True),
        ("November 17th, Ana", True),
        ("the 17th of November", True),
        ("She was last here 12 days ago.", True),
        ("7 Nov", False),
        ("27 Nov, 117 November, 17 Dec, 2 days ago, 112 days ago", False),
    ],
)
def test_dates_of_an_answer_may_be_in_words(answer: str, is_said: bool) -> None:
    assert says(answer, "2026-11-17", date(2026, 11, 29)) is is_said


def test_checks_of_jobs_accept_more_than_the_reference() -> None:
    items = [{"name": "Lunge", "sets": [1, 2]}, {"name": "Goblet squat", "sets": [3]}]
    compare({"items": {"has": [{"name": "Goblet squat"}], "without": {"name": "Back squat"}}}, {"items": items}, "")
    compare({"text": {"says": ["friday", "fine"]}}, {"text": "Hi Ana, Friday is fine!"}, "")
    for expected, actual in (
        ({"has": [{"name": "Lunge"}, {"name": "Lunge"}]}, items),
        ({"has": [{"name": "Back squat"}]}, items),
        ({"without": {"name": "Lunge"}}, items),
        ({"without": {"name": "Back squat"}}, []),
        ({"says": ["Monday"]}, "Friday"),
    ):
        with pytest.raises(AssertionError):
            compare(expected, actual, "")


async def test_job_that_cannot_be_checked_is_recorded(coach: CoachClient, tmp_path: Path) -> None:
    offered = job_run.OfferedJob("record_body_weight", coach)
    offered.job = {**offered.job, "answer": [], "after": [{"call": "GET /coach/customers/{nobody}"}]}
    assert await offered.check(tmp_path) == "could not be checked: KeyError('nobody')"
