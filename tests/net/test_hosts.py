"""Tests of which hosts are this machine, which is trusted more than others."""

import pytest

from codeloop.net.hosts import add_brackets, is_local_host, is_loopback

OURS = [
    "localhost",
    "LOCALHOST",
    "127.0.0.1",
    "127.8.9.1",
    "::1",
    "[::1]",
    "::1%lo",
    "::ffff:127.0.0.1",
]
OTHERS = [
    "",
    "localhost.evil.example",
    "localhost.evil.localhost.example",
    "notlocalhost",
    "127.0.0.1.nip.io",
    "127.evil.example",
    "1270.0.0.1",
    "::1.evil.example",
    "::10",
    "10.0.0.1",
    "0.0.0.0",
    "::ffff:10.0.0.1",
]


@pytest.mark.parametrize("host", OURS)
def test_this_machine_is_known_by_its_address_and_name(host: str) -> None:
    assert is_loopback(host)
    assert is_local_host(host)


@pytest.mark.parametrize("host", OTHERS)
def test_what_only_looks_like_it_is_another_machine(host: str) -> None:
    assert not is_loopback(host)
    assert not is_local_host(host)


def test_a_name_below_localhost_is_local_but_no_key_is_sent_to_it_in_clear() -> None:
    assert is_local_host("app.LOCALHOST")
    assert not is_loopback("app.localhost")


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert [add_brackets("::1"), add_brackets("a.example")] == ["[::1]", "a.example"]
