"""What a client of the proxy sends is read one way, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.workspace.sandbox.network.host_list import ConnectionBlocked, HostPort
from codeloop.workspace.sandbox.network.proxy_request import (
    ProxyRequest,
    check_client_hello,
    parse_request,
)
from tests.workspace.sandbox.network.hello import extension, hello, made, names, record, split

PYPI = HostPort("pypi.org", 443)


def head(*lines: str) -> bytes:
    return "\r\n".join((*lines, "", "")).encode("latin-1")


@pytest.mark.parametrize(
    ("lines", "target"),
    [
        (["CONNECT pypi.org:443 HTTP/1.1", "Host: pypi.org:443"], PYPI),
        (["CONNECT pypi.org:443 HTTP/1.1", "host:PyPI.org"], PYPI),
        (["CONNECT PYPI.ORG:443 HTTP/1.0"], PYPI),
        (["connect pypi.org:443 HTTP/1.1", "User-Agent: x", "Proxy-Connection: keep-alive"], PYPI),
    ],
)
def test_a_tunnel_leads_where_its_first_line_says(lines: list[str], target: HostPort) -> None:
    assert parse_request(head(*lines)) == ProxyRequest(target)


def test_a_request_goes_on_in_our_own_words() -> None:
    request = parse_request(
        head(
            "POST http://Example.com:80/a?b=c%20d HTTP/1.1",
            "hOst: example.com",
            "Connection: keep-alive, X-Mine",
            "X-Mine: dropped, since it is for one connection",
            "Proxy-Authorization: Basic c2VjcmV0",
            "Upgrade: h2c",
            "Content-Length: 12",
            "X-Kept:  a:b ",
        )
    )
    assert request.head == (
        b"POST /a?b=c%20d HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n"
        b"Content-Length: 12\r\nX-Kept: a:b\r\n\r\n"
    )
    assert (request.target, request.length) == (HostPort("example.com", 80), 12)


@pytest.mark.parametrize(
    ("line", "first", "host"),
    [
        ("GET http://example.com HTTP/1.1", "GET / HTTP/1.1", "example.com"),
        (
            "GET http://example.com?x=http://y/ HTTP/1.0",
            "GET /?x=http://y/ HTTP/1.1",
            "example.com",
        ),
        ("GET HTTP://example.com:8080/ HTTP/1.1", "GET / HTTP/1.1", "example.com:8080"),
        ("GET http://[2606:4700::1]/ HTTP/1.1", "GET / HTTP/1.1", "[2606:4700::1]"),
    ],
)
def test_a_url_becomes_a_path_and_a_host(line: str, first: str, host: str) -> None:
    assert parse_request(head(line)).head.decode().split("\r\n")[:2] == [first, f"Host: {host}"]


REFUSED = [
    (
        ["CONNECT pypi.org:443 HTTP/1.1", "Host: evil.example"],
        "Host names another host: evil.example",
    ),
    (["CONNECT pypi.org:443 HTTP/1.1", "Host: pypi.org:80"], "Host names another host"),
    (
        ["CONNECT pypi.org:443 HTTP/1.1", "Host: pypi.org", "Host: pypi.org"],
        "Host names another host",
    ),
    (["CONNECT pypi.org:443 HTTP/1.1", "Host:"], "Host names another host"),
    (["CONNECT pypi.org:443 HTTP/1.1", "Host: pypi.org."], "Host names another host"),
    (["CONNECT pypi.org:443 HTTP/1.1", "Host : pypi.org"], "header of the request is malformed"),
    (["CONNECT pypi.org:443 HTTP/1.1", "Host: pypi.org", " evil.example"], "malformed"),
    (["CONNECT pypi.org:443 HTTP/1.1", "Host: pypi.org\nX: y"], "malformed"),
    (["CONNECT pypi.org:443 HTTP/1.1", "Host: pypi.org\0"], "malformed"),
    (["CONNECT pypi.org:443 HTTP/1.1", "X: a\rb"], "malformed"),
    (["CONNECT pypi.org:443 HTTP/1.1", "no colon"], "malformed"),
    (["CONNECT pypi.org:443 HTTP/1.1", *("X: y" for _ in range(101))], "more than 100 headers"),
    (["CONNECT  pypi.org:443 HTTP/1.1"], "first line"),
    (["CONNECT pypi.org:443"], "first line"),
    (["CONNECT pypi.org:443 HTTP/2.0"], "first line"),
    (["CONNECT pypi.org:443 HTTP/1.1 "], "first line"),
    (["CONNECT\tpypi.org:443 HTTP/1.1"], "first line"),
    (["CONNECT pypi.org:443 http/1.1"], "first line"),
    (["PRI * HTTP/2.0"], "first line"),
    ([""], "first line"),
    (["CONNECT pypi.org:443\0 HTTP/1.1"], "first line"),
    (["CONNECT http://pypi.org:443/ HTTP/1.1"], "not the name of a host|no port"),
    (["GET / HTTP/1.1", "Host: pypi.org"], "not an http:// URL"),
    (["GET //pypi.org/ HTTP/1.1", "Host: pypi.org"], "not an http:// URL"),
    (["GET * HTTP/1.1"], "not an http:// URL"),
    (["GET https://pypi.org/ HTTP/1.1"], "HTTPS goes through CONNECT"),
    (["GET ftp://pypi.org/ HTTP/1.1"], "not an http:// URL"),
    (["GET http:/pypi.org/ HTTP/1.1"], "not an http:// URL"),
    (["GET http://pypi.org/#x HTTP/1.1"], "not an http:// URL"),
    (["GET http://evil.example\\@pypi.org/ HTTP/1.1"], "user name"),
    (["GET http://pypi.org@evil.example/ HTTP/1.1"], "user name"),
    (["GET http://pypi.org\\.evil.example/ HTTP/1.1"], "not the name of a host"),
    (["GET http://pypi.org/ HTTP/1.1", "Host: evil.example"], "Host names another host"),
    (
        ["POST http://a.b/ HTTP/1.1", "Content-Length: 1", "Content-Length: 1"],
        "length of its body twice",
    ),
    (
        ["POST http://a.b/ HTTP/1.1", "Content-Length: 1", "Transfer-Encoding: chunked"],
        "length of its body twice",
    ),
    (
        ["POST http://a.b/ HTTP/1.1", "Transfer-Encoding: chunked", "transfer-encoding: identity"],
        "twice",
    ),
    (["POST http://a.b/ HTTP/1.1", "Transfer-Encoding: gzip, chunked"], "other than chunked"),
    (["POST http://a.b/ HTTP/1.1", "Transfer-Encoding: xchunked"], "other than chunked"),
    (["POST http://a.b/ HTTP/1.1", "Transfer-Encoding: \x0bchunked"], "malformed"),
    (["POST http://a.b/ HTTP/1.0", "Transfer-Encoding: chunked"], "other than chunked"),
    (["POST http://a.b/ HTTP/1.1", "Content-Length: +1"], "not a number"),
    (["POST http://a.b/ HTTP/1.1", "Content-Length: 0x1"], "not a number"),
    (["POST http://a.b/ HTTP/1.1", "Content-Length: 1, 1"], "not a number"),
    (["POST http://a.b/ HTTP/1.1", "Content-Length:"], "not a number"),
    (["POST http://a.b/ HTTP/1.1", f"Content-Length: {'9' * 19}"], "not a number"),
    (["POST http://a.b/ HTTP/1.1", "Content-Length: \xb2"], "not a number"),
]


@pytest.mark.parametrize(("lines", "why"), REFUSED)
def test_what_could_be_read_in_two_ways_is_refused(lines: list[str], why: str) -> None:
    with pytest.raises(ConnectionBlocked, match=why):
        parse_request(head(*lines))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    for begin in (
        b"",
        b"CONNECT ",
        b"GET http://a/ HTTP/1.1\r\n",
        b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n",
    ):
        try:
            request = parse_request(begin + data + b"\r\n\r\n")
        except ConnectionBlocked:
            continue
        assert request.head.count(b"\r\n\r\n") == (not request.is_tunnel)


def test_tls_clients_name_the_server_that_they_ask_for() -> None:
    data = hello("pypi.org")
    assert check_client_hello(data, PYPI)
    assert check_client_hello(made(names(b"PyPI.org")), PYPI)
    assert check_client_hello(split(data, len(data) // 3), PYPI)
    assert not any(check_client_hello(data[:length], PYPI) for length in range(len(data)))
    assert check_client_hello(hello(None), HostPort("10.0.0.5", 443, is_literal=True))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (hello("evil.example"), "asks for another server: evil.example"),
        (hello(None), "does not name one server"),
        (made(), "does not name one server"),
        (made(names(b"pypi.org", b"evil.example")), "does not name one server"),
        (made(names(b"pypi.org"), names(b"evil.example")), "does not name one server"),
        (made(names(b"pypi.org", kind=1)), "does not name one server"),
        (made(names()), "does not name one server"),
        (made(extension(0, b"")), "does not name one server"),
        (made(names(b"pypi.org.")), "asks for another server"),
        (made(names(b"pypi.org\0.evil.example")), r"another server: pypi.org\\x00.evil.example"),
        (made(names(b"\x1b[2Jpypi.org")), r"another server: \\x1b"),
        (made(names(b"pypi.org"), extension(0xFE0D, b"hidden")), "Encrypted Client Hello"),
        (made(names(b"pypi.org"), after=b"\x01\x00\x00\x00"), "malformed"),
        (made(names(b"pypi.org"), kind=2), "not a TLS handshake"),
        (made(b"\x00\x00\x00\xff"), "malformed"),
        (record(b"\x01\x00\x00\x02\x03\x03"), "malformed"),
        (record(b"\x01\x00\x00\x00"), "malformed"),
        (record(b""), "not TLS"),
        (b"\x16\x03\x01\x40\x01", "not TLS"),
        (b"\x16\x02", "not TLS"),
        (b"GET / HTTP/1.1\r\nHost: pypi.org\r\n\r\n", "not TLS"),
        (b"SSH-2.0-x", "not TLS"),
        (b"\x80\x2e\x01\x03\x01", "not TLS"),
        (b"\x15\x03\x01\x00\x02\x01\x00", "not TLS"),
        (split(hello("pypi.org"), 1), "more than 16 records"),
        (
            record(b"\x01\x00\xff\xff" + bytes(16_000)) + record(bytes(1_000)),
            "longer than 16384 bytes",
        ),
    ],
)
def test_whoever_does_not_name_the_host_in_tls_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ConnectionBlocked, match=why):
        check_client_hello(data, PYPI)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_first_bytes_are_a_greeting_or_refused(data: bytes, at: int) -> None:
    good = made(names(b"pypi.org"))
    for tried in (data, record(data), good[:at] + data + good[at + len(data) :]):
        try:
            check_client_hello(tried, PYPI)
        except ConnectionBlocked:
            continue
