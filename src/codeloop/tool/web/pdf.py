"""Reads the text of a PDF in a process of its own (`pdf_program.py`),
and says how much of it was read.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.child_process import Launch
from codeloop.kit.program import run_program
from codeloop.schema.installation import make_python_command
from codeloop.schema.limits import PDF_MEMORY, PDF_PAGES, PDF_TEXT, PDF_TIME
from codeloop.tool.tool import ToolFailure

_PDF_PROGRAM = Path(__file__).with_name("pdf_program.py")
# Generous: in JSON a character outside ASCII takes six or twelve bytes.
_MAX_PDF_OUTPUT_BYTES = 4 * PDF_TEXT.value * 6


class _PdfProgramLine(Struct):
    pages: int = 0
    error: str = ""
    text: str | None = None


class Pdf(Struct, frozen=True):
    """The text of a PDF, and the number of its pages.
    `note`: says how many pages were read, if not all were.
    """

    text: str
    pages: int
    note: str = ""


async def read_pdf(
    data: bytes, environment: Mapping[str, str], seconds: float = PDF_TIME.seconds
) -> Pdf:
    """Return the text of a PDF. Raises ToolFailure if it is encrypted, broken,
    or has images only.
    """
    limits = [limit.value for limit in (PDF_PAGES, PDF_TEXT, PDF_MEMORY)]
    command = make_python_command(_PDF_PROGRAM, *limits)
    launch = Launch(
        command, "/", environment, stdin=data, seconds=seconds, max_bytes=_MAX_PDF_OUTPUT_BYTES
    )
    result = await run_program(launch)
    lines = list[_PdfProgramLine]()
    # The process may be killed in the middle of a line; the pages before it count.
    with suppress(msgspec.DecodeError):
        for line in result.stdout.splitlines():
            lines.append(msgspec.json.decode(line, type=_PdfProgramLine))
    return _make_pdf(
        lines, round(seconds, 1) if result.is_late else None, has_failed=result.code != 0
    )


def _make_pdf(
    lines: Sequence[_PdfProgramLine], late_seconds: float | None, *, has_failed: bool
) -> Pdf:
    """Make the text of a PDF from the lines of the program.
    Raises ToolFailure if they have no text.

    `late_seconds`: the deadline at which the program was ended; None: it ended by itself.
    """
    if lines and lines[0].error:
        raise ToolFailure(
            "The PDF is encrypted with a password and can't be read.",
            advice="Ask the user for its content.",
        )
    texts = [line.text.strip() for line in lines if line.text is not None]
    if not lines or (has_failed and not texts):
        is_broken = late_seconds is None
        why = (
            "it is broken, or too complex"
            if is_broken
            else f"it took longer than {late_seconds:g} s"
        )
        raise ToolFailure(f"The PDF can't be read: {why}.")
    if not any(texts):
        raise ToolFailure(
            f"The PDF has {lines[0].pages} pages without any text: probably scanned images."
        )
    text = "\n\n".join(f"[Page {number}]\n{text}" for number, text in enumerate(texts, 1))
    total = lines[0].pages
    note = f"{len(texts)} of {total} pages were read" if len(texts) < total else ""
    note += " before the time ran out" if note and late_seconds is not None else ""
    return Pdf(text, total, note)
