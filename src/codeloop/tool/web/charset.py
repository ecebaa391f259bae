"""Detects the character set of a page, and decodes the page."""

import codecs
import re

# UTF-32 comes before UTF-16, since its little-endian mark begins with that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Only these labels are looked up: Python has codecs that are not character sets,
# such as `zip` and `rot13`.
_KNOWN_LABEL = (
    r"utf-?8|utf-?(16|32)(-?[lb]e)?|(us-)?ascii|latin-?1|iso-?8859-\d+|iso-8859-8-i|(windows"
    r"|cp)-?\d+|windows-31j|x-cp\d+"
    r"|koi8-[rut]|tis-620|gb(k|_?2312|18030)|big5(-hkscs)?|euc-(jp|kr)|(x-)?(shift[_-]?jis|sjis)"
    r"|iso-2022-(jp|kr)|ks_c_5601-1987"
    r"|(x-)?mac-?cyrillic|macintosh|mac-?roman|hz-gb-2312"
)
# The codec by which browsers decode a label, where it differs: pages that declare Latin-1
# use Windows-1252, and so on.
_CODEC_BY_LABEL = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "iso-8859-8-i": "iso-8859-8",
    "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gb_2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "windows-31j": "cp932",
    "x-sjis": "cp932",
    "sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "big5": "big5hkscs",
    "macintosh": "mac-roman",
    "utf-16": "utf-16-le",
    "utf16": "utf-16-le",
    "utf-32": "utf-32-le",
    "hz-gb-2312": "hz",
}
_META_CHARSET = rb"""(?i)<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)"""
_XML_ENCODING = rb"""(?i)^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)"""
_HEADER_CHARSET = r"""(?i)charset\s*=\s*["']?\s*([\w.:-]+)"""
# A declaration is only searched in the beginning of a page.
_DECLARATION_BYTES = 4096


def decode_page(data: bytes, content_type: str = "", *, is_cut: bool = False) -> tuple[str, str]:
    """Return the text of a page and the name of its encoding. Never fails.

    The encoding is that of a byte-order mark, of `charset` in the header, of a declaration at the
    beginning of the page, UTF-8 if the bytes are valid UTF-8, or Windows-1252, in this order.
    `is_cut`: the last character may be incomplete.
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decode(data[len(mark) :], name, is_cut=is_cut), name
    named = re.search(_HEADER_CHARSET, content_type)
    codec = _find_codec(named.group(1)) if named else None
    codec = codec or _find_declared_codec(data[:_DECLARATION_BYTES])
    if codec is not None:
        return _decode(data, codec, is_cut=is_cut), codec
    try:
        return _decode(data, "utf-8", is_cut=is_cut, errors="strict"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), "cp1252"


def _decode(data: bytes, codec: str, *, is_cut: bool, errors: str = "replace") -> str:
    return codecs.getincrementaldecoder(codec)(errors).decode(data, final=not is_cut)


def _find_declared_codec(head: bytes) -> str | None:
    match = re.search(_XML_ENCODING, head) or re.search(_META_CHARSET, head)
    if match is None:
        return None
    codec = _find_codec(match.group(1).decode("ascii", "replace"))
    # A declaration that is readable as ASCII can't be UTF-16.
    return "utf-8" if codec is not None and codec.startswith(("utf-16", "utf-32")) else codec


def _find_codec(label: str) -> str | None:
    """Return the name of Python's codec for a label; None: the label is unknown."""
    name = label.strip().lower()
    if not re.fullmatch(_KNOWN_LABEL, name):
        return None
    name = _CODEC_BY_LABEL.get(name, name.replace("windows-", "cp").removeprefix("x-"))
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None
