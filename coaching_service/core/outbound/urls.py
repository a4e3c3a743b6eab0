"""The URLs to which requests are sent, in their canonical form."""

from __future__ import annotations

import re
from contextlib import suppress

import idna
from yarl import URL

from coaching_service.core.outbound.addresses import is_address, is_local_name
from coaching_service.core.outbound.errors import OutboundError

_PORTS = {"https": (443, 8443), "http": (80,)}
_FIRST_FREE_PORT = 1024  # below are the ports of other services of a host, such as mail and remote access
_MAX_HOST = 253
# Outside of ASCII, what is not visible is encoded; within, it is a mistake or an attempt to have two readings.
_REFUSED = re.compile(r"[\x00-\x20\x7f-\xa0\\#]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_PUNYCODE = "xn--"


def canonical_url(text: str, *, http: bool = False, private: bool = False) -> URL:
    """Return a URL in the one form in which it is stored and requested: lower case, IDNA, no usual port.

    `http` and `private` relax the rules for development. Raises OutboundError for one to which no request is sent, as
    far as its text shows.
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
    _require_scheme(url, http=http)
    if url.user is not None or url.password is not None:
        raise OutboundError("URL_WITH_CREDENTIALS", "must not contain a user name or password")
    host = host.removesuffix(".")
    if not private and (is_address(host) or is_local_name(host)):
        raise OutboundError("ADDRESS_NOT_ALLOWED", "must contain the name of a public host, not an address")
    if not is_address(host):
        if "[" in text:
            raise OutboundError("URL_INVALID", "must have a possible name of a host")
        _require_name(host, private=private)
    port = url.port or 0
    if not private and port not in _PORTS[url.scheme] and port < _FIRST_FREE_PORT:
        raise OutboundError("PORT_NOT_ALLOWED", "must have the port 443 or 8443, or one above 1023")
    url = url if ":" in host else url.with_host(host)
    url = url if url.raw_path.strip("/") else url.with_path(url.raw_path or "/", encoded=True, keep_query=True)
    return url.with_port(None if url.is_default_port() else port)


def _require_scheme(url: URL, *, http: bool) -> None:
    schemes = ("https", "http") if http else ("https",)
    if url.scheme not in schemes:
        raise OutboundError("URL_NOT_HTTPS", f"must begin with {' or '.join(f'{each}://' for each in schemes)}")


def _require_name(host: str, *, private: bool) -> None:
    """Raise OutboundError if no public host can have a name."""
    labels = host.split(".")
    is_possible = len(host) <= _MAX_HOST and all(map(_is_possible, labels)) and not labels[-1].isdecimal()
    if not is_possible:
        raise OutboundError("URL_INVALID", "must have a possible name of a host")
    if not private and len(labels) == 1:
        raise OutboundError("ADDRESS_NOT_ALLOWED", "must contain the full name of a public host")


def _is_possible(label: str) -> bool:
    """Return whether a label can be in the Domain Name System; an encoded one is what its decoded form leads to."""
    if not _LABEL.fullmatch(label):
        return False
    if not label.startswith(_PUNYCODE):
        return True
    with suppress(idna.IDNAError, UnicodeError):
        return idna.alabel(idna.ulabel(label)).decode("ascii") == label
    return False
