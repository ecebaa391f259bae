"""Tests of origins: which URLs have the same one,
and which are refused since programs read them differently.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.model.base_url import parse_origin
from codeloop.model.errors import ModelUnavailable

HOSTS = st.from_regex(r"[a-z][a-z0-9-]{0,20}(\.[a-z]{2,5}){1,2}", fullmatch=True)


@pytest.mark.slow
@given(
    HOSTS,
    st.integers(1, 65535),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", "/", "/v1", "/a?b=c"]),
)
def test_an_origin_is_its_own_origin_and_forgets_the_path(
    host: str, port: int, scheme: str, path: str
) -> None:
    once = parse_origin(f"{scheme}://{host}:{port}{path}")
    assert parse_origin(once) == once
    assert parse_origin(f"{scheme.upper()}://{host.upper()}:{port}") == once


@pytest.mark.slow
@given(HOSTS, HOSTS)
def test_different_hosts_have_different_origins(one: str, other: str) -> None:
    assert (parse_origin(f"https://{one}/x") == parse_origin(f"https://{other}/x")) == (
        one == other
    )


def test_the_scheme_and_the_port_count() -> None:
    assert (
        parse_origin("https://a.example:443/v1")
        == parse_origin("https://a.example")
        == "https://a.example"
    )
    assert parse_origin("http://a.example") != parse_origin("https://a.example")
    assert parse_origin("https://a.example:8443") == "https://a.example:8443"
    assert parse_origin("http://[::1]:80/v1") == "http://[::1]"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.acme.example/v1",
        "ftp://a.example",
        "file:///etc/passwd",
        "https://",
        "https://api.acme.example@evil.example/v1",
        "https://user:secret@api.acme.example",
        "https://evil.example\\@api.acme.example",
        "https://evil.example\\.acme.example",
        "https://a.example:99999/",
        "https://a.example:x/",
        "https://a b.example/",
        "https://a.example/\n",
        "https://\u0430cme.example/",
        "https://a.example%2f.evil.example/",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(ModelUnavailable) as failed:
        parse_origin(url)
    assert "secret" not in str(failed.value)
