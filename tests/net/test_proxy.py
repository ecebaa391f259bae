"""Tests of the environment's proxy for a host."""

import pytest

from codeloop.net.proxy import find_proxy


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"https_proxy": "http://p:1"}, "http://p:1"),
        ({"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ({"https_proxy": "http://low:1", "HTTPS_PROXY": "http://high:1"}, "http://low:1"),
        ({"http_proxy": "http://p:1"}, None),
        ({"ALL_PROXY": "socks5://p:1"}, "socks5://p:1"),
    ],
)
def test_the_scheme_comes_before_all_proxy(environment: dict[str, str], proxy: str | None) -> None:
    assert find_proxy("https", "api.example.com", 443, environment) == proxy


@pytest.mark.parametrize(
    ("excluded", "is_direct"),
    [
        ("*", True),
        ("api.example.com", True),
        ("other.com, .EXAMPLE.com", True),
        ("*.example.com", True),
        ("example.com:443", False),
        ("api.example.com:443", True),
        ("api.example.com:80", False),
        ("ple.com", False),
        (" ,", False),
    ],
)
def test_no_proxy_names_hosts_with_all_below_them(excluded: str, is_direct: bool) -> None:
    environment = {"https_proxy": "http://p:1", "no_proxy": excluded}
    assert (find_proxy("https", "api.example.com", 443, environment) is None) == is_direct


def test_no_proxy_names_networks() -> None:
    environment = {"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8, fd00::/8, junk/99"}
    assert find_proxy("http", "10.1.2.3", 80, environment) is None
    assert find_proxy("http", "fd12::1", 80, environment) is None
    for host in ("11.1.2.3", "example.com", "10.1.2.3.example.com"):
        assert find_proxy("http", host, 80, environment) == "http://p:1"
