"""The client for requests to addresses that users enter, against receivers on this machine."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from coaching_service.core.outbound import MAX_RESPONSE_BYTES, OutboundClient, OutboundError, Relaxations

NAME = "receiver.example"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Handler], Awaitable[TestServer]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a receiver on this machine."""
    servers: list[TestServer] = []

    async def start(handler: Handler) -> TestServer:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        servers.append(TestServer(app))
        await servers[-1].start_server()
        return servers[-1]

    yield start
    for server in servers:
        await server.close()


class Names:
    """A name service with answers in turn, which counts the lookups."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return answer


async def respond(request: web.Request) -> web.Response:
    return web.json_response({"host": request.host, "agent": request.headers["User-Agent"]})


async def refusal(client: OutboundClient, url: str) -> str:
    """The code of the error of a request, for operators."""
    return (await fail(client, url)).code


async def fail(client: OutboundClient, url: str) -> OutboundError:
    """The error of a request."""
    with pytest.raises(OutboundError) as error:
        await client.get(url)
    await client.close()
    return error.value


async def test_request_goes_to_the_address_of_the_name_with_its_host(serve: Serve) -> None:
    server = await serve(respond)
    names = Names(["127.0.0.1"])
    client = OutboundClient(Relaxations(http=True, private=True), lookup=names)
    response = await client.post(f"http://{NAME}:{server.port}/hook?a=1", b"{}", {"Content-Type": "application/json"})
    assert response.status == 200
    assert f'"host": "{NAME}:{server.port}"'.encode() in response.body
    assert names.asked == 1
    await client.close()


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.com/", "URL_NOT_HTTPS"),
        ("ftp://example.com/", "URL_NOT_HTTPS"),
        ("file:///etc/passwd", "URL_INVALID"),
        ("/hook", "URL_INVALID"),
        ("https:///hook", "URL_INVALID"),
        ("https://[v1.x]/", "URL_INVALID"),
        ("https://[v1.example.com]/", "URL_INVALID"),
        ("https://a b/", "URL_INVALID"),
        ("https://example.com:99999/", "URL_INVALID"),
        ("https://user@example.com/", "URL_WITH_CREDENTIALS"),
        ("https://user:secret@example.com/", "URL_WITH_CREDENTIALS"),
        ("https://127.0.0.1/", "ADDRESS_NOT_ALLOWED"),
        ("https://8.8.8.8/", "ADDRESS_NOT_ALLOWED"),
        ("https://2130706433/", "ADDRESS_NOT_ALLOWED"),
        ("https://127.1/", "ADDRESS_NOT_ALLOWED"),
        ("https://0x7f.1/", "ADDRESS_NOT_ALLOWED"),
        ("https://\uff11\uff12\uff17.0.0.1/", "ADDRESS_NOT_ALLOWED"),
        ("https://[::1]/", "ADDRESS_NOT_ALLOWED"),
        ("https://[::ffff:127.0.0.1]/", "ADDRESS_NOT_ALLOWED"),
        ("https://[fe80::1%25eth0]/", "ADDRESS_NOT_ALLOWED"),
        ("https://localhost/", "ADDRESS_NOT_ALLOWED"),
        ("https://hooks.localhost:8443/", "ADDRESS_NOT_ALLOWED"),
        ("https://intranet/", "ADDRESS_NOT_ALLOWED"),
        ("https://printer.local/", "ADDRESS_NOT_ALLOWED"),
        ("https://metadata.google.internal/", "ADDRESS_NOT_ALLOWED"),
        ("https://example.com:22/", "PORT_NOT_ALLOWED"),
        ("https://example.com:80/", "PORT_NOT_ALLOWED"),
        ("https://example.com:1023/", "PORT_NOT_ALLOWED"),
        ("https://example.com:0/", "PORT_NOT_ALLOWED"),
        ("https://example.com/#", "URL_INVALID"),
        ("https://example.com/a#b", "URL_INVALID"),
        ("https://example.com/a\nb", "URL_INVALID"),
        ("https://example.com/a\x00b", "URL_INVALID"),
        ("https://example.com/a\x85b", "URL_INVALID"),
        ("https://example.com/a b", "URL_INVALID"),
        ("https://example.com\\evil.example/", "URL_INVALID"),
        ("https://a..example.com/", "URL_INVALID"),
        ("https://-a.example.com/", "URL_INVALID"),
        ("https://a-.example.com/", "URL_INVALID"),
        (f"https://{'a' * 64}.example.com/", "URL_INVALID"),
        (f"https://{'.'.join(['a' * 62] * 4)}.example.com/", "URL_INVALID"),
        ("https://example.123/", "URL_INVALID"),
        ("https://xn--zzzz99999.example.com/", "URL_INVALID"),
        ("https://example.com../", "URL_INVALID"),
    ],
)
async def test_urls_that_are_refused(url: str, code: str) -> None:
    names = Names(["127.0.0.1"])
    assert await refusal(OutboundClient(lookup=names), url) == code
    assert names.asked == 0


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTPS://Hooks.EXAMPLE.com", "https://hooks.example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com.:8443/a", "https://example.com:8443/a"),
        ("https://example.com?a=1", "https://example.com/?a=1"),
        ("https://example.com:1024/", "https://example.com:1024/"),
        ("https://exämple.com/ü?q=ä", "https://xn--exmple-cua.com/%C3%BC?q=%C3%A4"),
        ("https://ｅxample.com/a/../b", "https://example.com/b"),
        ("https://example.com/\u202ea", "https://example.com/%E2%80%AEa"),
        ("https://my_hooks.example.com/?token=a%20b", "https://my_hooks.example.com/?token=a%20b"),
    ],
)
def test_canonical_form_of_a_url(url: str, canonical: str) -> None:
    client = OutboundClient()
    assert client.canonical_url(url) == canonical
    assert client.canonical_url(canonical) == canonical


async def test_users_get_one_error_for_no_connection(serve: Serve) -> None:
    """Names, ports and services of a network could be explored with several."""

    def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError

    server = await serve(respond)
    allowed = Relaxations(http=True, private=True)
    errors = [
        await fail(OutboundClient(allowed, lookup=unknown), "https://unknown.example/"),
        await fail(OutboundClient(lookup=Names(["10.0.0.1"])), "https://private.example/"),
        await fail(OutboundClient(allowed), "http://127.0.0.1:1/"),
        await fail(OutboundClient(allowed), f"https://127.0.0.1:{server.port}/"),
    ]
    assert {(each.public_code, each.message) for each in errors} == {
        ("CONNECTION_FAILED", "no connection could be established")
    }
    assert [each.code for each in errors] == [
        "NAME_NOT_RESOLVED",
        "ADDRESS_NOT_ALLOWED",
        "CONNECTION_FAILED",
        "TLS_FAILED",
    ]


async def test_connection_that_takes_too_long_is_no_connection() -> None:
    """A port that answers nothing differs from a closed one by time only."""
    with socket.socket() as listening:  # accepts, and never begins TLS
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client = OutboundClient(Relaxations(private=True), total_seconds=0.3)
        port = listening.getsockname()[1]
        assert await refusal(client, f"https://127.0.0.1:{port}/") == "CONNECTION_FAILED"


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["169.254.169.254"], ["::1"], ["::ffff:127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["fe80::1%lo"]],
)
async def test_name_with_an_address_that_is_not_public_is_refused(serve: Serve, addresses: list[str]) -> None:
    """Also if it has a public address too, and if the receiver would respond."""
    reached: list[str] = []

    async def record(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response()

    server = await serve(record)
    client = OutboundClient(Relaxations(http=True), lookup=Names(addresses))
    assert await refusal(client, f"http://{NAME}:{server.port}/") == "ADDRESS_NOT_ALLOWED"
    assert reached == []


async def test_each_barrier_refuses_addresses_that_are_not_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lookup of the name, and the socket of the connection, however its address was found."""
    opened: list[str] = []
    client = OutboundClient(Relaxations(http=True), lookup=Names(["8.8.8.8", "10.0.0.1"]))
    monkeypatch.setattr(client, "_open_socket", lambda address: opened.append(str(address)))
    assert await refusal(client, f"http://{NAME}/") == "ADDRESS_NOT_ALLOWED"
    assert opened == []
    for family, target in ((socket.AF_INET, ("127.0.0.1", 80)), (socket.AF_INET6, ("::ffff:7f00:1", 80, 0, 0))):
        with pytest.raises(OSError):
            OutboundClient()._open_socket((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", target))


async def test_name_is_resolved_once_for_each_request(serve: Serve) -> None:
    """A name that belongs to another address at the next lookup (DNS rebinding) is refused then."""
    server = await serve(respond)
    names = Names(["8.8.8.8"], ["127.0.0.1"])
    client = OutboundClient(Relaxations(http=True), lookup=names, total_seconds=0.2)
    with pytest.raises(OutboundError) as first:
        await client.get(f"http://{NAME}:{server.port}/")
    assert first.value.code in ("TIMED_OUT", "CONNECTION_FAILED")
    assert names.asked == 1
    assert await refusal(client, f"http://{NAME}:{server.port}/") == "ADDRESS_NOT_ALLOWED"


async def test_redirects_are_not_followed(serve: Serve) -> None:
    async def redirect(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    server = await serve(redirect)
    client = OutboundClient(Relaxations(http=True, private=True))
    response = await client.get(str(server.make_url("/")))
    assert (response.status, response.headers["Location"]) == (302, "/elsewhere")
    await client.close()


async def test_cookies_are_not_stored_and_proxies_not_used(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    async def set_cookie(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "a=b"})

    server = await serve(set_cookie)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    client = OutboundClient(Relaxations(http=True, private=True), lookup=Names(["127.0.0.1"]))
    for _ in range(2):
        assert (await client.get(f"http://{NAME}:{server.port}/")).status == 200
    assert seen == [None, None]
    await client.close()


async def test_at_most_64_kb_are_read(serve: Serve) -> None:
    async def send_for_ever(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    async def send_exactly(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * MAX_RESPONSE_BYTES)

    client = OutboundClient(Relaxations(http=True, private=True))
    response = await client.get(str((await serve(send_for_ever)).make_url("/")))
    assert (len(response.body), response.is_truncated) == (MAX_RESPONSE_BYTES, True)
    response = await client.get(str((await serve(send_exactly)).make_url("/")))
    assert (len(response.body), response.is_truncated) == (MAX_RESPONSE_BYTES, False)
    await client.close()


@pytest.mark.parametrize("part", ["headers", "body"])
async def test_total_time_is_limited(serve: Serve, part: str) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if part == "body":
            await response.prepare(request)
        while True:
            await asyncio.sleep(0.05)
            if part == "body":
                await response.write(b"x")

    server = await serve(drip)
    client = OutboundClient(Relaxations(http=True, private=True), total_seconds=0.3)
    assert await refusal(client, str(server.make_url("/"))) == "TIMED_OUT"


async def test_failures_have_codes(serve: Serve) -> None:
    server = await serve(respond)

    def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    async def send_garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"garbage\r\n\r\n")
        writer.close()

    garbage = await asyncio.start_server(send_garbage, "127.0.0.1", 0)
    port = garbage.sockets[0].getsockname()[1]
    allowed = Relaxations(http=True, private=True)
    assert await refusal(OutboundClient(allowed, lookup=unknown), "https://unknown.example/") == "NAME_NOT_RESOLVED"
    assert await refusal(OutboundClient(allowed), "http://127.0.0.1:1/") == "CONNECTION_FAILED"
    assert await refusal(OutboundClient(allowed), f"https://127.0.0.1:{server.port}/") == "TLS_FAILED"
    assert await refusal(OutboundClient(allowed), f"http://127.0.0.1:{port}/") == "RESPONSE_INVALID"
    garbage.close()
    await garbage.wait_closed()


def issue_certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The context of a server with a certificate for a name, and that of a client which trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    at = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(at - timedelta(hours=1))
        .not_valid_after(at + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "certificate.pem", folder / "key.pem"
    chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain, private)
    return server, ssl.create_default_context(cafile=str(chain))


async def test_certificate_is_checked_for_the_name(tmp_path: Path) -> None:
    asked: list[str] = []
    server_tls, client_tls = issue_certificate(tmp_path, NAME)

    def record_name(_: Any, name: str, __: Any) -> None:
        asked.append(name)

    server_tls.sni_callback = record_name
    app = web.Application()
    app.router.add_get("/", respond)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=server_tls)
    names, allowed = Names(["127.0.0.1"]), Relaxations(private=True)
    trusting = OutboundClient(allowed, lookup=names, tls=client_tls)
    assert (await trusting.get(f"https://{NAME}:{server.port}/")).status == 200
    assert asked == [NAME]
    assert await refusal(trusting, f"https://other.example:{server.port}/") == "TLS_FAILED"
    assert await refusal(OutboundClient(allowed, lookup=names), f"https://{NAME}:{server.port}/") == "TLS_FAILED"
    await server.close()
