"""Extracts the text of a PDF, in a process that may be killed at any time."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.schema.limits import PDF_MEMORY, PDF_PAGES, PDF_TEXT, PDF_TIME
from codeloop.tool.tool import ToolFailure
from codeloop.workspace.process.bounded_program import run_bounded

_PROGRAM = Path(__file__).with_name("pdf_program.py")
_MAX_OUTPUT_BYTES = 4 * PDF_TEXT.value * 6


class _ProgramOutput(msgspec.Struct):
    pages: int = 0
    error: str = ""
    text: str | None = None


class Pdf(Struct, frozen=True):
    """The `text` of a PDF; `pages`: how many it has; `note`: how many were read, empty when all were."""

    text: str
    pages: int
    note: str = ""


async def read_pdf(data: bytes, environment: Mapping[str, str], seconds: float = PDF_TIME.seconds) -> Pdf:
    """Return the text of a PDF. Raises ToolFailure when it is encrypted, broken or only images."""
    limits = [limit.value for limit in (PDF_PAGES, PDF_TEXT, PDF_MEMORY)]
    done = await run_bounded(_PROGRAM, limits, data, environment, seconds, _MAX_OUTPUT_BYTES)
    lines = list[_ProgramOutput]()
    with suppress(msgspec.DecodeError):  # a half-written line ends the reading
        for line in done.lines:
            lines.append(msgspec.json.decode(line, type=_ProgramOutput))
    return _pdf(lines, is_late=done.is_late, failed=done.failed)


def _pdf(lines: Sequence[_ProgramOutput], *, is_late: bool, failed: bool) -> Pdf:
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
