"""Which spellings of an e-mail address are the same address."""

from __future__ import annotations

import unicodedata

import idna

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
    return "".join(map(_lower, text))


def _lower(character: str) -> str:
    lower = character.lower()
    return lower if lower.upper() == character else character
