"""Mail servers: one that takes what it is handed, and those that do not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
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

from coaching_service.core.database.documents import now


class PostOffice:
    """What an SMTP server was handed, and what it answers."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.answers: list[str] = []
        self.tries = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.tries += 1
        if self.answers:
            return self.answers.pop(0)
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        return "250 taken"


class Choosy(PostOffice):
    """Takes nothing from us."""

    async def handle_MAIL(self, *_: Any) -> str:
        return "550 not from you"


class Knowing(PostOffice):
    """Knows that there is nobody of that name."""

    async def handle_RCPT(self, *_: Any) -> str:
        return "550 no such user"


class Rude(PostOffice):
    """Hangs up when it hears for whom a mail is."""

    async def handle_RCPT(self, server: SMTP, *_: Any) -> str:
        server.transport.close()
        return "250 never heard"


class Forgetful(PostOffice):
    """Takes a mail, and hangs up before it says so."""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        answer = await super().handle_DATA(server, session, envelope)
        server.transport.close()
        return answer


class Closed(SMTP):
    """Greets whoever comes by sending them away."""

    async def push(self, status: Any) -> None:
        await super().push(status.replace("220 ", "554 ", 1))


class Slow(SMTP):
    """Thinks about every answer, never too long for that one alone."""

    async def push(self, status: Any) -> None:
        await asyncio.sleep(0.3)  # being slow is what this server is for
        await super().push(status)


@asynccontextmanager
async def listening(server: Callable[[], SMTP]) -> AsyncIterator[int]:
    """A mail server on a port of its own."""
    listens = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    async with listens:
        yield listens.sockets[0].getsockname()[1]


_OUR_SIGN_IN = {"username": "us", "password": "our password"}
# The server made with a folder to work in, and how it is spoken to.
TAKING_NOTHING: dict[str, tuple[Callable[[Path], SMTP], dict[str, str]]] = {
    "no TLS is offered": (lambda _: SMTP(PostOffice()), {"encryption": "starttls"}),
    "TLS is not understood": (lambda _: SMTP(PostOffice()), {"encryption": "tls"}),
    "the certificate is anybody's": (
        lambda folder: SMTP(PostOffice(), tls_context=_own_certificate(folder)),
        {"encryption": "starttls"},
    ),
    "no sign-in is offered": (lambda _: SMTP(PostOffice()), _OUR_SIGN_IN),
    "the password is wrong": (
        lambda _: SMTP(PostOffice(), authenticator=_no, auth_require_tls=False),
        _OUR_SIGN_IN,
    ),
    "nobody is let in": (lambda _: Closed(PostOffice()), {}),
    "the sender is refused": (lambda _: SMTP(Choosy()), {}),
    "it hangs up before the mail": (lambda _: SMTP(Rude()), {}),
}


def _no(*_: Any) -> AuthResult:
    return AuthResult(success=False, handled=False)


def _own_certificate(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now(), now() + timedelta(days=1))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "certificate.pem"
    file.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
