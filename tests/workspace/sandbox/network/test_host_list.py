"""Which hosts a list lets pass, and how a host may be spelled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.workspace.sandbox.network.host_list import (
    DEFAULT_HOSTS,
    ConnectionBlocked,
    HostPort,
    parse_host_list,
    parse_host_port,
)

TRICKS = [
    *(
        "pypi.org\0.evil.example:443",
        "pypi.org%00.evil.example:443",
        "pypi.org%2eevil.example:443",
        "pypi.org.:443",
    ),
    *(
        "pypi.org@evil.example:443",
        "user:pw@pypi.org:443",
        "evil.example#@pypi.org:443",
        "evil.example\\.pypi.org:443",
    ),
    *(
        "pypi.org/:443",
        "pypi.org?:443",
        "pypi.org#:443",
        " pypi.org:443",
        "pypi.org :443",
        "pypi.org\t:443",
    ),
    *(
        "pyp\u0131.org:443",
        "\u212apypi.org:443",
        "pypi\u3002org:443",
        "pypi\uff0eorg:443",
        "b\u00fccher.example:443",
    ),
    *(
        "pypi.org",
        "pypi.org:",
        "pypi.org:0",
        "pypi.org:0443",
        "pypi.org:+443",
        "pypi.org:443:443",
        "pypi.org:65536",
    ),
    *(
        "pypi.org:4_43",
        "pypi.org:\u0664\u0664\u0663",
        ":443",
        "",
        ".pypi.org:443",
        "pypi..org:443",
        "-pypi.org:443",
    ),
    *(
        "pypi-.org:443",
        f"{'a' * 64}.org:443",
        f"{'a.' * 127}org:443",
        "[pypi.org]:443",
        "[::1%25lo]:443",
        "::1:443",
    ),
    *(
        "[::1:443",
        "::1]:443",
        "[]:443",
        "[v1.x]:443",
        "[::1]443",
        "pypi.org:443\r\n",
        "*.org:443",
        "*:443",
    ),
]
LITERALS = [
    *(
        "127.0.0.1:443",
        "127.1:443",
        "2130706433:443",
        "0x7f000001:443",
        "0x7f.1:443",
        "0177.0.0.1:443",
        "0:443",
    ),
    *(
        "017700000001:80",
        "1.2.3.4:443",
        "1.2.3.4.5:443",
        "256.1.1.1:443",
        "example.0x:443",
        "[::1]:443",
        "[::]:80",
    ),
    *(
        "[::ffff:127.0.0.1]:443",
        "[::ffff:7f00:1]:443",
        "[64:ff9b::a9fe:a9fe]:80",
        "[2606:4700::1111]:443",
    ),
    *("0X7F.0x0.0x0.0x1:443", "169.254.169.254:80", "example.1:443"),
]


@pytest.mark.parametrize("text", TRICKS)
def test_any_but_the_plain_spelling_of_a_host_is_refused(text: str) -> None:
    with pytest.raises(ConnectionBlocked) as caught:
        parse_host_port(text)
    assert caught.value.authority.isascii()
    assert caught.value.authority.isprintable()


@pytest.mark.parametrize("text", LITERALS)
def test_an_address_is_known_for_one_in_every_spelling_and_refused(text: str) -> None:
    target = parse_host_port(text)
    assert target.is_literal
    with pytest.raises(ConnectionBlocked, match="an address where a name is needed"):
        parse_host_list(["*.example.com"]).find_rule(target)


@pytest.mark.parametrize(
    ("entries", "passing", "refused"),
    [
        (
            ["example.com"],
            ["example.com:443", "example.com:80", "EXAMPLE.com:443"],
            ["example.com:8443"],
        ),
        (
            ["example.com"],
            [],
            ["a.example.com:443", "example.com.evil.test:443", "evilexample.com:443", "com:443"],
        ),
        (["Example.com:8443"], ["example.com:8443"], ["example.com:443", "example.com:80"]),
        (
            ["*.example.com"],
            ["a.example.com:443", "a.b.example.com:80"],
            ["example.com:443", "aexample.com:443"],
        ),
        (["*.example.com:99"], ["a.example.com:99"], ["a.example.com:443"]),
        (["b\u00fccher.example"], ["xn--bcher-kva.example:443"], ["bucher.example:443"]),
        (
            ["10.0.0.5:8080"],
            ["10.0.0.5:8080"],
            ["10.0.0.5:443", "10.5:8080", "0xa.0.0.5:8080", "[::ffff:10.0.0.5]:8080"],
        ),
        (["*.example.com", "!a.example.com"], ["b.example.com:443"], ["a.example.com:443"]),
        (["!github.com"], ["codeload.github.com:443", "pypi.org:443"], ["github.com:443"]),
        (["!*", "example.com"], ["example.com:443"], ["github.com:443", "pypi.org:443"]),
    ],
)
def test_an_entry_lets_pass_what_it_names_and_nothing_more(
    entries: list[str], passing: list[str], refused: list[str]
) -> None:
    hosts = parse_host_list(entries)
    for text in passing:
        assert hosts.find_rule(parse_host_port(text))
    for text in refused:
        with pytest.raises(
            ConnectionBlocked, match=r"not among the hosts of the sandbox|an address"
        ):
            hosts.find_rule(parse_host_port(text))


@pytest.mark.parametrize(
    "entry",
    [
        *(
            "",
            "*",
            "*.",
            "https://example.com",
            "example.com/x",
            "a b",
            "user@example.com",
            "example.com.",
            "localhost",
        ),
        *(
            "127.1:80",
            "0x7f000001:80",
            "*.10.0.0.1",
            "*.5",
            "10.5",
            "example.com:0",
            "example.com:99999",
            "[::1",
            "!",
            "127.0.0.1",
        ),
        *("*.*.example.com", "example.*", "ex\0ample.com"),
    ],
)
def test_an_entry_that_names_no_host_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match="names no host: write a name"):
        parse_host_list([entry])


def test_addresses_are_compared_and_not_their_spellings() -> None:
    hosts = parse_host_list(["[2606:4700:0::1111]", "[::ffff:8.8.8.8]:80", "![2606:4700::2222]"])
    for text in ("[2606:4700::1111]:443", "[2606:4700:0:0::1111]:443", "[::ffff:808:808]:80"):
        assert hosts.find_rule(parse_host_port(text)), text
    with pytest.raises(ConnectionBlocked):
        hosts.find_rule(parse_host_port("[2606:4700:0::2222]:443"))


def test_services_of_the_users_machine_are_kept_apart() -> None:
    hosts = parse_host_list(["localhost:5432", "127.0.0.1:6379", "!localhost:22", "[0:0::1]:8080"])
    assert hosts.service_ports == (5432, 6379, 8080)
    for text in ("localhost:5432", "127.0.0.1:6379", "[::1]:8080"):
        with pytest.raises(ConnectionBlocked):
            hosts.find_rule(parse_host_port(text))


@pytest.mark.parametrize(
    ("entries", "host", "address", "concern"),
    [
        ([], "pypi.org", "151.101.0.223", None),
        ([], "pypi.org", "10.1.2.3", "private"),
        ([], "pypi.org", "127.0.0.1", "loopback"),
        ([], "pypi.org", "198.18.0.9", None),
        ([], "pypi.org", "203.0.113.9", None),
        (["pypi.org"], "pypi.org", "10.1.2.3", None),
        (["nexus.corp"], "nexus.corp", "10.1.2.3", None),
        (["nexus.corp"], "nexus.corp", "fd12::1", None),
        (["nexus.corp"], "nexus.corp", "127.0.0.1", "loopback"),
        (["nexus.corp"], "nexus.corp", "169.254.169.254", "a cloud's metadata service"),
        (["nexus.corp"], "nexus.corp", "fd00:ec2::254", "a cloud's metadata service"),
        (["nexus.corp"], "nexus.corp", "::ffff:10.1.2.3", "an IPv4 address written as IPv6"),
        (["*.corp"], "nexus.corp", "10.1.2.3", "private"),
        (["*.corp", "nexus.corp"], "nexus.corp", "10.1.2.3", None),
    ],
)
def test_a_private_address_is_for_names_that_the_user_wrote(
    entries: list[str], host: str, address: str, concern: str | None
) -> None:
    assert (
        parse_host_list(entries).find_rule(HostPort(host, 443)).explain_refusal(address) == concern
    )


def test_the_default_hosts_are_plain_names_each_once() -> None:
    names = [name for _, *row in DEFAULT_HOSTS for name in row]
    assert len(names) == len(set(names))
    assert [parse_host_port(name, 443).host for name in names] == names
    assert [rule.name for rule in parse_host_list([]).rules] == names


@given(st.text(max_size=30))
def test_any_text_is_a_plain_target_or_refused(text: str) -> None:
    try:
        target = parse_host_port(text, 443)
    except ConnectionBlocked:
        return
    assert target.host.isascii()
    assert target.host.islower() or not any(letter.isalpha() for letter in target.host)
    assert parse_host_port(target.authority) == target
