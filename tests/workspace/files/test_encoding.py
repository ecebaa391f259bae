"""Every file that is decoded encodes to the same bytes; one that can't is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.workspace.edit.edit import Edit, apply_edit
from codeloop.workspace.files.encoding import (
    Encoding,
    NotText,
    decode_text,
    encode_text,
    find_main_line_end,
    is_binary,
)

GBK = "第一行是你好世界。\n第二行这是一个测试文件。\nold\n第三行结束。\n"
LATIN = "première ligne: déjà vu\nold\nça va très bien, où êtes-vous\n"
FILES = {
    "utf-8": "grüße\nold\nende".encode(),
    "utf-8 with a mark": b"\xef\xbb\xbf" + "grüße\r\nold\r\n".encode(),
    "utf-16 le": b"\xff\xfe" + "grüße 😀\r\nold\r\nende".encode("utf-16-le"),
    "utf-16 be": b"\xfe\xff" + "grüße 😀\nold\nende\n".encode("utf-16-be"),
    "utf-16 le without a mark": "just text\nold\nin two bytes each\n".encode("utf-16-le"),
    "utf-32 le": b"\xff\xfe\x00\x00" + "grüße\nold\n".encode("utf-32-le"),
    "latin-1": LATIN.encode("latin-1"),
    "windows-1252": "price: 5 €\nold\n“quoted”\n".encode("cp1252"),
    "gbk": GBK.encode("gbk"),
    "mixed line ends": b"a\r\nb\nold\r\nc\n\r\nd\r",
    "no final newline": b"a\nold",
    "stray bytes in utf-8": "grüße und mehr, auch größere\n".encode()
    + b"\xff\xfe broken \x80\nold\nende",
    "one stray byte": b"abc \xff\nold\nend\n",
    "form feeds and other separators": "a\x0cb\u2028c\x85d\x1ce\nold\n".encode(),
    "a lone carriage return": b"a\rb\nold\n",
}


@pytest.mark.parametrize("name", FILES)
def test_an_edit_changes_only_the_bytes_of_what_it_replaces(name: str) -> None:
    data = FILES[name]
    text = decode_text(data)
    edited = encode_text(apply_edit(text.content, Edit("old", "new")).content, text.encoding)
    codec = text.encoding.codec
    assert edited == data.replace("old".encode(codec), "new".encode(codec))
    assert edited != data


@pytest.mark.parametrize("name", FILES)
def test_bytes_come_back(name: str) -> None:
    text = decode_text(FILES[name])
    assert encode_text(text.content, text.encoding) == FILES[name]


@given(st.binary(max_size=200))
def test_any_bytes_come_back_or_are_refused(data: bytes) -> None:
    try:
        text = decode_text(data)
    except NotText:
        return
    assert encode_text(text.content, text.encoding) == data


def test_chinese_and_latin_text_are_told_apart() -> None:
    assert decode_text(GBK.encode("gbk")).content == GBK
    assert decode_text(LATIN.encode("latin-1")).content == LATIN


def test_characters_of_the_files_encoding_can_be_written() -> None:
    text = decode_text(LATIN.encode("latin-1"))
    edited = apply_edit(text.content, Edit("old", "naïve")).content
    assert encode_text(edited, text.encoding) == LATIN.replace("old", "naïve").encode("latin-1")


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    text = decode_text(LATIN.encode("latin-1"))
    with pytest.raises(NotText, match=r"U\+4E2D"):
        encode_text(apply_edit(text.content, Edit("old", "中")).content, text.encoding)


@pytest.mark.parametrize(
    "data",
    [b"a\0b", b"\x7fELF\0\0\0", b"\xff\xfea\0b", b"\xff\xfe\x00\xd8a\x00", b"\xff\xfe\x00\x00abc"],
)
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotText):
        decode_text(data)


def test_binary_samples_are_told_from_text() -> None:
    assert is_binary(b"\x7fELF\x02\x01\x01\0\0\0")
    assert is_binary(bytes(range(1, 32)) * 4)
    assert not is_binary(b"")
    assert not is_binary("plain\ttext\r\n\x1b[0m grüße".encode())
    assert not is_binary("text in two bytes each".encode("utf-16-le"))
    assert not is_binary(LATIN.encode("latin-1"))


def test_the_main_line_end_is_that_of_most_lines() -> None:
    assert find_main_line_end("a\r\nb\r\nc\n") == "\r\n"
    assert find_main_line_end("a\nb\r\nc\n") == "\n"
    assert find_main_line_end("a") == "\n"


def test_utf8_is_never_called_lax_without_need() -> None:
    assert decode_text("grüße".encode()).encoding == Encoding()
