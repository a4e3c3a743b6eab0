"""The parts of the library that are written by hand, without the service: `python -m unittest discover tests`."""

from __future__ import annotations

import asyncio
import json
import time
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import formatdate
from unittest import mock

import httpx
from coaching_service_client import (
    RequestFailed,
    Retries,
    WebhookVerificationError,
    connect,
    ok,
    verify_webhook,
    walk,
    walk_async,
)
from coaching_service_client.models import CredentialError, Error, FieldError
from coaching_service_client.retries import RetryingAsyncTransport, RetryingTransport, policy_of

CUSTOMERS = "https://coaching.test/api/coach/customers"
AT_ONCE = Retries(base_seconds=0)
Respond = Callable[[httpx.Request], httpx.Response]


class Service:
    """Responds with these responses in turn, or raises them. Remembers the requests, and the waits without waiting."""

    def __init__(self, *responses: httpx.Response | httpx.TransportError) -> None:
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        self._responses = list(responses)

    def respond(self, request: httpx.Request) -> httpx.Response:
        """The next response."""
        self.requests.append(request)
        response = self._responses.pop(0)
        if isinstance(response, httpx.TransportError):
            raise response
        return response

    def send(self, method: str, url: str, retries: Retries = AT_ONCE, **options: object) -> httpx.Response:
        """Send one request through the transport of the library."""
        transport = RetryingTransport(httpx.MockTransport(self.respond), retries, "/api", self.waits.append)
        with httpx.Client(transport=transport) as client:
            return client.request(method, url, **options)  # type: ignore[arg-type]  # the options of httpx have many types


def busy(**headers: str) -> httpx.Response:
    """A response that asks to try again later."""
    return httpx.Response(503, headers=headers, json={})


class TestRetries(unittest.TestCase):
    """Which requests are repeated, and when."""

    def test_safe_request_is_repeated_after_failures(self) -> None:
        service = Service(httpx.ReadError("cut"), busy(), httpx.Response(429), httpx.Response(200))
        self.assertEqual(service.send("GET", CUSTOMERS).status_code, 200)
        self.assertEqual(len(service.requests), 4)

    def test_attempts_are_limited(self) -> None:
        service = Service(busy(), busy(), busy())
        self.assertEqual(service.send("GET", CUSTOMERS, Retries(attempts=2, base_seconds=0)).status_code, 503)
        self.assertEqual(len(service.requests), 2)
        cut = Service(*[httpx.ReadError("cut")] * 2)
        with self.assertRaises(httpx.ReadError):
            cut.send("GET", CUSTOMERS, Retries(attempts=2, base_seconds=0))

    def test_each_attempt_to_create_has_the_same_key(self) -> None:
        running = httpx.Response(409, json={"code": "IDEMPOTENCY_KEY_IN_USE"})
        service = Service(httpx.ReadError("cut"), running, httpx.Response(201))
        self.assertEqual(service.send("POST", CUSTOMERS, json={"name": "Ana"}).status_code, 201)
        self.assertEqual(len({request.headers["Idempotency-Key"] for request in service.requests}), 1)
        self.assertEqual([json.loads(request.content) for request in service.requests], [{"name": "Ana"}] * 3)

    def test_a_given_key_is_sent(self) -> None:
        service = Service(httpx.Response(201))
        service.send("POST", CUSTOMERS, headers={"Idempotency-Key": "order-7"})
        self.assertEqual(service.requests[0].headers["Idempotency-Key"], "order-7")

    def test_an_unsafe_request_is_sent_once(self) -> None:
        for method, path in (
            ("POST", "/auth/login"),
            ("POST", "/unknown"),
            ("PATCH", "/coach/account"),
        ):
            service = Service(busy())
            self.assertEqual(service.send(method, f"https://coaching.test/api{path}", json={}).status_code, 503)
            self.assertNotIn("Idempotency-Key", service.requests[0].headers)

    def test_a_request_that_changed_nothing_is_repeated(self) -> None:
        unavailable = httpx.Response(503, json={"code": "UNAVAILABLE"})
        for method, path in (("POST", "/auth/login"), ("PATCH", "/coach/account")):
            service = Service(unavailable, httpx.Response(200))
            sent = service.send(method, f"https://coaching.test/api{path}", json={})
            self.assertEqual((sent.status_code, len(service.requests)), (200, 2))

    def test_a_request_that_may_have_changed_something_is_repeated_only_if_it_is_safe(self) -> None:
        for method, path, status in (("POST", "/auth/login", 503), ("POST", "/coach/customers", 201)):
            service = Service(httpx.Response(503, json={"code": "OUTCOME_UNKNOWN"}), httpx.Response(201))
            self.assertEqual(service.send(method, f"https://coaching.test/api{path}", json={}).status_code, status)
        cut = Service(httpx.ReadError("cut"))
        with self.assertRaises(httpx.ReadError):
            cut.send("POST", "https://coaching.test/api/auth/login")

    def test_a_change_is_repeated_only_with_its_version(self) -> None:
        customer = f"{CUSTOMERS}/0123456789abcdef01234567"
        service = Service(busy(), httpx.Response(200))
        self.assertEqual(service.send("PATCH", customer, json={"name": "Ana", "version": 3}).status_code, 200)
        service = Service(busy())
        self.assertEqual(service.send("PATCH", customer, json={"name": "Ana"}).status_code, 503)

    def test_other_errors_are_final(self) -> None:
        for status in (400, 404, 409, 500):
            service = Service(httpx.Response(status, json={"code": "ANY"}))
            self.assertEqual(service.send("POST", CUSTOMERS).status_code, status)

    def test_an_error_of_a_proxy_is_raised(self) -> None:
        with self.assertRaises(RequestFailed) as caught:
            Service(httpx.Response(502, html="<p>Bad gateway</p>")).send("POST", "https://coaching.test/api/auth/login")
        self.assertEqual(caught.exception.status, 502)

    def test_retry_after_is_respected(self) -> None:
        service = Service(busy(**{"Retry-After": "7"}), httpx.Response(200))
        service.send("GET", CUSTOMERS)
        self.assertEqual(service.waits, [7.0])
        in_ten_seconds = formatdate(time.time() + 10, usegmt=True)
        service = Service(busy(**{"Retry-After": in_ten_seconds}), httpx.Response(200))
        service.send("GET", CUSTOMERS)
        self.assertAlmostEqual(service.waits[0], 10, delta=2)
        longer = Service(busy(**{"Retry-After": "61"}))
        self.assertEqual(longer.send("GET", CUSTOMERS).status_code, 503)
        self.assertEqual(longer.waits, [])

    def test_asynchronous_requests_are_repeated_in_the_same_way(self) -> None:
        service = Service(httpx.ReadError("cut"), busy(), httpx.Response(201))

        async def send() -> int:
            transport = RetryingAsyncTransport(httpx.MockTransport(service.respond), AT_ONCE, "/api")
            async with httpx.AsyncClient(transport=transport) as client:
                return (await client.post(CUSTOMERS, json={"name": "Ana"})).status_code

        self.assertEqual(asyncio.run(send()), 201)
        self.assertEqual(len({request.headers["Idempotency-Key"] for request in service.requests}), 1)

    def test_a_literal_path_comes_first(self) -> None:
        self.assertEqual(policy_of("POST", "/coach/customers"), "idempotencyKey")
        self.assertEqual(policy_of("POST", "/exercises/resolve"), "safe")
        self.assertEqual(policy_of("POST", "/auth/login"), "never")
        self.assertEqual(policy_of("GET", "/coach/customers/0123456789abcdef01234567"), "safe")


@dataclass
class Numbers:
    """A page of numbers."""

    docs: list[int]
    next_cursor: str | None
    has_more: bool = True


def numbers(limit: int, after: str | None = None) -> Numbers | Error | CredentialError | None:
    """Pages of the numbers below seven."""
    start = int(after or 0)
    end = min(start + limit, 7)
    return Numbers(list(range(start, end)), str(end), end < 7)


async def numbers_later(limit: int, after: str | None = None) -> Numbers | Error | CredentialError | None:
    """The same pages, asynchronously."""
    return numbers(limit, after)


class TestLists(unittest.TestCase):
    """Walking."""

    def test_walking_returns_every_entry_once(self) -> None:
        self.assertEqual(list(walk(numbers, limit=3)), list(range(7)))

        async def collect() -> list[int]:
            return [number async for number in walk_async(numbers_later, limit=3)]

        self.assertEqual(asyncio.run(collect()), list(range(7)))


class TestResults(unittest.TestCase):
    """Errors of the service."""

    def test_an_error_is_raised(self) -> None:
        invalid = Error(
            400, ["name must be set"], "Bad Request", "INVALID_FIELDS", [FieldError("name", "INVALID", "?")]
        )
        with self.assertRaises(RequestFailed) as caught:
            ok(invalid)
        self.assertEqual((caught.exception.status, caught.exception.code), (400, "INVALID_FIELDS"))
        self.assertEqual([field.field for field in caught.exception.fields], ["name"])
        with self.assertRaises(RequestFailed):
            ok(CredentialError("Invalid API key"))

    def test_a_client_has_exactly_one_credential(self) -> None:
        with self.assertRaises(ValueError):
            connect("https://coaching.test")
        with self.assertRaises(ValueError):
            connect("https://coaching.test", api_key="key", access_token="token")


class TestWebhooks(unittest.TestCase):
    """The example of the Standard Webhooks specification."""

    SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    BODY = b'{"test": 2432232314}'
    HEADERS = {
        "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "Webhook-Timestamp": "1614265330",
        "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }

    def verify(self, body: bytes, at: float = 1614265330) -> object:
        """Verify a message at a time."""
        with mock.patch("standardwebhooks.webhooks.datetime") as clock:
            clock.now.side_effect = lambda tz: datetime.fromtimestamp(at, tz)
            clock.fromtimestamp.side_effect = datetime.fromtimestamp
            return verify_webhook(self.SECRET, body, self.HEADERS)

    def test_message_is_verified(self) -> None:
        self.assertEqual(self.verify(self.BODY), {"test": 2432232314})

    def test_other_body_and_old_message_are_refused(self) -> None:
        with self.assertRaises(WebhookVerificationError):
            self.verify(b'{"test": 2432232315}')
        with self.assertRaises(WebhookVerificationError):
            self.verify(b"\xff")
        with self.assertRaises(WebhookVerificationError):
            self.verify(self.BODY, at=1614265330 + 301)


if __name__ == "__main__":
    unittest.main()
