"""Commands: what was run, what it printed, how it ended."""

from rich.segment import Segment

from codeloop.client.numbers import duration
from codeloop.kit.terminal_text import inert
from codeloop.tui.render.ansi import AnsiText
from codeloop.tui.render.calls.call import FOLDED, MOST, CallBody, ToolCall
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.layout import expand_tabs, fold

_NOTES = "\n\n<shell_metadata>\n"


def bash(call: ToolCall) -> CallBody:
    """Return the command, the end of its output, and its exit code if that is not 0."""
    output, notes = _output(call)
    code, job = call.metadata.get("exit"), call.metadata.get("id")
    rows = _command(call) if call.is_open else []
    rows += output_rows(call, output)
    for note in notes:
        rows += call.plain(note, "warning")
    if isinstance(job, str) and job:
        return CallBody(call.text("command"), [f"in the background as {job}"], rows)
    took = call.metadata.get("duration")
    shown = [f"exit {code}"] if code else []
    if call.status == "running":
        shown.append(duration(call.ms or 0))
    elif isinstance(took, int) and took >= 500:  # without the wait for a permission
        shown.append(duration(took))
    return CallBody(call.text("command"), shown, rows, is_failed=bool(code))


def bash_output(call: ToolCall) -> CallBody:
    """Return what a background command has printed since it was asked last."""
    output, _ = _output(call)
    status, code = str(call.metadata.get("status", "")), call.metadata.get("exit")
    how = f"{status} {code}" if status == "exited" and code else status
    subject = call.title or call.text("id")
    return CallBody(subject, [how] if how else [], output_rows(call, output), is_failed=bool(code))


def bash_kill(call: ToolCall) -> CallBody:
    """Return which background command was ended."""
    return CallBody(call.title or call.text("id"), ["ended"] if call.status == "done" else [])


def output_rows(call: ToolCall, output: str) -> list[Row]:
    """Return the end of an output with its colours; all of it when the call is open."""
    text = output.strip("\n").removesuffix("\r")
    if not text.strip():
        return []
    lines = text.split("\n")
    whole = call.metadata.get("lines")
    before = max(whole - len(lines), 0) if isinstance(whole, int) and call.metadata.get("truncated") else 0
    kept = lines[-(MOST if call.is_open else FOLDED + 1) :]
    reader = AnsiText(call.canvas.styles, "text_muted")
    rows = [row for line in kept for row in fold(reader.line(line), call.room)]
    return call.folded(rows, end=True, above=before + len(lines) - len(kept))


def _output(call: ToolCall) -> tuple[str, list[str]]:
    """Return what was printed, and what the program itself has to say of it, without what the heading says."""
    printed = call.metadata.get("output")
    if call.status != "done":
        return (printed if isinstance(printed, str) else "").partition(_NOTES)[0], []
    text, *after = call.output.rsplit(_NOTES, 1)
    if text == "(no output)" or (call.metadata.get("id") and not printed):
        text = ""
    lines = "".join(after).splitlines()[:-1]
    return text, [line for line in lines if not line.startswith("exit code ")]


def _command(call: ToolCall) -> list[Row]:
    """Return the whole command, where the heading can't hold it."""
    command = call.text("command").strip()
    if "\n" not in command and len(command) <= call.room // 2:
        return []
    style = call.style("markdown_code")
    lines = inert(command).split("\n")
    return [row for line in lines for row in fold([Segment(expand_tabs(line), style)], call.room)]
