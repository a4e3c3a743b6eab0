"""Repeats requests that failed, where the API document says that it is safe, and adds idempotency keys.

The policy of each operation is its `x-retry-policy` in the API document:

- `safe`: repeated.
- `idempotencyKey`: sent with an `Idempotency-Key`, the same in each attempt, and repeated: it is executed once.
- `version`: repeated if the body has the `version` it is based on.
- `never`, and unknown operations: sent once.

Every request is repeated after a 503 with the code `UNAVAILABLE`: nothing was changed. A change that may have been
saved (`OUTCOME_UNKNOWN`) is repeated only where the policy allows it.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx

from coaching_service_client.operations import POLICIES
from coaching_service_client.results import RequestFailed

_REPEATABLE_STATUSES = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
_KEY_HEADER = "Idempotency-Key"


@dataclass(frozen=True)
class Retries:
    """How often and how long requests are repeated.

    `attempts`: at most so many for each request, the first included. `base_seconds`: the longest wait before the second
    attempt; it doubles with each further one, up to `longest_wait_seconds`, and the wait is a random part of it. If the
    service asks for a wait (`Retry-After`), it is this one; if it is longer than `longest_wait_seconds`, the response
    is returned instead.
    """

    attempts: int = 5
    base_seconds: float = 0.5
    longest_wait_seconds: float = 60.0

    def waits(self) -> Iterator[float]:
        """The waits in seconds between the attempts, if the service asks for none."""
        for attempt in range(self.attempts - 1):
            yield random.uniform(0, min(self.base_seconds * 2**attempt, self.longest_wait_seconds))  # noqa: S311  # jitter, not a secret


class RetryingTransport(httpx.BaseTransport):
    """Sends requests through another transport, and repeats them.

    `prefix` is the path of the service's address. `sleep` waits for some seconds before the next attempt.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport,
        retries: Retries,
        prefix: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner, self._retries, self._prefix, self._sleep = inner, retries, prefix, sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request as often as allowed and necessary. Raises the error of the last attempt, RequestFailed."""
        repeatable = prepare(request, self._prefix)
        for wait in self._retries.waits():
            try:
                response = self._inner.handle_request(request)
                if _is_json(response):
                    response.read()
            except httpx.TransportError:
                if not repeatable:
                    raise
                self._sleep(wait)  # wait before the next attempt
                continue
            seconds = wait_before_repeating(request, response, wait, repeatable=repeatable)
            if seconds is None or seconds > self._retries.longest_wait_seconds:
                return checked(response)
            response.close()
            self._sleep(seconds)  # wait before the next attempt, as long as the service asks for
        return checked(self._inner.handle_request(request))

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class RetryingAsyncTransport(httpx.AsyncBaseTransport):
    """The same for `httpx.AsyncClient`."""

    def __init__(
        self,
        inner: httpx.AsyncBaseTransport,
        retries: Retries,
        prefix: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner, self._retries, self._prefix, self._sleep = inner, retries, prefix, sleep

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request as often as allowed and necessary. Raises the error of the last attempt, RequestFailed."""
        repeatable = prepare(request, self._prefix)
        for wait in self._retries.waits():
            try:
                response = await self._inner.handle_async_request(request)
                if _is_json(response):
                    await response.aread()
            except httpx.TransportError:
                if not repeatable:
                    raise
                await self._sleep(wait)  # wait before the next attempt
                continue
            seconds = wait_before_repeating(request, response, wait, repeatable=repeatable)
            if seconds is None or seconds > self._retries.longest_wait_seconds:
                return checked(response)
            await response.aclose()
            await self._sleep(seconds)  # wait before the next attempt, as long as the service asks for
        return checked(await self._inner.handle_async_request(request))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def checked(response: httpx.Response) -> httpx.Response:
    """Return a response. Raises RequestFailed for an error that is not from the service but from a proxy before it."""
    if response.status_code >= HTTPStatus.BAD_REQUEST and not _is_json(response):
        raise RequestFailed(response.status_code, None, response.reason_phrase or "not from the service", [])
    return response


def prepare(request: httpx.Request, prefix: str = "") -> bool:
    """Add an idempotency key if the operation takes one, and return whether the request may be repeated."""
    policy = policy_of(request.method, request.url.path.removeprefix(prefix))
    if policy == "idempotencyKey":
        request.headers.setdefault(_KEY_HEADER, str(uuid.uuid4()))
    return policy in {"safe", "idempotencyKey"} or (policy == "version" and _has_version(request))


def policy_of(method: str, path: str) -> str:
    """The `x-retry-policy` of the operation at a path; `never` if there is no such operation."""
    segments = path.strip("/").split("/")
    matching = [
        (declared, policy)
        for declared, policy in POLICIES.get((method, len(segments)), ())
        if all(ours.startswith("{") or ours == theirs for ours, theirs in zip(declared, segments, strict=True))
    ]
    # A literal path comes before one with a parameter in the same place.
    return (
        min(matching, key=lambda match: [segment.startswith("{") for segment in match[0]])[1] if matching else "never"
    )


def wait_before_repeating(
    request: httpx.Request, response: httpx.Response, wait: float, *, repeatable: bool
) -> float | None:
    """Seconds to wait before the next attempt, or None if the response is final. `wait` is used without Retry-After.

    `repeatable`: the policy of the operation allows to repeat the request, whatever became of it.
    """
    if repeatable:
        is_final = response.status_code not in _REPEATABLE_STATUSES and not _is_still_running(request, response)
    else:
        is_final = not _has_changed_nothing(response)
    if is_final:
        return None
    asked = response.headers.get("Retry-After", "")
    if asked.isascii() and asked.isdecimal():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    except ValueError:
        return wait


def _has_changed_nothing(response: httpx.Response) -> bool:
    """Whether the service says that it could not begin with the request."""
    if response.status_code != HTTPStatus.SERVICE_UNAVAILABLE or not _is_json(response):
        return False
    return _object(response.content).get("code") == "UNAVAILABLE"


def _is_still_running(request: httpx.Request, response: httpx.Response) -> bool:
    """Whether an earlier attempt with the same idempotency key has not ended yet."""
    if response.status_code != HTTPStatus.CONFLICT or _KEY_HEADER not in request.headers or not _is_json(response):
        return False
    return _object(response.content).get("code") == "IDEMPOTENCY_KEY_IN_USE"


def _has_version(request: httpx.Request) -> bool:
    """Whether the JSON body has the version that the change is based on."""
    return _is_json(request) and _object(request.content).get("version") is not None


def _is_json(message: httpx.Request | httpx.Response) -> bool:
    content_type: str = message.headers.get("Content-Type", "")
    return content_type.startswith("application/json")


def _object(content: bytes) -> dict[str, object]:
    try:
        parsed = json.loads(content)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
