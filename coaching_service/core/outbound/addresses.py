"""Which network addresses are public, and which texts are such addresses."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from urllib.parse import urlsplit

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


def is_local_name(host: str) -> bool:
    """Return whether a name means the local machine (RFC 6761) or network (RFC 6762, and ICANN's `internal`)."""
    return host.rstrip(".").lower().rpartition(".")[2] in ("localhost", "local", "internal")
