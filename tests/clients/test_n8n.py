"""The nodes for n8n of clients/n8n: checked by n8n's rules, and run by n8n's engine against the service.

Collected with `--clients`; needs Node (20 or newer) and the packages of both package-lock.json.
"""

from __future__ import annotations

import asyncio
import json
import os
import tarfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from coaching_service.core.events import EVENT_TYPES
from coaching_service.people.webhooks import service
from coaching_service.settings import Settings
from scripts.release import read_versions
from tests.clients.programs import HERE, ROOT, run
from tests.support.client import CoachClient
from tests.support.own_application import OwnApplication, running_application
from tests.support.webhook_deliveries import received
from tests.support.webhooks import Receiver, receiving

Json = dict[str, Any]
PACKAGE, ENGINE = ROOT / "clients" / "n8n", HERE / "n8n"
DATE = "2026-03-02"


@pytest.fixture(scope="module")
async def package() -> Path:
    """The folder of the package, built."""
    for folder in (PACKAGE, ENGINE):
        installed, wanted = folder / "node_modules" / ".package-lock.json", folder / "package-lock.json"
        if not installed.exists() or installed.stat().st_mtime < wanted.stat().st_mtime:
            await run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
    await run("npm", "run", "--silent", "build", cwd=PACKAGE)
    return PACKAGE


@pytest.fixture(scope="module")
async def application(settings: Settings, password_hash: str) -> AsyncIterator[OwnApplication]:
    """An application whose webhooks reach this machine."""
    async with running_application(settings, "n8n", password_hash) as running:
        yield running


@pytest.fixture
async def coach(application: OwnApplication) -> AsyncIterator[CoachClient]:
    """A company's owner."""
    client = await application.new_coach()
    yield client
    await client.close()


class Engine:
    """n8n's engine with the nodes and the credentials of a coach."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def answer(self, command: str, **fields: Any) -> Json:
        """Run a command, and return its `result` or `error`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"run": command, **fields}).encode() + b"\n")
        async with asyncio.timeout(60):
            answer: Json = json.loads(await self._process.stdout.readline())
        return answer

    async def run(self, command: str, **fields: Any) -> Any:
        """Run a command, and return its result."""
        answer = await self.answer(command, **fields)
        assert "result" in answer, answer
        return answer["result"]

    async def act(self, resource: str, operation: str, **parameters: Any) -> list[Json]:
        """Run the node of actions once, and return the items of its output."""
        parameters = {"resource": resource, "operation": operation, **parameters}
        items: list[Json] = await self.run("execute", parameters=parameters)
        return items


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Where n8n would receive webhooks."""
    async with receiving() as started:
        yield started


@pytest.fixture
async def engine(
    package: Path, application: OwnApplication, coach: CoachClient, receiver: Receiver, tmp_path: Path
) -> AsyncIterator[Engine]:
    """The engine, with the key of the coach."""
    address = str(application.server.make_url(""))  # it ends with a slash, as people copy it
    environment = {
        "CREDENTIALS": json.dumps({"baseUrl": address, "apiKey": coach.key}),
        "WEBHOOKS": receiver.url.removesuffix("/hook"),
        "N8N_USER_FOLDER": str(tmp_path),
        "N8N_ENCRYPTION_KEY": "of a test",
        "N8N_LOG_LEVEL": "silent",
    }
    process = await asyncio.create_subprocess_exec(
        "node",
        str(ENGINE / "engine.mjs"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    yield Engine(process)
    assert process.stdin is not None
    process.stdin.close()
    assert await process.wait() == 0


async def test_the_nodes_read_and_change_what_they_are_for(engine: Engine, coach: CoachClient) -> None:
    [me] = await engine.run("test")
    assert me["via"] == "apiKey"

    more = {"email": "ana@example.com", "groups": ["Runners", "North"], "timezone": "Europe/Madrid"}
    [ana] = await engine.act("client", "create", name="Ana", additionalFields=more)
    assert (ana["name"], ana["customerRoleData"]["groups"]) == ("Ana", ["Runners", "North"])
    given = {"__rl": True, "mode": "id", "value": ana["_id"]}
    new = {"resource": "client", "operation": "create", "name": "={{ $json.who }}"}
    two = [{"who": "Bo"}, {"who": "Cy"}]
    bo, cy = await engine.run("execute", parameters=new, items=two)
    assert [bo["name"], cy["name"]] == ["Bo", "Cy"], "one for each item"
    repeated = await engine.run("execute", parameters=new, items=two)
    assert [each["_id"] for each in repeated] == [bo["_id"], cy["_id"]], "a repeated execution creates nothing again"
    [ana] = await engine.act("client", "update", clientId=given, updateFields={"surname": "Flores"})
    [read] = await engine.act("client", "get", clientId=given)
    assert read["surname"] == ana["surname"] == "Flores"
    for number in range(58):
        await coach.create_customer(f"Client {number}", sendInvitation=False)
    assert len(await engine.act("client", "getAll", returnAll=True)) == 61
    assert len(await engine.act("client", "getAll", limit=3)) == 3
    [found] = await engine.act("client", "getAll", filters={"email": "ANA@example.com"})
    assert found["_id"] == ana["_id"]
    assert await engine.act("client", "getAll", archived=True) == []
    first = await engine.run("search")
    second = await engine.run("search", after=first["paginationToken"])
    assert (len(first["results"]), len(second["results"]), second.get("paginationToken")) == (50, 11, None)
    assert (await engine.run("search", filter="flores"))["results"] == [{"name": "Ana Flores", "value": ana["_id"]}]

    items = json.dumps([{"type": "TASK", "taskFields": {"title": "Walk"}}])
    [workout] = await engine.act(
        "workout",
        "create",
        clientId=given,
        name="Legs",
        date=DATE,
        items=items,
        additionalFields={"startTime": "17:30"},
    )
    assert [each["taskFields"]["title"] for each in workout["items"]] == ["Walk"]
    of_workout = {"clientId": given, "workoutId": workout["_id"]}
    [workout] = await engine.act("workout", "update", **of_workout, updateFields={"name": "Back"})
    assert await engine.act("workout", "get", **of_workout) == [workout]
    [listed] = await engine.act("workout", "getAll", clientId=given, startDate=DATE, endDate=DATE)
    assert (listed["_id"], listed["name"], listed["startTime"]) == (workout["_id"], "Back", "17:30")
    assert await engine.act("workout", "getAll", clientId=given) == [], "by default the next seven days"

    [message] = await engine.act("message", "create", clientId=given, text="Hello")
    [changed] = await engine.act("message", "update", clientId=given, messageId=message["_id"], text="Hello, Ana")
    assert await engine.act("message", "get", clientId=given, messageId=message["_id"]) == [changed]
    await engine.act("message", "create", clientId=given, text="And again")
    texts = [each["text"] for each in await engine.act("message", "getAll", clientId=given, returnAll=True)]
    assert sorted(texts) == ["And again", "Hello, Ana"]
    assert len(await engine.act("message", "getAll", clientId=given, limit=1)) == 1

    metrics = [{"name": "Weight", "metricUnitId": (await coach.get("/metrics-units")).ok()[0]["_id"]}]
    metrics_set = (await coach.post("/coach/metrics-sets", {"name": "Body", "metrics": metrics})).ok(201)
    assigned = {"metricsSetId": metrics_set["_id"]}
    (await coach.post(f"/coach/customers/{ana['_id']}/metrics-sets", assigned)).ok(201)
    [of_client] = await engine.act("metric", "getAll", clientId=given)
    metric_id = of_client["metrics"][0]["metric"]["_id"]
    for value in (72.5, 73):
        [recorded] = await engine.act("metric", "upsert", clientId=given, metricId=metric_id, date=DATE, value=value)
        assert recorded == {"recorded": 1}
    history = await engine.act(
        "metric", "get", clientId=given, metricsSetId=of_client["metricsSet"]["_id"], metricId=metric_id
    )
    assert history == [{"date": DATE, "value": 73}]

    unknown = {"resource": "client", "operation": "get", "clientId": {"__rl": True, "mode": "id", "value": "0" * 24}}
    error = (await engine.answer("execute", parameters=unknown))["error"]
    assert error["httpCode"] == "404" and "stack" not in error


async def test_the_trigger_receives_signed_events_by_a_webhook_of_its_own(
    engine: Engine, coach: CoachClient, receiver: Receiver
) -> None:
    offered = [each["value"] for each in await engine.run("types")]
    assert set(offered) == set(EVENT_TYPES)
    parameters = {"types": ["note.created", "customer.created"]}
    assert await engine.run("checkExists", parameters=parameters) is False
    assert await engine.run("create", parameters=parameters) is True
    assert await engine.run("checkExists", parameters=parameters) is True
    assert await engine.run("checkExists", parameters={"types": ["note.created"]}) is False, "other events are chosen"
    [webhook] = (await coach.get("/coach/webhooks")).ok()
    assert webhook["types"] == parameters["types"]
    assert webhook["url"].startswith(receiver.url.removesuffix("/hook")) and "path-of-the-webhook" in webhook["url"]

    ana = await coach.create_customer("Ana")
    [message] = await received(receiver, 1)
    sent: Json = {"headers": message.headers, "body": message.body.decode()}
    answer = await engine.run("webhook", **sent)
    [event] = answer["items"]
    assert (event["type"], event["customerId"], event["companyId"]) == (
        "customer.created",
        ana["_id"],
        str(coach.ctx.company_id),
    )
    forged = message.headers | {"webhook-signature": "v1," + "A" * 43 + "="}
    stored = await coach.ctx.db["webhooks"].find_one({"companyId": coach.ctx.company_id})
    assert stored is not None
    secret = service.open_secret(coach.ctx.services.vault, stored["_id"], stored["secrets"][0]["sealed"])
    old, recent, early = [
        service.headers_of(message.id, int(time.time()) - age, message.body, [secret]) for age in (310, 200, -310)
    ]
    assert len((await engine.run("webhook", headers=recent, body=sent["body"]))["items"]) == 1
    unsigned = {name: value for name, value in message.headers.items() if not name.startswith("webhook-")}
    for headers in (forged, old, early, unsigned):
        assert await engine.run("webhook", headers=headers, body=sent["body"]) == {"statusCode": 401, "items": []}
    changed = sent["body"].replace("customer.created", "customer.deleted")
    assert (await engine.run("webhook", headers=message.headers, body=changed))["items"] == []
    both = message.headers | {"webhook-signature": f"v1,{'A' * 43}= {message.headers['webhook-signature']}"}
    assert len((await engine.run("webhook", headers=both, body=sent["body"]))["items"]) == 1, "during a rotation"

    # A test of the workflow: the webhook of an earlier one is replaced, and a sample arrives at once.
    assert await engine.run("create", parameters=parameters, mode="manual") is True
    [replaced] = (await coach.get("/coach/webhooks")).ok()
    assert replaced["_id"] != webhook["_id"]
    sample = (await received(receiver, 2))[1]
    [event] = (await engine.run("webhook", headers=sample.headers, body=sample.body.decode()))["items"]
    assert (event["type"], event["companyId"]) == ("note.created", str(coach.ctx.company_id))
    assert (await engine.run("webhook", **sent))["statusCode"] == 401, "the secret is another one"

    (await coach.delete(f"/coach/webhooks/{replaced['_id']}")).ok(204)
    assert await engine.run("checkExists", parameters=parameters) is False
    assert await engine.run("delete", parameters=parameters) is True, "also when the webhook is gone"
    assert await engine.run("create", parameters={}) is True, "all events"
    assert await engine.run("delete") is True
    assert (await coach.get("/coach/webhooks")).ok() == []
    assert (await engine.run("webhook", **sent))["statusCode"] == 401


async def test_the_package_follows_the_rules_of_n8n(package: Path, tmp_path: Path) -> None:
    printed = await run("npm", "run", "--silent", "lint", cwd=package)
    assert "warning" not in printed and "error" not in printed, printed
    await run("npm", "pack", "--silent", "--pack-destination", str(tmp_path), cwd=package)
    (version,) = read_versions()["clients/n8n/package.json"]
    with tarfile.open(tmp_path / f"n8n-nodes-coaching-service-{version}.tgz") as packed:
        names = {name.removeprefix("package/") for name in packed.getnames()}
    described = json.loads((package / "package.json").read_text("utf-8"))
    assert {*described["n8n"]["credentials"], *described["n8n"]["nodes"], "README.md", "LICENSE"} <= names
    assert "dependencies" not in described and not any("node_modules" in name for name in names)
    for node in described["n8n"]["nodes"]:
        assert str(Path(node).parent / "coachingService.svg") in names
