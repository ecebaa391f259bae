"""Cuts the output of a tool to the size that a model is shown;
the complete output is saved in a file.
"""

from pathlib import Path

from codeloop.kit.text.truncate import Keep, count_lines, cut_line, cut_text
from codeloop.schema.limits import TOOL_FILE, TOOL_OUTPUT_BYTES, TOOL_OUTPUT_LINES
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolResult
from codeloop.workspace.files.saved_outputs import save_output, shorten_output

# The note on what was left out, and the blank lines around it.
_NOTE_LINES = 3
# A note on the omitted lines takes less, besides its path.
_NOTE_BYTES = 200
# A tool that bounds its own output may add so much to it, such as the instructions of a folder.
_EXTRA_LINES = 400
_EXTRA_BYTES = 40 * 1024


def truncate_output(
    result: ToolResult,
    scratch: Path,
    keep: Keep = "head",
    *,
    lines: int = TOOL_OUTPUT_LINES.value,
    size: int = TOOL_OUTPUT_BYTES.value,
) -> ToolResult:
    """Return the result with an output of at most `lines` lines and `size` bytes,
    and with `metadata.truncated`.

    A result with `is_bounded` may have _EXTRA_LINES lines and _EXTRA_BYTES bytes more.
    The complete output (up to a cap) is saved in a new file in `scratch`; a note in the output and
    `metadata.outputPath` have its path, `metadata.lines` the number of its lines.
    `keep`: the end that stays.
    Never fails: if the file can't be written, the note says so.
    """
    raw = result.output.encode("utf-8", "replace")
    if result.is_bounded:
        lines, size = lines + _EXTRA_LINES, size + _EXTRA_BYTES
    if len(raw) <= size and count_lines(result.output) <= lines:
        metadata = {**result.metadata, "truncated": bool(result.metadata.get("truncated"))}
        return replace(result, output=raw.decode(), metadata=metadata)
    text = raw.decode()
    try:
        path, where = _save_complete(scratch, raw)
    except OSError as error:
        path, where = None, f"it could not be saved ({error.strerror})"
    note_bytes = _NOTE_BYTES + len(where.encode("utf-8", "replace"))
    shorter = "\n".join(map(cut_line, text.split("\n")))
    part = cut_text(shorter, max(1, lines - _NOTE_LINES), max(1, size - note_bytes), keep)
    count = "1 line" if part.omitted_lines == 1 else f"{part.omitted_lines} lines"
    what = (
        f"{count} ({part.omitted_bytes} bytes) of the output left out here"
        if part.is_cut
        else "long lines are cut"
    )
    note = f"[{what}; {where}]"
    kept = part.tail if part.is_cut and keep == "tail" else part.head
    output = f"{note}\n\n{kept}" if keep == "tail" else f"{kept.rstrip()}\n\n{note}"
    metadata = {"lines": count_lines(text), **result.metadata, "truncated": True}
    if path is not None:
        metadata["outputPath"] = str(path)
    return replace(result, output=output, metadata=metadata)


def _save_complete(scratch: Path, raw: bytes) -> tuple[Path, str]:
    """Save an output; return the path of the file, and the part of the note that names it."""
    path = save_output(scratch, raw[: TOOL_FILE.value])
    limit_note = f" (its first {TOOL_FILE.value} bytes)" if len(raw) > TOOL_FILE.value else ""
    return (
        path,
        f"the whole is in {shorten_output(path)}{limit_note}: grep it, or read it with offset and limit",
    )
