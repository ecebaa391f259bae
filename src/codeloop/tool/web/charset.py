"""Detects and decodes the character set of a page. Pure."""

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KNOWN = re.compile(
    r"utf-?8|utf-?(16|32)(-?[lb]e)?|(us-)?ascii|latin-?1|iso-?8859-\d+|(windows|cp)-?\d+|x-cp\d+|koi8-[rut]|tis-620"
    r"|gb(k|_?2312|18030)|big5(-hkscs)?|euc-(jp|kr)|(x-)?(shift[_-]?jis|sjis)|iso-2022-(jp|kr)|ks_c_5601-1987"
    r"|mac(intosh|-?cyrillic|-?roman)|hz-gb-2312"
)
_READ_AS = {
    # Pages that declare the first use the second, and browsers decode them so.
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gb_2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
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
_META = re.compile(rb"""<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML = re.compile(rb"""^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)""", re.IGNORECASE)
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_DECLARATION_BYTES = 4096
"""The beginning of a page in which a declared charset is searched."""


def decode(data: bytes, content_type: str = "", *, is_cut: bool = False) -> tuple[str, str]:
    """Return the text and the name of its encoding.

    In this order: a byte-order mark, `charset` in the header, a declaration at the document's beginning, UTF-8 if the
    bytes are valid UTF-8, Windows-1252. `is_cut`: the last character may be incomplete. Never fails.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace"), name
    named = _HEADER.search(content_type)
    label = _codec(named.group(1)) if named else None
    label = label or _find_declared(data[:_DECLARATION_BYTES])
    if label is not None:
        return data.decode(label, "replace"), label
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=not is_cut), "utf-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), "cp1252"


def _find_declared(head: bytes) -> str | None:
    match = _XML.search(head) or _META.search(head)
    if match is None:
        return None
    label = _codec(match.group(1).decode("ascii", "replace"))
    # A declaration that is readable as ASCII can't be UTF-16.
    return "utf-8" if label is not None and label.startswith(("utf-16", "utf-32")) else label


def _codec(label: str) -> str | None:
    """Return Python's codec for a label; None for unknown ones and for codecs that are no character sets."""
    name = label.strip().lower()
    if not _KNOWN.fullmatch(name):
        return None
    name = _READ_AS.get(name, name.replace("windows-", "cp").removeprefix("x-"))
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None
