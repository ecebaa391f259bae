"""URLs and addresses: every spelling of a place that is not public is known for what it is."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.net.address import classify_non_public
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.url import parse_url, resolve_redirect

SPELLINGS = [
    ("http://127.0.0.1/", "127.0.0.1"),
    ("http://127.1/", "127.0.0.1"),
    ("http://127.0.1/", "127.0.0.1"),
    ("http://2130706433/", "127.0.0.1"),
    ("http://0x7f000001/", "127.0.0.1"),
    ("http://0x7f.1/", "127.0.0.1"),
    ("http://0X7F.0x0.0x0.0x1/", "127.0.0.1"),
    ("http://0177.0.0.1/", "127.0.0.1"),
    ("http://017700000001/", "127.0.0.1"),
    ("http://0177.0x0.1/", "127.0.0.1"),
    ("http://127.0.0.1./", "127.0.0.1"),
    ("http://0/", "0.0.0.0"),
    ("http://0x/", "0.0.0.0"),
    ("http://10.1/", "10.0.0.1"),
    ("http://172.16.257/", "172.16.1.1"),
    ("http://0xa9fea9fe/", "169.254.169.254"),
    ("http://169.254.43518/", "169.254.169.254"),
    ("http://0251.0376.0251.0376/", "169.254.169.254"),
    ("http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/", "127.0.0.1"),
    ("http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/", "127.0.0.1"),
    ("http://127\u30020\u30020\u30021/", "127.0.0.1"),
    ("http://127\uff0e0\uff0e0\uff0e1/", "127.0.0.1"),
    ("http://[::1]/", "::1"),
    ("http://[0:0:0:0:0:0:0:1]/", "::1"),
    ("http://[0000::0001]:80/", "::1"),
    ("http://[::]/", "::"),
    ("http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"),
    ("http://[::ffff:7f00:1]/", "::ffff:7f00:1"),
    ("http://[::ffff:a9fe:a9fe]/", "::ffff:a9fe:a9fe"),
    ("http://[::127.0.0.1]/", "::7f00:1"),
    ("http://[64:ff9b::127.0.0.1]/", "64:ff9b::7f00:1"),
    ("http://[64:ff9b:1::a00:1]/", "64:ff9b:1::a00:1"),
    ("http://[2002:7f00:1::]/", "2002:7f00:1::"),
    ("http://[2001:0:7f00:1::]/", "2001:0:7f00:1::"),
    ("http://[fd00:ec2::254]/", "fd00:ec2::254"),
    ("http://[fe80::1]/", "fe80::1"),
    ("http://[fec0::1]/", "fec0::1"),
    ("http://[ff02::1]/", "ff02::1"),
]
REFUSED = [
    *(
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "ftp://example.com/",
        "gopher://127.0.0.1:70/",
        "data:text/html,x",
    ),
    *(
        "javascript:alert(1)",
        "example.com",
        "//example.com/",
        "",
        "http://",
        "http:///path",
        "https://:443/",
    ),
    *(
        "http://user@127.0.0.1/",
        "http://example.com@127.0.0.1/",
        "http://a:b@example.com/",
        "http://@example.com/",
    ),
    *(
        "http://127.0.0.1\\@example.com/",
        "http://example.com\\.evil/",
        "http://exa\tmple.com/",
        "http://a\nb/",
    ),
    *(
        "http://127%2e0.0.1/",
        "http://exa mple.com/",
        "http://a..b/",
        "http://127.0.0.1../",
        "http://256.1.1.1/",
    ),
    *(
        "http://1.2.3.4.5/",
        "http://0x100000000/",
        "http://1.2.3.999/",
        "http://09.1.1.1/",
        "http://[fe80::1%25eth0]/",
    ),
    *(
        "http://[::1/",
        "http://[::1]evil/",
        "http://[v1.x]/",
        "http://a:99999/",
        "http://a:0/",
        "http://a:b/",
    ),
    *(
        "http://x\u202ey/",
        "http://a\u2100b/",
        f"http://{'a' * 64}.com/",
        f"http://example.com/{'a' * 9000}",
    ),
]


@pytest.mark.parametrize(("url", "address"), SPELLINGS)
def test_an_address_is_known_in_every_spelling(url: str, address: str) -> None:
    place = parse_url(url)
    assert (place.host, place.is_literal) == (address, True)
    assert classify_non_public(place.host) is not None or place.is_disguised


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_no_plain_url_is_refused_with_a_reason(url: str) -> None:
    with pytest.raises(ToolFailure, match=r"can't be fetched|longer than"):
        parse_url(url)


def test_a_refusal_never_shows_the_password() -> None:
    with pytest.raises(ToolFailure) as caught:
        parse_url("https://me:hunter2@example.com/")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://0x08080808/", "http://134744072/", "http://8.8.2056/", "http://8.8.8.8./"]
)
def test_a_public_address_in_a_strange_spelling_is_disguised(url: str) -> None:
    assert parse_url(url).host == "8.8.8.8"
    assert parse_url(url).is_disguised
    assert not parse_url("http://8.8.8.8/").is_disguised


@given(st.integers(0, 2**32 - 1), st.sampled_from(["{}", "0x{:x}", "0{:o}"]))
def test_one_number_is_the_address_it_stands_for(value: int, form: str) -> None:
    assert parse_url(f"http://{form.format(value)}:8080/").host == str(IPv4Address(value))


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"http://[{text}]/", f"https://example.com/{text}"):
        try:
            place = parse_url(url)
        except ToolFailure:
            continue
        assert place.url.isascii()
        assert parse_url(place.url).host == place.host


@pytest.mark.parametrize(
    ("url", "usual"),
    [
        ("HTTPS://Example.COM:443/A?b=c#d", "https://example.com/A?b=c"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:8080/x", "http://example.com:8080/x"),
        ("https://example.com./x", "https://example.com/x"),
        (
            "https://bücher.example/ä ö?q=ü",
            "https://xn--bcher-kva.example/%C3%A4%20%C3%B6?q=%C3%BC",
        ),
        ("https://example.com/a%20b", "https://example.com/a%20b"),
        ("http://[2606:4700:0::1111]:81/", "http://[2606:4700::1111]:81/"),
        ("  https://example.com/  ", "https://example.com/"),
    ],
)
def test_a_url_has_one_usual_spelling(url: str, usual: str) -> None:
    assert parse_url(url).url == usual


def test_a_redirect_is_read_relative_to_its_page_and_checked_the_same_way() -> None:
    page = parse_url("https://example.com/a/b?c")
    assert resolve_redirect(page, "../d").url == "https://example.com/d"
    assert resolve_redirect(page, "//other.example/x").url == "https://other.example/x"
    for place in ("file:///etc/passwd", "http://u:p@h/", "http://[::1", "ftp://x/"):
        with pytest.raises(ToolFailure):
            resolve_redirect(page, place)
