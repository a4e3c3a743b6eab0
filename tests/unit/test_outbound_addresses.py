"""Which addresses are public, and which hosts are addresses: every class of address by hand."""

from __future__ import annotations

import pytest

from coaching_service.core.outbound import is_address, is_local_name, is_public

PUBLIC = {
    "IPv4": ("1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.0", "100.128.0.0", "223.255.255.255"),
    "IPv6": ("2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2001:4860:4860::8888", "2003::1"),
}
REFUSED = {
    "this network": ("0.0.0.0", "0.255.255.255"),
    "private": ("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255"),
    "carrier-grade NAT, with Alibaba's metadata": ("100.64.0.1", "100.127.255.255", "100.100.100.200"),
    "loopback": ("127.0.0.1", "127.255.255.254"),
    "link-local, with the metadata of AWS, Azure, Google": ("169.254.0.1", "169.254.169.254", "169.254.170.2"),
    "Azure's host": ("168.63.129.16",),
    "protocol assignments, with Oracle's metadata": ("192.0.0.1", "192.0.0.192"),
    "documentation": ("192.0.2.1", "198.51.100.1", "203.0.113.1"),
    "AS112 and AMT": ("192.31.196.1", "192.52.193.1", "192.175.48.1"),
    "6to4 relays": ("192.88.99.1",),
    "benchmarks": ("198.18.0.1", "198.19.255.255"),
    "multicast": ("224.0.0.1", "239.255.255.255"),
    "reserved and broadcast": ("240.0.0.1", "255.255.255.255"),
    "IPv6 unspecified and loopback": ("::", "::1"),
    "IPv4-compatible": ("::8.8.8.8", "::127.0.0.1"),
    "IPv4-mapped": ("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8", "::ffff:0:8.8.8.8"),
    "NAT64": ("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::a00:1"),
    "6to4": ("2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1"),
    "Teredo and protocol assignments": ("2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1"),
    "IPv6 documentation": ("2001:db8::1", "3fff::1"),
    "IPv6 AS112": ("2620:4f:8000::1",),
    "discard-only": ("100::1",),
    "unique local, with the metadata of AWS": ("fc00::1", "fd00:ec2::254"),
    "IPv6 link-local": ("fe80::1", "fe80::1%eth0", "febf::1"),
    "site-local": ("fec0::1",),
    "IPv6 multicast": ("ff02::1", "ff0e::1"),
    "not assigned": ("4000::1", "5f00::1", "e000::1"),
}


@pytest.mark.parametrize("address", [each for group in PUBLIC.values() for each in group])
def test_public_address(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", [each for group in REFUSED.values() for each in group])
def test_address_that_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "8.8.8.8", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "::1", "fe80::1%eth0"],
)
def test_host_that_is_an_address(host: str) -> None:
    assert is_address(host)


@pytest.mark.parametrize("host", ["example.com", "1.example.com", "127.0.0.1.nip.io", "localhost", "a", "x1"])
def test_host_that_is_a_name(host: str) -> None:
    assert not is_address(host)


def test_local_names() -> None:
    assert all(map(is_local_name, ("localhost", "LOCALHOST.", "a.localhost")))
    assert not any(map(is_local_name, ("localhost.example.com", "notlocalhost")))
