"""Converts a fetched page to markdown or text, a PDF to text, and a picture to an attachment; refuses other bodies."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from codeloop.schema.limits import (
    HTML_PAGE_MEMORY,
    HTML_PAGE_TIME,
    PDF_MEMORY,
    PDF_PAGES,
    PDF_TEXT,
    PDF_TIME,
    WEB_BYTES,
)
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.charset import decode_page
from codeloop.workspace.files.image import FittedImage, ImageRefused, fit_image
from codeloop.workspace.files.media_type import detect_media_type
from codeloop.workspace.process.bounded_program import run_bounded_program

PageFormat = Literal["text", "markdown", "html"]

# Media types of bodies. An unspecific one says nothing, so the content decides.
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_APPLICATIONS = """
ecmascript graphql javascript json ndjson rtf sql toml typescript x-httpd-php x-javascript x-ndjson x-perl x-python x-sh
x-tex x-toml x-typescript x-www-form-urlencoded x-yaml xml xml-dtd yaml
"""
TEXT_TYPES = frozenset(f"application/{name}" for name in _APPLICATIONS.split())
UNSPECIFIC_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})
# CSS selectors of elements without text for a reader: drawings, embedded pictures and pages, menus.
DROPPED_SELECTORS = ["svg", 'img[src^="data:"]', "iframe", "nav", "template"]
_PAGE_PROGRAM = Path(__file__).with_name("page_program.py")
_PDF_PROGRAM = Path(__file__).with_name("pdf_program.py")
# Generous: in JSON a character outside ASCII takes six or twelve bytes.
_MAX_PDF_OUTPUT_BYTES = 4 * PDF_TEXT.value * 6
# The type of a body is detected from its beginning.
_SNIFF_BYTES = 1024
# Of a converted page.
_MAX_PAGE_BYTES = 16 * 1024 * 1024
# Control characters that no text has: all but tab, line feed, form feed, carriage return and escape.
_CONTROL_BYTES = bytes({*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class PageSource(Struct, frozen=True):
    """A fetched body. `url`: the URL that its links are relative to. `is_cut`: only its beginning was read."""

    url: str
    content_type: str
    data: bytes
    is_cut: bool = False

    @property
    def mime(self) -> str:
        """The media type without its parameters, in lower case."""
        return self.content_type.partition(";")[0].strip().lower()


class Page(Struct, frozen=True):
    """A converted page. `text`: for the model. `kind`: its encoding or media type. `note`: names omitted parts.

    `image`: the picture to attach, if the body was one.
    """

    text: str
    kind: str
    note: str = ""
    image: FittedImage | None = None


async def convert_page(
    source: PageSource, form: PageFormat, environment: Mapping[str, str], seconds: float = HTML_PAGE_TIME.seconds
) -> Page:
    """Convert a body to `form` within `seconds`. Raises ToolFailure for a body that can't be shown."""
    kind = detect_media_type(source.data[:_SNIFF_BYTES])
    if kind is not None:
        return await _convert_document(source, kind, environment, seconds)
    if not is_text(source):
        size = f"{'more than ' if source.is_cut else ''}{len(source.data):,} bytes"
        raise ToolFailure(
            f"{source.url} is binary ({source.mime or 'no stated type'}, {size}) and can't be shown.",
            advice="If you need it, download it with a command.",
        )
    text, charset = decode_page(source.data, source.content_type, is_cut=source.is_cut)
    note = f"only the first {WEB_BYTES.value // 1024 // 1024} MB were read" if source.is_cut else ""
    if form != "html" and is_html(source):
        text, left_out = await _convert_html(text, source.url, form, environment, seconds)
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
    stated = mime.startswith("text/") or mime in TEXT_TYPES or mime.endswith(("+json", "+xml", "+yaml"))
    # In UTF-16 and UTF-32 most text has NUL bytes, so the bytes prove nothing.
    if stated and ("utf-16" in source.content_type.lower() or "utf-32" in source.content_type.lower()):
        return True
    if source.data.startswith(_UTF16_MARKS) and len(source.data) % 2 == 0:
        return stated or mime in UNSPECIFIC_TYPES
    head = source.data[: 64 * _SNIFF_BYTES]
    strange = len(head) - len(head.translate(None, _CONTROL_BYTES))
    # A type that says "text" is believed if fewer than 2 % of the bytes are control characters, and none is NUL.
    return strange == 0 or (stated and b"\0" not in head and strange * 50 < len(head))


async def extract_text(
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


async def _convert_document(source: PageSource, kind: str, environment: Mapping[str, str], seconds: float) -> Page:
    what = "PDF" if kind == "application/pdf" else "picture"
    if source.is_cut:
        limit = WEB_BYTES.value // 1024 // 1024
        raise ToolFailure(
            f"{source.url} is a {what} of more than {limit} MB.", advice="Download it with a command instead."
        )
    if kind == "application/pdf":
        pdf = await read_pdf(source.data, environment, min(seconds, PDF_TIME.seconds))
        return Page(pdf.text, kind, pdf.note)
    try:
        picture = await asyncio.to_thread(fit_image, source.data)
    except ImageRefused as error:
        raise ToolFailure(f"{source.url} can't be shown: {error}.") from None
    return Page(f"Image attached: {source.url} ({len(picture.data):,} bytes, {picture.note})", kind, image=picture)


class _PageProgramOutput(Struct):
    text: str = ""
    deep: bool = False
    error: str = ""


async def _convert_html(
    html: str, url: str, form: PageFormat, environment: Mapping[str, str], seconds: float
) -> tuple[str, str]:
    """Return HTML as markdown or text, and a note if a part could not be converted ("" if all could)."""
    kind = "plain" if form == "text" else "markdown"
    limits = (HTML_PAGE_TIME.value // 1000, HTML_PAGE_MEMORY.value)
    data = f"{url}\n{html}".encode("utf-8", "replace")
    most = min(seconds, HTML_PAGE_TIME.seconds)
    done = await run_bounded_program(
        _PAGE_PROGRAM, (kind, *limits, *DROPPED_SELECTORS), data, environment, most, _MAX_PAGE_BYTES
    )
    if not done.lines:
        why = f"that takes more than {most:g} s" if done.is_late else "that takes too much memory, or it is too long"
        raise ToolFailure(f"The page can't be converted: {why}.", advice="Fetch it with the format html.")
    said = await asyncio.to_thread(msgspec.json.decode, done.lines[0], type=_PageProgramOutput)
    if said.error:
        raise ToolFailure(f"The page can't be converted ({said.error}).", advice="Fetch it with the format html.")
    note = "parts that are nested too deeply are left out; the format html has them" if said.deep else ""
    return said.text, note


class _PdfProgramLine(Struct):
    pages: int = 0
    error: str = ""
    text: str | None = None


class Pdf(Struct, frozen=True):
    """The text of a PDF, and the number of its pages. `note`: says how many pages were read, if not all were."""

    text: str
    pages: int
    note: str = ""


async def read_pdf(data: bytes, environment: Mapping[str, str], seconds: float = PDF_TIME.seconds) -> Pdf:
    """Return the text of a PDF. Raises ToolFailure if it is encrypted, broken, or has images only."""
    limits = [limit.value for limit in (PDF_PAGES, PDF_TEXT, PDF_MEMORY)]
    done = await run_bounded_program(_PDF_PROGRAM, limits, data, environment, seconds, _MAX_PDF_OUTPUT_BYTES)
    lines = list[_PdfProgramLine]()
    # The process may be killed in the middle of a line; the pages before it count.
    with suppress(msgspec.DecodeError):
        for line in done.lines:
            lines.append(msgspec.json.decode(line, type=_PdfProgramLine))
    return _make_pdf(lines, is_late=done.is_late, failed=done.failed)


def _make_pdf(lines: Sequence[_PdfProgramLine], *, is_late: bool, failed: bool) -> Pdf:
    if lines and lines[0].error:
        raise ToolFailure(
            "The PDF is encrypted with a password and can't be read.", advice="Ask the user for its content."
        )
    texts = [line.text.strip() for line in lines if line.text is not None]
    if not lines or (failed and not texts):
        why = f"it took longer than {PDF_TIME.value // 1000} s" if is_late else "it is broken, or too complex"
        raise ToolFailure(f"The PDF can't be read: {why}.")
    if not any(texts):
        raise ToolFailure(f"The PDF has {lines[0].pages} pages without any text: probably scanned images.")
    text = "\n\n".join(f"[Page {number}]\n{text}" for number, text in enumerate(texts, 1))
    total = lines[0].pages
    note = f"{len(texts)} of {total} pages were read" if len(texts) < total else ""
    note += " before the time ran out" if note and is_late else ""
    return Pdf(text, total, note)
