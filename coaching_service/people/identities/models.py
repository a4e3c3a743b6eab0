"""Sign-in identities and password resets as they are stored."""

from __future__ import annotations

import re
import secrets
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NotRequired

import idna

from coaching_service.core.database.context import Services
from coaching_service.core.database.declared import Stored
from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId

SubjectKind = Literal["coach", "customer"]


class StoredIdentity(Stored):
    """How a coach or client signs in.

    `address` is the normalised e-mail address; `passwordHash` is null until a password is set. `isConfirmed`: a mailed
    token or the operator has confirmed the address; identities stored before the field existed count as confirmed.
    `passwordChangedAt` is missing until the first change.
    """

    address: str
    kind: SubjectKind
    subjectId: ObjectId
    passwordHash: str | None
    isConfirmed: NotRequired[bool]
    passwordChangedAt: NotRequired[datetime]


class IdentityClaim(Stored):
    """An employee's claim to an e-mail address that another, unconfirmed identity uses.

    It becomes the identity when the employee uses a token that was mailed to `address`.
    """

    address: str
    kind: SubjectKind
    subjectId: ObjectId


class PasswordReset(Stored):
    """A single-use right to set the password of a coach or client, found by the hash of its token."""

    subjectId: ObjectId
    kind: SubjectKind
    tokenHash: str


# --- Domain events about sign-in identities ---------------------------------------------------------------------------


@dataclass(frozen=True)
class IdentityDisplaced(DomainEvent):
    """A coach or client of any company lost an unconfirmed e-mail address to a user who confirmed it."""

    company_id: ObjectId
    subject_id: ObjectId


@dataclass(frozen=True)
class EmailConfirmed(DomainEvent):
    """A coach or client of the company has confirmed the e-mail address by a mailed token."""

    subject_id: ObjectId


# --- Which spellings of an e-mail address are the same address --------------------------------------------------------


_PUNYCODE = "xn--"


def normalize_email(email: str) -> str:
    """Return the form of an e-mail address that is stored: two spellings of it are equal in it, and people can read it.

    The name is in NFKC and lower case, the domain as IDNA maps it (UTS 46, as browsers do). `ß` stays distinct from
    `ss`, with which case folding would confuse it: domains with them belong to different owners.
    """
    local, at, domain = unicodedata.normalize("NFKC", email.strip()).rpartition("@")
    return unicodedata.normalize("NFKC", _to_lower(local)) + at + _map_domain(domain)


def spellings_of(email: str) -> list[str]:
    """Return the spellings under which an e-mail address can be stored: first, those before there was one form."""
    return [*dict.fromkeys([_to_lower(email.strip()), *spellings(email)])]


def account_key(email: str) -> str:
    """Return what is the same for all spellings of an e-mail address."""
    return min(spellings(email))


def spellings(email: str) -> list[str]:
    """Return the stored form, and the forms with the domain in Unicode and as in the Domain Name System.

    Browsers send `exämple.com` as `xn--exmple-cua.com`.
    """
    written = normalize_email(email)
    local, at, domain = written.rpartition("@")
    labels = [_decode_label(label) for label in domain.split(".")]
    encoded = [label if label.isascii() else _PUNYCODE + label.encode("punycode").decode("ascii") for label in labels]
    return [*dict.fromkeys([written, *(f"{local}{at}{'.'.join(each)}" for each in (labels, encoded))])]


def _decode_label(label: str) -> str:
    """Return a part of a domain in Unicode, if it is encoded as IDNA encodes it."""
    if not label.startswith(_PUNYCODE):
        return label
    try:
        decoded = label.removeprefix(_PUNYCODE).encode("ascii").decode("punycode")
    except UnicodeError:
        return label
    is_usual = decoded == _map_domain(decoded) and not decoded.isascii()
    return decoded if is_usual and decoded.encode("punycode") == label.removeprefix(_PUNYCODE).encode() else label


def _map_domain(domain: str) -> str:
    try:
        return idna.uts46_remap(domain, std3_rules=False, transitional=False)
    except idna.IDNAError:  # a domain that does not exist
        return _to_lower(domain)


def _to_lower(text: str) -> str:
    """Return a text in lower case; characters that are no upper case stay as they are."""
    return "".join(lower if (lower := each.lower()).upper() == each else each for each in text)


# --- Devices that signed in before: a signed token by which a device has a counter of failed sign-ins of its own ------


LIFETIME = timedelta(days=180)
_TOKEN = re.compile(
    r"(?P<device>[\w-]{22})\.(?P<until>[0-9]{1,12})\.(?P<password>[\w-]{43})\.(?P<signature>[\w-]{43})", re.ASCII
)
_ID_BYTES = 16


def sign_device(services: Services, identity: StoredIdentity) -> str:
    """Return a token for a device on which the user of an identity has just proved who they are."""
    until = int(time.time() + LIFETIME.total_seconds())
    password = sign_password(services, identity)
    content = f"{secrets.token_urlsafe(_ID_BYTES)}.{until}.{password}"
    return f"{content}.{services.vault.sign(_device_of(identity, content))}"


def find_device(services: Services, identity: StoredIdentity | None, tokens: Iterable[str]) -> str | None:
    """Return the name under which the failures of a device are counted; None if no token is valid for the identity.

    Devices that have only signed in with an earlier password share a name, so that a user of that password has not
    collected many counters.
    """
    if identity is None:
        return None
    earlier = None
    for token in tokens:
        match = _TOKEN.fullmatch(token)
        if match is None or int(match["until"]) < time.time():
            continue
        content = token.rpartition(".")[0]
        if not services.vault.verify_signature(_device_of(identity, content), match["signature"]):
            continue
        if is_password_of(services, identity, match["password"]):
            return match["device"]
        earlier = f"earlier password of {identity['subjectId']}"
    return earlier


def sign_password(services: Services, identity: StoredIdentity) -> str:
    """Return a signature of the present password of an identity, which another password makes invalid."""
    return services.vault.sign(_password_of(identity))


def is_password_of(services: Services, identity: StoredIdentity, signature: str) -> bool:
    """Return whether the signature is of the present password of an identity."""
    return services.vault.verify_signature(_password_of(identity), signature)


def _device_of(identity: StoredIdentity, content: str) -> str:
    return f"device of {identity['subjectId']}: {content}"


def _password_of(identity: StoredIdentity) -> str:
    return f"password of {identity['subjectId']}: {identity['passwordHash']}"
