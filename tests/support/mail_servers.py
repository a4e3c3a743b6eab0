"""SMTP servers for tests: one that accepts mail, and others that reject it, hang or disconnect."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from email import message_from_bytes
from email.message import Message
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.jobs.mail import SmtpMailSender


class Mailbox:
    """The mail that an SMTP server received, and its responses before it accepts any."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.responses: list[str] = []
        self.tries = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.tries += 1
        if self.responses:
            return self.responses.pop(0)
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        return "250 accepted"


class RejectsSender(Mailbox):
    """Rejects the sender."""

    async def handle_MAIL(self, *_: Any) -> str:
        return "550 sender rejected"


class RejectsRecipient(Mailbox):
    """Rejects every recipient."""

    async def handle_RCPT(self, *_: Any) -> str:
        return "550 no such user"


class DisconnectsAtRecipient(Mailbox):
    """Disconnects when it receives the recipient."""

    async def handle_RCPT(self, server: SMTP, *_: Any) -> str:
        assert server.transport is not None
        server.transport.close()
        return "250 never sent"


class DisconnectsAfterMail(Mailbox):
    """Accepts a mail and disconnects before it confirms it."""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        response = await super().handle_DATA(server, session, envelope)
        assert server.transport is not None
        server.transport.close()
        return response


class HangsAfterMail(Mailbox):
    """Accepts a mail and never says so."""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        await super().handle_DATA(server, session, envelope)
        await asyncio.Event().wait()
        return "250 never sent"


class ClaimedMeanwhile(Mailbox):
    """Answers so late that another worker has claimed the mail."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = services

    async def handle_RCPT(self, _: SMTP, __: Session, envelope: Envelope, address: str, ___: Any) -> str:
        envelope.rcpt_tos.append(address)
        await self.services.db["jobs"].update_many({"kind": "send_mail"}, {"$set": {"lease": "of another worker"}})
        return "250 yes"


class RejectsConnections(SMTP):
    """Greets every client with an error."""

    async def push(self, status: Any) -> None:
        await super().push(status.replace("220 ", "554 ", 1))


class Slow(SMTP):
    """Delays every response, each within the time for one command."""

    async def push(self, status: Any) -> None:
        await asyncio.sleep(0.3)  # the server under test is slow on purpose
        await super().push(status)


@dataclass
class SilentServer:
    """A server that accepts connections and never responds."""

    port: int = 0
    connections: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await reader.read()  # until the client disconnects
        writer.close()


@asynccontextmanager
async def silent_server() -> AsyncIterator[SilentServer]:
    """Run a server that never responds."""
    silent = SilentServer()
    async with await asyncio.start_server(silent.handle, "127.0.0.1", 0) as listener:
        silent.port = listener.sockets[0].getsockname()[1]
        yield silent


@asynccontextmanager
async def listening(server: Callable[[], SMTP]) -> AsyncIterator[int]:
    """Run a mail server on a free port, which is returned."""
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


def sending_to(mailing: Services, **options: Any) -> Services:
    """The same services with another mail server, or other options of the connection."""
    assert isinstance(mailing.mail_sender, SmtpMailSender)
    return replace(mailing, mail_sender=replace(mailing.mail_sender, **options))


_CREDENTIALS = {"username": "us", "password": "our password"}
# Servers that certainly do not accept mail, created with a folder for files, and the options of the client.
REJECTING_SERVERS: dict[str, tuple[Callable[[Path], SMTP], dict[str, str]]] = {
    "TLS is not offered": (lambda _: SMTP(Mailbox()), {"encryption": "starttls"}),
    "TLS is not supported": (lambda _: SMTP(Mailbox()), {"encryption": "tls"}),
    "the certificate is self-signed": (
        lambda folder: SMTP(Mailbox(), tls_context=_self_signed_certificate(folder)),
        {"encryption": "starttls"},
    ),
    "authentication is not offered": (lambda _: SMTP(Mailbox()), _CREDENTIALS),
    "the password is wrong": (
        lambda _: SMTP(Mailbox(), authenticator=_reject, auth_require_tls=False),
        _CREDENTIALS,
    ),
    "connections are rejected": (lambda _: RejectsConnections(Mailbox()), {}),
    "the sender is rejected": (lambda _: SMTP(RejectsSender()), {}),
    "it disconnects before the mail": (lambda _: SMTP(DisconnectsAtRecipient()), {}),
}


def _reject(*_: Any) -> AuthResult:
    return AuthResult(success=False, handled=False)


def _self_signed_certificate(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now(), now() + timedelta(days=1))
    private_key = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    file = folder / "certificate.pem"
    file.write_bytes(private_key + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
