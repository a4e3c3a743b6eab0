"""The drill after a restore, an upgrade, a failover or a lost position: the service does everything it is for."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Collection
from typing import Any

import aiohttp

from coaching_service.settings import Settings
from tests.support.commands import type_in
from tests.support.service_process import Service, until
from tests.support.webhooks import Message, Receiver, receiving

Json = dict[str, Any]
SECONDS = 60.0  # a killed process holds its leases for ten seconds, and machines may be slow
PASSWORD = "correct horse battery"


async def require_whole_service(service: Service) -> None:
    """Require that a service on a folder of its own is whole."""
    await require_whole(service.facts["baseUrl"], service.facts["apiKey"], "--data", str(service.folder))


async def require_whole(url: str, key: str, *options: str, allowed: Collection[str] = (), **variables: str) -> None:
    """Require that a company's service is whole: it was restored, upgraded, or has lost processes or positions.

    A new change is numbered, its event and its webhook arrive, figures are renewed, a client signs in, and `doctor`,
    with these options and variables, finds no problem but those of the checks `allowed`. Webhooks to this machine must be
    allowed.
    """
    async with receiving() as receiver, aiohttp.ClientSession(url, headers={"X-API-Key": key}) as http:
        webhook = await _answer(http, "POST", "/coach/webhooks", 201, json={"url": receiver.url})
        client = await _answer(http, "POST", "/coach/customers", 201, json={"name": "Drill"})
        created = await _event(http, client, "customer.created")
        message = await until(lambda: _message(receiver, created), "the webhook arrives", SECONDS)
        assert message.verify(webhook["secret"])["customerId"] == client["_id"]
        await _event(http, client, "attention.raised")  # nothing is scheduled: stored with the renewed figures
        await _sign_in(url, client["firstAccessToken"])
        await _answer(http, "DELETE", f"/coach/webhooks/{webhook['_id']}", 204)
    await until(lambda: _is_consistent(options, variables, allowed), "doctor exits with 0", SECONDS)


def database_of(settings: Settings) -> dict[str, str]:
    """The variables that name the database of settings, and have its keys."""
    return {
        "MONGODB_URI": str(settings.mongodb_uri),
        "MONGODB_DATABASE": settings.mongodb_database,
        "SECRET_KEYS": ",".join(settings.secret_keys),
    }


async def _sign_in(url: str, token: str) -> None:
    """Let a client set a password and sign in with it."""
    email = f"{secrets.token_hex(8)}@drill.test"
    async with aiohttp.ClientSession(url) as http:
        body = {"token": token, "password": PASSWORD, "email": email}
        await _answer(http, "POST", "/auth/first-access", 200, json=body)
        session = await _answer(http, "POST", "/auth/login", 200, json={"email": email, "password": PASSWORD})
        headers = {"Authorization": f"Bearer {session['accessToken']}"}
        await _answer(http, "GET", "/customer/me", 200, headers=headers)


async def _event(http: aiohttp.ClientSession, client: Json, event_type: str) -> Json:
    """An event about a client, once it is there."""
    query = {"types": event_type, "customerId": client["_id"]}

    async def find() -> Json | None:
        found: list[Json] = (await _answer(http, "GET", "/coach/events", 200, params=query))["docs"]
        return found[0] if found else None

    return await until(find, f"the event {event_type} is there", SECONDS)


def _message(receiver: Receiver, event: Json) -> Message | None:
    return next((each for each in receiver.messages if each.event["id"] == event["id"]), None)


async def _answer(http: aiohttp.ClientSession, method: str, path: str, status: int, **options: Any) -> Any:
    async with http.request(method, path, **options) as response:
        text = await response.text()
        assert response.status == status, f"{method} {path}: {response.status} {text}"
        return await response.json() if text else None


async def _is_consistent(options: tuple[str, ...], variables: dict[str, str], allowed: Collection[str]) -> bool:
    result = await asyncio.to_thread(type_in, "doctor", "--json", *options, **variables)
    if result.exit_code == 0:
        return True
    print(result.out, result.err)  # shown when a test fails
    problems = [each["check"] for each in json.loads(result.out or "[]") if each["status"] in ("problem", "error")]
    return bool(problems) and {*problems} <= {*allowed}
