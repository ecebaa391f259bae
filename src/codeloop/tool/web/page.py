"""Converts what was fetched: a page to markdown or text, a PDF (`pdf.py`) to text,
a picture to an attachment.

Other bodies are refused.
"""

import asyncio
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
from codeloop.tool.web.charset import decode_page
from codeloop.tool.web.pdf import read_pdf
from codeloop.workspace.files.image import FittedImage, ImageRefused, fit_image
from codeloop.workspace.files.media_type import detect_media_type

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
