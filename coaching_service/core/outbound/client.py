"""The one client for requests to addresses that users enter.

Each request has a connection of its own: its name is resolved once, every address must be public, and it connects to
one of the addresses that were checked; the name stays in `Host` and in TLS. The client follows no redirects, uses no
proxy and stores no cookies.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from opentelemetry.trace import SpanKind, Tracer
from yarl import URL

from coaching_service.core.outbound.addresses import is_public
from coaching_service.core.outbound.errors import NoConnection, OutboundError
from coaching_service.core.outbound.urls import canonical_url
from coaching_service.core.tracing import NO_TRACER, measure

TOTAL_SECONDS = 15.0
MAX_RESPONSE_BYTES = 64 * 1024
_CONNECT_SHARE = 2 / 3  # of the total time
_LOOKUP_THREADS = 64
_USER_AGENT = "coaching-service"

# Finds the addresses of a name: (host, port) to addresses as text. Raises OSError if there are none.
Lookup = Callable[[str, int], Sequence[str]]


class _AddressRefused(OSError):
    """A name belongs to an address that is not public."""


@dataclass(frozen=True)
class OutboundResponse:
    """A response. `body` has at most 64 kB; `is_truncated`: there was more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_truncated: bool


@dataclass(frozen=True)
class Relaxations:
    """Which requests are allowed in addition to https to public addresses, for development."""

    http: bool = False
    private: bool = False


def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, of both families. Raises OSError if it has none."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class _CheckedResolver(AbstractResolver):
    """Resolves names, and refuses a name with an address that is not public."""

    def __init__(self, lookup: Lookup, *, allow_private: bool) -> None:
        self._lookup, self._allow_private = lookup, allow_private
        # Threads of their own: lookups of names that never answer must not delay other work.
        self._threads = ThreadPoolExecutor(_LOOKUP_THREADS, "outbound-lookup")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name. Raises OSError, _AddressRefused."""
        addresses = await asyncio.get_running_loop().run_in_executor(self._threads, self._lookup, host, port)
        if not self._allow_private and not all(is_public(address) for address in addresses):
            raise _AddressRefused
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Stop accepting lookups."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class OutboundClient:
    """Sends requests. `allowed` relaxes its rules for development; `tls` replaces the trusted authorities.

    Spans have the host of a request, and nothing else of its address.
    """

    def __init__(
        self,
        allowed: Relaxations | None = None,
        *,
        total_seconds: float = TOTAL_SECONDS,
        lookup: Lookup = look_up,
        tls: ssl.SSLContext | None = None,
        tracer: Tracer = NO_TRACER,
    ) -> None:
        self.allowed = allowed or Relaxations()
        self._total_seconds, self._lookup, self._tls = total_seconds, lookup, tls
        self._tracer = tracer
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> OutboundResponse:
        """Send `body` to `url`, and return the response with any status. Raises OutboundError."""
        return await self._request("POST", url, body, headers)

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> OutboundResponse:
        """Read `url`, and return the response with any status. Raises OutboundError."""
        return await self._request("GET", url, None, headers or {})

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def canonical_url(self, url: str) -> str:
        """Return the form of a URL that is stored and requested. Raises OutboundError if no request is sent to it."""
        return str(self._parse(url))

    def _parse(self, url: str) -> URL:
        return canonical_url(url, http=self.allowed.http, private=self.allowed.private)

    async def _request(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> OutboundResponse:
        target = self._parse(url)
        attributes = {"http.request.method": method, "server.address": target.raw_host or ""}
        with measure(self._tracer, method, SpanKind.CLIENT, attributes) as span:
            response = await self._send(method, target, body, headers)
            span.set_attribute("http.response.status_code", response.status)
            return response

    async def _send(self, method: str, url: URL, body: bytes | None, headers: Mapping[str, str]) -> OutboundResponse:
        try:
            async with (
                asyncio.timeout(self._total_seconds),
                self._get_session().request(method, url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                received = await _read(response)
                return OutboundResponse(
                    response.status,
                    dict(response.headers),
                    received[:MAX_RESPONSE_BYTES],
                    len(received) > MAX_RESPONSE_BYTES,
                )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _as_outbound_error(error) from None

    def _open_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Return the socket of a connection: no address is connected to that was not checked here, however found."""
        family, kind, protocol, _, target = address
        if not self.allowed.private and not is_public(str(target[0])):
            raise _AddressRefused
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)  # noqa: FBT003 - the signature of the socket module
        return opened

    def _get_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=_CheckedResolver(self._lookup, allow_private=self.allowed.private),
                use_dns_cache=False,
                force_close=True,
                limit=0,
                ssl=self._tls or True,
                socket_factory=self._open_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, connect=self._total_seconds * _CONNECT_SHARE),
                trust_env=False,
                auto_decompress=False,
                headers={"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"},
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Read a body up to the limit and one byte more; the connection of a longer one is closed."""
    received = bytearray()
    async for chunk in response.content.iter_any():
        received += chunk
        if len(received) > MAX_RESPONSE_BYTES:
            response.close()
            break
    return bytes(received[: MAX_RESPONSE_BYTES + 1])


def _as_outbound_error(error: Exception) -> OutboundError:
    cause: Any = getattr(error, "os_error", error)
    if isinstance(cause, _AddressRefused):
        return NoConnection("ADDRESS_NOT_ALLOWED")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return NoConnection("CONNECTION_FAILED")
    if isinstance(error, TimeoutError):
        return OutboundError("TIMED_OUT", "there was no complete response in time")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NoConnection("NAME_NOT_RESOLVED")
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return NoConnection("TLS_FAILED")
    if isinstance(error, aiohttp.ClientConnectorError):
        return NoConnection("CONNECTION_FAILED")
    return OutboundError("RESPONSE_INVALID", "the connection was closed, or the response is not valid HTTP")
