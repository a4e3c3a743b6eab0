"""The one client for requests to addresses that users enter.

Each request has a connection of its own: its name is resolved once, every address must be public, and it connects to
one of the addresses that were checked; the name stays in `Host` and in TLS. The client follows no redirects, uses no
proxy and stores no cookies.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from urllib.parse import urlsplit

import aiohttp
import idna
from aiohttp import hdrs
from aiohttp.abc import AbstractResolver, ResolveResult
from opentelemetry.trace import SpanKind, Tracer
from yarl import URL

from coaching_service.core.tracing import NO_TRACER, measure

# --- Why a request to an address that a user entered had no response --------------------------------------------------


class OutboundError(Exception):
    """A request had no response. `code` is stable and UPPER_SNAKE; the message contains nothing that was received."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message, self.trace_reason = code, message, code

    @property
    def public_code(self) -> str:
        """What users may know. `code` is for operators."""
        return self.code


class NoConnection(OutboundError):
    """No trusted connection was established. Users get no reason: they could explore names and ports with it."""

    def __init__(self, code: str) -> None:
        super().__init__(code, "no connection could be established")

    @property
    def public_code(self) -> str:
        """The same code for every reason."""
        return "CONNECTION_FAILED"


# --- Which network addresses are public, and which texts are such addresses -------------------------------------------


# IANA IPv4 Special-Purpose Address Registry, multicast (RFC 5771) and reserved addresses (RFC 1112); and the address at
# which virtual machines of Azure reach their host.
_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24"),
        *("192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
# The only unicast addresses that are in use (RFC 4291). Outside of it are loopback, IPv4-mapped addresses, NAT64
# (64:ff9b::/96, 64:ff9b:1::/48), discard-only, unique local, link-local, site-local and multicast addresses.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# IANA IPv6 Special-Purpose Address Registry, within 2000::/3: protocols with Teredo, documentation, 6to4, AS112.
_REFUSED_V6 = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
# Top-level domains that no public name has (RFC 6761, RFC 6762, RFC 8375) or that routers use.
_PRIVATE_DOMAINS = frozenset({"localhost", "local", "test", "invalid", "example", "internal", "arpa", "lan", "home"})


def is_public(address: str) -> bool:
    """Return whether an address (IPv4 or IPv6, as text) belongs to the public internet.

    Addresses that contain an IPv4 address (mapped, NAT64, 6to4, Teredo) are not, whatever they contain. Raises
    ValueError for a text that is not an address.
    """
    parsed = ip_address(address)
    if isinstance(parsed, IPv4Address):
        return not any(parsed in network for network in _REFUSED_V4)
    return parsed in _GLOBAL_UNICAST and not any(parsed in network for network in _REFUSED_V6)


def is_public_url(url: str) -> bool:
    """Return whether the host of a URL is a public address, or a name that others may resolve, unlike `localhost`."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    with suppress(ValueError):
        return is_public(host)
    return "." in host and host.rpartition(".")[2] not in _PRIVATE_DOMAINS


def is_address(host: str) -> bool:
    """Return whether the host of a URL is an address instead of a name.

    In every spelling that resolvers take for one: `127.1`, `2130706433` and `0x7f000001` are 127.0.0.1.
    """
    with suppress(ValueError):
        ip_address(host)
        return True
    try:
        socket.inet_aton(host.rstrip("."))
    except OSError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether the host of a URL is this machine, by its usual name or an address."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def is_local_name(host: str) -> bool:
    """Return whether a name means the local machine (RFC 6761) or network (RFC 6762, and ICANN's `internal`)."""
    return host.rstrip(".").lower().rpartition(".")[2] in ("localhost", "local", "internal")


# --- The URLs to which requests are sent, in their canonical form -----------------------------------------------------


_PORTS = {"https": (443, 8443), "http": (80,)}
_FIRST_FREE_PORT = 1024  # below are the ports of other services of a host, such as mail and remote access
_MAX_HOST = 253
# Outside of ASCII, what is not visible is encoded; within, it is a mistake or an attempt to have two readings.
_REFUSED = re.compile(r"[\x00-\x20\x7f-\xa0\\#]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_PUNYCODE = "xn--"


def canonical_url(text: str, *, http: bool = False, private: bool = False, loopback: bool = False) -> URL:
    """Return a URL in the one form in which it is stored and requested: lower case, IDNA, no usual port.

    `http` and `private` relax the rules for development, and `loopback` both for this machine only. Raises
    OutboundError for one to which no request is sent, as far as its text shows.
    """
    if _REFUSED.search(text):
        raise OutboundError("URL_INVALID", "must have no spaces, control characters, backslash or fragment")
    try:
        url = URL(text)
        host = url.raw_host
    except ValueError:
        host = None
    if not host:
        raise OutboundError("URL_INVALID", "must be an absolute address")
    is_own = loopback and is_loopback(host)
    http, private = http or is_own, private or is_own
    schemes = ("https", "http") if http else ("https",)
    if url.scheme not in schemes:
        raise OutboundError("URL_NOT_HTTPS", f"must begin with {' or '.join(f'{each}://' for each in schemes)}")
    if url.user is not None or url.password is not None:
        raise OutboundError("URL_WITH_CREDENTIALS", "must not contain a user name or password")
    host = host.removesuffix(".")
    if not private and (is_address(host) or is_local_name(host)):
        raise OutboundError("ADDRESS_NOT_ALLOWED", "must contain the name of a public host, not an address")
    if not is_address(host):
        labels = host.split(".")
        is_possible = len(host) <= _MAX_HOST and all(map(_is_possible, labels)) and not labels[-1].isdecimal()
        if "[" in text or not is_possible:
            raise OutboundError("URL_INVALID", "must have a possible name of a host")
        if not private and len(labels) == 1:
            raise OutboundError("ADDRESS_NOT_ALLOWED", "must contain the full name of a public host")
    port = url.port or 0
    if not private and port not in _PORTS[url.scheme] and port < _FIRST_FREE_PORT:
        raise OutboundError("PORT_NOT_ALLOWED", "must have the port 443 or 8443, or one above 1023")
    url = url if ":" in host else url.with_host(host)
    url = url if url.raw_path.strip("/") else url.with_path(url.raw_path or "/", encoded=True, keep_query=True)
    return url.with_port(None if url.is_default_port() else port)


def _is_possible(label: str) -> bool:
    """Return whether a label can be in the Domain Name System; an encoded one is what its decoded form leads to."""
    if not _LABEL.fullmatch(label):
        return False
    if not label.startswith(_PUNYCODE):
        return True
    with suppress(idna.IDNAError, UnicodeError):
        return idna.alabel(idna.ulabel(label)).decode("ascii") == label
    return False


TOTAL_SECONDS = 15.0
MAX_RESPONSE_BYTES = 64 * 1024
_MAX_DIGITS = 9  # of a number of seconds in Retry-After
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

    @property
    def wait_seconds(self) -> float:
        """Return the seconds to wait by `Retry-After`, which is a number of seconds or a date; 0 for other texts."""
        text = self.headers.get(hdrs.RETRY_AFTER, "").strip()
        if text.isascii() and text.isdigit():
            return float(text[:_MAX_DIGITS])
        try:
            at = parsedate_to_datetime(text)
        except (ValueError, OverflowError):  # OverflowError: a year that is too large
            return 0.0
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        return min(max(0.0, seconds), 10.0**_MAX_DIGITS)


@dataclass(frozen=True)
class Relaxations:
    """Which requests are allowed in addition to https to public addresses, for development."""

    http: bool = False
    private: bool = False
    loopback: bool = False

    def allows(self, address: str) -> bool:
        """Return whether a connection to an address may be opened."""
        return self.private or is_public(address) or (self.loopback and is_loopback(address))


def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, of both families. Raises OSError if it has none."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class _CheckedResolver(AbstractResolver):
    """Resolves names, and refuses a name with an address that is not allowed."""

    def __init__(self, lookup: Lookup, allowed: Relaxations) -> None:
        self._lookup, self._allowed = lookup, allowed
        # Threads of their own: lookups of names that never answer must not delay other work.
        self._threads = ThreadPoolExecutor(_LOOKUP_THREADS, "outbound-lookup")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name. Raises OSError, _AddressRefused."""
        addresses = await asyncio.get_running_loop().run_in_executor(self._threads, self._lookup, host, port)
        if not all(map(self._allowed.allows, addresses)):
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
        return str(canonical_url(url, **vars(self.allowed)))

    async def _request(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> OutboundResponse:
        target = canonical_url(url, **vars(self.allowed))
        attributes = {"http.request.method": method, "server.address": target.raw_host or ""}
        with measure(self._tracer, method, SpanKind.CLIENT, attributes) as span:
            sending = self._get_session().request(method, target, data=body, headers=headers, allow_redirects=False)
            try:
                async with asyncio.timeout(self._total_seconds), sending as response:
                    received = bytearray()
                    async for chunk in response.content.iter_any():
                        received += chunk
                        if len(received) > MAX_RESPONSE_BYTES:
                            response.close()
                            break
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise _as_outbound_error(error) from None
            span.set_attribute("http.response.status_code", response.status)
            is_truncated, content = len(received) > MAX_RESPONSE_BYTES, bytes(received[:MAX_RESPONSE_BYTES])
            return OutboundResponse(response.status, response.headers, content, is_truncated)

    def _open_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Return the socket of a connection: no address is connected to that was not checked here, however found."""
        family, kind, protocol, _, target = address
        if not self.allowed.allows(str(target[0])):
            raise _AddressRefused
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)  # noqa: FBT003 - the signature of the socket module
        return opened

    def _get_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=_CheckedResolver(self._lookup, self.allowed),
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


def _as_outbound_error(error: Exception) -> OutboundError:
    if isinstance(getattr(error, "os_error", error), _AddressRefused):
        return NoConnection("ADDRESS_NOT_ALLOWED")
    if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError):
        return OutboundError("TIMED_OUT", "there was no complete response in time")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NoConnection("NAME_NOT_RESOLVED")
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return NoConnection("TLS_FAILED")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return NoConnection("CONNECTION_FAILED")
    return OutboundError("RESPONSE_INVALID", "the connection was closed, or the response is not valid HTTP")
