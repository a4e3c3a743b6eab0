"""Sends requests to the processes of the service, again until they are answered, and records each of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from tests.reliability.torture.ledger import Exchange, Ledger, Readiness

Form = Callable[[], aiohttp.FormData]
HANG_SECONDS = 30.0
PATIENCE_SECONDS = 300.0
RETRY_SECONDS = 0.25
REQUEST_IN_PROGRESS, UNAVAILABLE = 409, 503


class GaveUp(Exception):
    """A request was not answered as expected; `status` is that of the last response."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class Sender:
    """Sends requests to one process of the service, and repeats them at the others."""

    def __init__(self, number: int, urls: list[str], key: str, ledger: Ledger) -> None:
        self.number, self.ledger = number, ledger
        self._urls, self._key = urls, key
        self._sent = 0

    def open(self) -> aiohttp.ClientSession:
        """Connections of this sender."""
        return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HANG_SECONDS))

    async def send_once(
        self, http: aiohttp.ClientSession, method: str, path: str, attempt: int = 0, **options: Any
    ) -> tuple[int | None, Any]:
        """Send once; return status and body, with None for a status if there was no response."""
        node, began = (self.number + attempt) % len(self._urls), time.monotonic()
        body: Any = None
        status, retry_after = None, False
        options["headers"] = {"X-API-Key": self._key} | options.get("headers", {})
        try:
            async with http.request(method, self._urls[node] + path, allow_redirects=False, **options) as response:
                raw = await response.read()
                status, retry_after = response.status, "Retry-After" in response.headers
                body = await response.json() if raw and response.content_type == "application/json" else raw
        except TimeoutError:
            self.ledger.unplanned.append(f"{method} {path}: no response within {HANG_SECONDS:.0f} s")
        except aiohttp.ClientError:
            pass
        is_write = method != "GET" and path.startswith("/coach")
        exchange = Exchange(node, f"{method} {path}", is_write, began, time.monotonic(), status)
        self.ledger.exchanges.append(exchange)
        if status is not None and status >= 500 and status != UNAVAILABLE:
            self.ledger.unplanned.append(f"{method} {path}: {status} {body}")
        if status == UNAVAILABLE and retry_after != _promises_repetition(body, options["headers"]):
            self.ledger.unplanned.append(f"{method} {path}: 503 with Retry-After {retry_after} {body!r}")
        return status, body

    async def send(
        self,
        http: aiohttp.ClientSession,
        method: str,
        path: str,
        expected: int,
        *,
        key: str | None = None,
        form: Form | None = None,
        **options: Any,
    ) -> Any:
        """Send again, a POST with the same key, until it is answered as expected; return the body. Raises GaveUp."""
        if method == "POST":
            options["headers"] = {"Idempotency-Key": key or self.new_key()}
        deadline, attempt, status = time.monotonic() + PATIENCE_SECONDS, 0, None
        while time.monotonic() < deadline:
            body = {"data": form()} if form else {}
            status, answer = await self.send_once(http, method, path, attempt, **options, **body)
            if status == expected:
                return answer
            if status is not None and status not in (REQUEST_IN_PROGRESS, UNAVAILABLE):
                raise GaveUp(f"{method} {path}: {status} {answer}", status)
            attempt += 1
            await asyncio.sleep(RETRY_SECONDS)
        raise GaveUp(f"{method} {path}: not answered for {PATIENCE_SECONDS:.0f} s", status)

    def new_key(self) -> str:
        """A key, or another text, that no other request of the run has."""
        self._sent += 1
        return f"{self.number}-{self._sent}"


def _promises_repetition(body: Any, headers: dict[str, str]) -> bool:
    """Whether a 503 has `Retry-After`: not if the request may have changed something, unless it had a key."""
    is_unknown = isinstance(body, dict) and body.get("code") == "OUTCOME_UNKNOWN"
    return not is_unknown or "Idempotency-Key" in headers


async def record_readiness(number: int, url: str, ledger: Ledger) -> None:
    """Ask a process four times a second whether it is ready."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HANG_SECONDS)) as http:
        while True:
            began, is_ready = time.monotonic(), False
            try:
                async with http.get(f"{url}/readyz") as response:
                    is_ready = response.status == 200
                    if response.status == UNAVAILABLE and "Retry-After" not in response.headers:
                        ledger.unplanned.append("GET /readyz: 503 without Retry-After")
            except (aiohttp.ClientError, TimeoutError):
                pass
            ledger.readiness.append(Readiness(number, began, time.monotonic(), is_ready))
            await asyncio.sleep(0.25)
