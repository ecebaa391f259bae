"""The characters of a page: what says so, in which order it counts."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.tool.web.page import decode_page


@pytest.mark.parametrize(
    ("data", "header", "text", "name"),
    [
        ("é€".encode(), "text/plain", "é€", "utf-8"),
        ("é€".encode("cp1252"), "text/plain", "é€", "cp1252"),
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é", "cp1252"),
        ("“q”".encode("cp1252"), "text/html; charset=iso-8859-1", "“q”", "cp1252"),
        ("żółć".encode("iso-8859-2"), "text/html; charset=iso-8859-2", "żółć", "iso8859-2"),
        ("привет".encode("koi8-r"), 'text/html; charset="KOI8-R"', "привет", "koi8-r"),
        ("привет".encode("cp1251"), "text/html;charset='windows-1251'", "привет", "cp1251"),
        ("日本".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本", "cp932"),
        ("日本".encode("euc-jp"), "text/html; charset=EUC-JP", "日本", "euc_jp"),
        ("中文".encode("gb18030"), "text/html; charset=gb2312", "中文", "gb18030"),
        ("한국".encode("euc-kr"), "text/html; charset=euc-kr", "한국", "cp949"),
        ("日本①".encode("cp932"), "text/html; charset=Windows-31J", "日本①", "cp932"),
        (
            "привет".encode("mac-cyrillic"),
            "text/html; charset=x-mac-cyrillic",
            "привет",
            "mac-cyrillic",
        ),
        ("שלום".encode("iso-8859-8"), "text/html; charset=iso-8859-8-i", "שלום", "iso8859-8"),
        ("é".encode("utf-16-le"), "text/plain; charset=utf-16", "é", "utf-16-le"),
        (codecs.BOM_UTF8 + "é".encode(), "text/html; charset=cp1251", "é", "utf-8"),
        (
            codecs.BOM_UTF16_LE + "é".encode("utf-16-le"),
            "text/html; charset=utf-8",
            "é",
            "utf-16-le",
        ),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "text/html", "é", "utf-16-be"),
        (codecs.BOM_UTF32_LE + "é".encode("utf-32-le"), "text/html", "é", "utf-32-le"),
        (
            '<meta charset="koi8-r">д'.encode("koi8-r"),
            "text/html",
            '<meta charset="koi8-r">д',
            "koi8-r",
        ),
        (
            "<meta charset=utf-8>д".encode(),
            "text/html; charset=utf-8",
            "<meta charset=utf-8>д",
            "utf-8",
        ),
        (
            "<meta charset=koi8-r>д".encode(),
            "text/html; charset=utf-8",
            "<meta charset=koi8-r>д",
            "utf-8",
        ),
        (
            '<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=windows-1251">д'.encode(
                "cp1251"
            ),
            "text/html",
            '<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=windows-1251">д',
            "cp1251",
        ),
        (
            '<?xml version="1.0" encoding="iso-8859-5"?>д'.encode("iso-8859-5"),
            "application/xml",
            '<?xml version="1.0" encoding="iso-8859-5"?>д',
            "iso8859-5",
        ),
        ("<meta charset=utf-16>é".encode(), "text/html", "<meta charset=utf-16>é", "utf-8"),
        ("é".encode(), "text/html; charset=nonsense", "é", "utf-8"),
    ],
)
def test_a_page_is_read_in_its_charset(data: bytes, header: str, text: str, name: str) -> None:
    assert decode_page(data, header) == (text, name)


@pytest.mark.parametrize(
    "label", ["hex", "zlib", "base64", "rot13", "utf-7", "unicode_escape", "punycode", "idna"]
)
def test_a_codec_that_is_no_charset_is_not_used(label: str) -> None:
    assert decode_page(b"+ADw-41\\u0041", f"text/html; charset={label}") == (
        "+ADw-41\\u0041",
        "utf-8",
    )


def test_a_cut_last_character_does_not_make_utf8_something_else() -> None:
    assert decode_page("aé€".encode()[:-1], is_cut=True) == ("aé", "utf-8")
    assert decode_page("aé€".encode()[:-1])[1] == "cp1252"


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "shift_jis", "euc-jp", "gb2312", "big5"])
def test_a_cut_last_character_is_left_out_in_a_charset_that_is_named(charset: str) -> None:
    data = "a一".encode("utf-16-le" if charset == "utf-16" else charset)[:-1]
    assert decode_page(data, f"text/html; charset={charset}", is_cut=True)[0] == "a"


def test_a_cut_last_character_is_left_out_after_a_byte_order_mark() -> None:
    assert decode_page(codecs.BOM_UTF8 + "aé".encode()[:-1], is_cut=True) == ("a", "utf-8")


@given(st.binary(max_size=200), st.text(max_size=30))
def test_any_bytes_under_any_header_become_text_that_can_be_sent(data: bytes, label: str) -> None:
    text, _ = decode_page(data, f"text/html; charset={label}")
    text.encode("utf-8")
