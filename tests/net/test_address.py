"""Tests of which addresses are public."""

import pytest

from codeloop.net.address import classify_non_public

NOT_PUBLIC = [
    *(
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.9.9.9",
    ),
    *(
        "168.63.129.16",
        "169.254.169.254",
        "169.254.1.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
    ),
    *(
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
    ),
    *(
        "255.255.255.255",
        "192.88.99.1",
        "::",
        "::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd12::1",
        "fec0::1",
        "ff02::fb",
    ),
    *(
        "::ffff:8.8.8.8",
        "::8.8.8.8",
        "64:ff9b::10.0.0.1",
        "2002:808:808::",
        "2001:db8::1",
        "100::1",
        "5f00::1",
    ),
]
PUBLIC = [
    *(
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
    ),
    *(
        "128.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "223.255.255.255",
    ),
    *("2606:4700::1111", "2a00:1450:4001::200e", "64:ff9b::8.8.8.8"),
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_a_concern(address: str) -> None:
    assert classify_non_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_no_concern(address: str) -> None:
    assert classify_non_public(address) is None


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"],
)
def test_metadata_services_are_told_from_private_networks(address: str) -> None:
    assert classify_non_public(address) == "a cloud's metadata service"
