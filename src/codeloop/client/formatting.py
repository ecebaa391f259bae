"""Formats durations, counts, costs, times, calls, exit codes and tables,
the same way in every user interface.
"""

import signal
import time
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.message import Tokens
from codeloop.schema.turn_facts import TurnFacts

TextStyle = Literal["bold", "dim", "italic", "underline", "red", "green", "yellow", "cyan"]
"""How a text is emphasised or coloured in a terminal."""
_MAX_JOB_CHARS = 70
# The arguments that tell most about a tool call, the most telling first.
_SUBJECT_ARGUMENTS = (
    "command",
    "filePath",
    "path",
    "pattern",
    "url",
    "query",
    "description",
    "name",
)
# Files that can't be undone, of those that a sentence names.
_MAX_UNRECORDED = 5


def format_duration(ms: float) -> str:
    """Format a duration in milliseconds: 12 ms, 1.4 s, 3 min 5 s."""
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000:.0f} min {ms % 60_000 / 1000:.0f} s"


def compute_elapsed_ms(start: int, end: int) -> int:
    """Return the milliseconds between two times (ms since the epoch);
    0 if one is unknown, which is stored as 0.
    """
    return max(end - start, 0) if start > 0 and end > 0 else 0


def format_count(number: int) -> str:
    """Format a count: 950, 12.3k, 128k, 1.2M."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.0f}k" if number >= 100_000 else f"{number / 1_000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def format_cost(cost: float, tokens: Tokens | None = None) -> str:
    """Format a cost in dollars: four decimals below a dollar, else two.
    `tokens`: if estimated, the cost gets a `~`.
    """
    amount = f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"
    return _get_estimate_mark(tokens) + amount


def describe_spending(tokens: Tokens, cost: float) -> tuple[str, ...]:
    """Format tokens and their cost as two texts: `12.3k in (2.0k cached), 500 out` and `$0.0100`.

    Empty if nothing was counted, as in a turn that was refused or killed before a
    service reported its use.
    """
    if not tokens.all and not cost:
        return ()
    total = tokens.input + tokens.cache.read + tokens.cache.write
    cached = f" ({format_count(tokens.cache.read)} cached)" if tokens.cache.read else ""
    return (
        f"{_get_estimate_mark(tokens)}{format_count(total)} in{cached}, {format_count(tokens.output)} out",
        format_cost(cost, tokens),
    )


def describe_changes(facts: TurnFacts) -> tuple[str, ...]:
    """Describe what a turn changed, and how its checks stand,
    as short texts: `3 files changed (+12 -3)`.
    """
    number = "1 file" if facts.files == 1 else f"{facts.files} files"
    lines = (
        f" (+{facts.additions} -{facts.deletions})" if facts.additions or facts.deletions else ""
    )
    # Where not all is known, nothing may have changed, or much.
    nothing = () if facts.unrecorded else ("no file was changed",)
    changes = (f"{number} changed{lines}",) if facts.files else nothing
    return changes if facts.checks == "none" else (*changes, f"checks {facts.checks}")


def describe_side_effects(facts: TurnFacts) -> list[str]:
    """Return sentences on false claims, open todos, moved commits and branches,
    and uncommitted work that a turn removed.
    """
    sentences = [f"{claim[0].upper()}{claim[1:]}." for claim in facts.false_claims]
    if facts.open_todos:
        are_open = "1 todo is" if facts.open_todos == 1 else f"{facts.open_todos} todos are"
        sentences.append(f"{are_open} still open.")
    if facts.git:
        text = "; ".join(facts.git)
        sentences.append(f"{text[0].upper()}{text[1:]}.")
    if facts.lost_files:
        unnamed = facts.lost_count - len(facts.lost_files)
        are_folders = any(name.endswith("/") for name in facts.lost_files)
        names = ", ".join(facts.lost_files) + (
            f" and {unnamed} more" if unnamed > 0 and not are_folders else ""
        )
        sentences.append(
            f"Uncommitted work of yours was removed by a command: {names}; `codeloop undo` brings it back."
        )
    if facts.unrecorded:
        sentences.append(f"What can't be undone: {', '.join(facts.unrecorded[:_MAX_UNRECORDED])}.")
    return sentences


def _get_estimate_mark(tokens: Tokens | None) -> str:
    return "~" if tokens and tokens.estimated else ""


def format_time(ms: int) -> str:
    """Format a time, in milliseconds since the epoch, as local date and minute."""
    return f"{datetime.fromtimestamp(ms / 1000).astimezone():%Y-%m-%d %H:%M}"


def measure_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    # Most texts are ASCII, and tables measure thousands of cells.
    if text.isascii():
        return len(text)
    return sum(map(_measure_char, text))


def _measure_char(char: str) -> int:
    # Combining marks and format characters take no column;
    # wide and full-width characters (CJK, emoji) take two.
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut_to_width(text: str, width: int) -> str:
    """Return a text cut to at most `width` columns, the last of them an ellipsis."""
    if measure_width(text) <= width:
        return text
    prefix = ""
    # One column is for the ellipsis.
    room = width - 1
    for char in text:
        room -= measure_width(char)
        if room < 0:
            break
        prefix += char
    return prefix + "…"


def align_table(rows: Sequence[Sequence[str]], right_aligned: Collection[int] = ()) -> list[str]:
    """Format rows as lines, in columns two blanks apart.
    `right_aligned`: the indexes of columns with figures.
    """
    if not rows:
        return []
    widths = [max(map(measure_width, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells: list[str] = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            padding = " " * (width - measure_width(cell))
            cells.append(padding + cell if number in right_aligned else cell + padding)
        lines.append("  ".join(cells).rstrip())
    return lines


def find_subject(arguments: Mapping[str, Any]) -> str:
    """Return the argument that tells most about a tool call; "": none does."""
    return next((str(arguments[key]) for key in _SUBJECT_ARGUMENTS if arguments.get(key)), "")


def format_job(title: str, started: int, addresses: Sequence[str]) -> str:
    """Return a line on something that runs in the background. `started`: ms since the epoch."""
    seconds = max(0, time.time() - started / 1000)
    return "  ".join(
        [format_duration(round(seconds * 1000)), one_line(title, _MAX_JOB_CHARS), *addresses]
    )


def is_declined(metadata: Mapping[str, Any]) -> bool:
    """Return whether a call failed, by its metadata, because the user said no."""
    # A hook that ends the turn counts as a rejection, too, and says why.
    is_rejected = metadata.get("rejected") and not metadata.get("turnEnded")
    return bool(metadata.get("said") or metadata.get("declined") or is_rejected)


def describe_command_end(metadata: Mapping[str, Any]) -> str:
    """Return how a `bash` command failed, by the metadata of its call;
    "": it succeeded, or still runs.
    """
    code, name = metadata.get("exit"), metadata.get("signal")
    if metadata.get("interrupted"):
        return "stopped"
    # A command that went on in the background after its timeout may have ended since.
    if metadata.get("timedOut") and not isinstance(code, int):
        return (
            "ended"
            if metadata.get("status") == "killed"
            else "in the background"
            if "id" in metadata
            else "timed out"
        )
    if isinstance(name, str) and name:
        return f"ended by {name}"
    if not isinstance(code, int) or code == 0:
        return ""
    # Python reports a signal as a negative code, a shell as 128 plus its number.
    if code < 0:
        return f"ended by {_find_signal_name(-code) or f'signal {-code}'}"
    signal_name = _find_signal_name(code - 128)
    return f"exit {code} ({signal_name})" if signal_name else f"exit {code}"


def _find_signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
