"""Converts what was fetched: a page to markdown or text, a PDF (`pdf.py`) to text,
a picture to an attachment.

Other bodies are refused.
"""

import asyncio
import codecs
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from codeloop.kit.child_process import Launch
from codeloop.kit.program import run_program
from codeloop.schema.installation import make_python_command
from codeloop.schema.limits import HTML_PAGE_MEMORY, HTML_PAGE_TIME, PDF_TIME, WEB_BYTES
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.pdf import read_pdf
from codeloop.workspace.files.image import FittedImage, ImageRefused, fit_image
from codeloop.workspace.files.media_type import detect_media_type

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


PageFormat = Literal["text", "markdown", "html"]

# Media types of bodies. An unspecific one says nothing, so the content decides.
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_APPLICATIONS = """
ecmascript graphql javascript json ndjson rtf sql toml typescript x-httpd-php x-javascript x-ndjson x-perl x-python x-sh
x-tex x-toml x-typescript x-www-form-urlencoded x-yaml xml xml-dtd yaml
"""
TEXT_TYPES = frozenset(f"application/{name}" for name in _APPLICATIONS.split())
UNSPECIFIC_TYPES = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/x-download"}
)
# CSS selectors of elements without text for a reader: drawings, embedded pictures and pages, menus.
DROPPED_SELECTORS = ["svg", 'img[src^="data:"]', "iframe", "nav", "template"]
_PAGE_PROGRAM = Path(__file__).with_name("page_program.py")
# The type of a body is detected from its beginning.
_SNIFF_BYTES = 1024
# Whether a body is text is decided by more of it.
_TEXT_CHECK_BYTES = 64 * 1024
_MAX_CONTROL_SHARE = 0.02
# Of a converted page.
_MAX_PAGE_BYTES = 16 * 1024 * 1024
# Control characters that no text has: all but tab, line feed, form feed,
# carriage return and escape.
_CONTROL_BYTES = bytes({*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class PageSource(Struct, frozen=True):
    """A fetched body. `url`: the URL that its links are relative to.
    `is_cut`: only its beginning was read.
    """

    url: str
    content_type: str
    data: bytes
    is_cut: bool = False

    @property
    def mime(self) -> str:
        """The media type without its parameters, in lower case."""
        return self.content_type.partition(";")[0].strip().lower()


class Page(Struct, frozen=True):
    """A converted page. `text`: for the model. `note`: names omitted parts.

    `encoding`: of a text; of a PDF or a picture its media type.
    `image`: the picture to attach, if the body was one.
    """

    text: str
    encoding: str
    note: str = ""
    image: FittedImage | None = None


async def convert_page(
    source: PageSource,
    page_format: PageFormat,
    environment: Mapping[str, str],
    seconds: float = HTML_PAGE_TIME.seconds,
) -> Page:
    """Convert a body to `page_format` within `seconds`.
    Raises ToolFailure for a body that can't be shown.
    """
    media_type = detect_media_type(source.data[:_SNIFF_BYTES])
    if media_type is not None:
        return await _convert_document(source, media_type, environment, seconds)
    if not is_text(source):
        size = f"{'more than ' if source.is_cut else ''}{len(source.data):,} bytes"
        raise ToolFailure(
            f"{source.url} is binary ({source.mime or 'no stated type'}, {size}) and can't be shown.",
            advice="If you need it, download it with a command.",
        )
    text, charset = decode_page(source.data, source.content_type, is_cut=source.is_cut)
    note = f"only the first {WEB_BYTES.value // 1024 // 1024} MB were read" if source.is_cut else ""
    if page_format != "html" and is_html(source):
        text, left_out = await _convert_html(text, source.url, page_format, environment, seconds)
        note = "; ".join(part for part in (note, left_out) if part)
    return Page(text, charset, note)


def is_html(source: PageSource) -> bool:
    """Return whether a text is HTML: by its type, or if that is unspecific, by its beginning."""
    if source.mime in HTML_TYPES:
        return True
    head = source.data[:_SNIFF_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return source.mime in UNSPECIFIC_TYPES and head.startswith((b"<!doctype html", b"<html"))


def is_text(source: PageSource) -> bool:
    """Return whether a body is text. Its type may be wrong, so its bytes are looked at, too."""
    mime = source.mime
    is_stated = (
        mime.startswith("text/") or mime in TEXT_TYPES or mime.endswith(("+json", "+xml", "+yaml"))
    )
    # In UTF-16 and UTF-32 most text has NUL bytes, so the bytes prove nothing.
    if is_stated and (
        "utf-16" in source.content_type.lower() or "utf-32" in source.content_type.lower()
    ):
        return True
    if source.data.startswith(_UTF16_MARKS) and len(source.data) % 2 == 0:
        return is_stated or mime in UNSPECIFIC_TYPES
    head = source.data[:_TEXT_CHECK_BYTES]
    control_bytes = len(head) - len(head.translate(None, _CONTROL_BYTES))
    if control_bytes == 0:
        return True
    # A type that says "text" is believed if fewer than 2 % of the bytes are control characters,
    # and none is NUL.
    return is_stated and b"\0" not in head and control_bytes / len(head) < _MAX_CONTROL_SHARE


async def extract_error_text(
    source: PageSource, environment: Mapping[str, str], seconds: float = HTML_PAGE_TIME.seconds
) -> str:
    """Return the text of an error page on one line, "" if it has none. Never fails."""
    if not source.data or detect_media_type(source.data[:_SNIFF_BYTES]) or not is_text(source):
        return ""
    text, _ = decode_page(source.data, source.content_type, is_cut=True)
    if is_html(source):
        try:
            text, _ = await _convert_html(text, source.url, "text", environment, seconds)
        except ToolFailure:
            return ""
    return " ".join(text.split())


async def _convert_document(
    source: PageSource, media_type: str, environment: Mapping[str, str], seconds: float
) -> Page:
    name = "PDF" if media_type == "application/pdf" else "picture"
    if source.is_cut:
        limit = WEB_BYTES.value // 1024 // 1024
        raise ToolFailure(
            f"{source.url} is a {name} of more than {limit} MB.",
            advice="Download it with a command instead.",
        )
    if media_type == "application/pdf":
        pdf = await read_pdf(source.data, environment, min(seconds, PDF_TIME.seconds))
        return Page(pdf.text, media_type, pdf.note)
    try:
        picture = await asyncio.to_thread(fit_image, source.data)
    except ImageRefused as error:
        raise ToolFailure(f"{source.url} can't be shown: {error}.") from None
    return Page(
        f"Image attached: {source.url} ({len(picture.data):,} bytes, {picture.note})",
        media_type,
        image=picture,
    )


class _PageProgramOutput(Struct):
    text: str = ""
    deep: bool = False
    error: str = ""


async def _convert_html(
    html: str, url: str, page_format: PageFormat, environment: Mapping[str, str], seconds: float
) -> tuple[str, str]:
    """Return HTML as markdown or text, and a note if a part could not be
    converted ("" if all could).
    """
    output_format = "plain" if page_format == "text" else "markdown"
    max_seconds = min(seconds, HTML_PAGE_TIME.seconds)
    # As `page_program.py` reads them. Its limit of processor time is a second one,
    # should it not be killed in time.
    words = (
        output_format,
        HTML_PAGE_TIME.value // 1000,
        HTML_PAGE_MEMORY.value,
        *DROPPED_SELECTORS,
    )
    launch = Launch(
        make_python_command(_PAGE_PROGRAM, *words),
        "/",
        environment,
        stdin=f"{url}\n{html}".encode("utf-8", "replace"),
        seconds=max_seconds,
        max_bytes=_MAX_PAGE_BYTES,
    )
    result = await run_program(launch)
    if not result.stdout.endswith(b"\n"):
        why = (
            f"that takes more than {max_seconds:g} s"
            if result.is_late
            else "that takes too much memory, or it is too long"
        )
        raise ToolFailure(
            f"The page can't be converted: {why}.", advice="Fetch it with the format html."
        )
    output = await asyncio.to_thread(msgspec.json.decode, result.stdout, type=_PageProgramOutput)
    if output.error:
        raise ToolFailure(
            f"The page can't be converted ({output.error}).",
            advice="Fetch it with the format html.",
        )
    note = (
        "parts that are nested too deeply are left out; the format html has them"
        if output.deep
        else ""
    )
    return output.text, note
