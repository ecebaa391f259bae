"""Findings of a review, and the decision which of them a recorded command proves. Does no I/O."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.automation.ci.agent_program import RecordedCall
from codeloop.automation.ci.thread_comment import quote_answer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    **{name: {"type": "string"} for name in ("path", "title", "body", "command", "output")},
                    "line": {"type": "integer"},
                },
                "required": ["path", "line", "title", "body", "command", "output"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["findings"],
    "additionalProperties": False,
}
Verdict = Literal["proven", "unproven", "unchanged", "repeated", "surplus"]
_FINGERPRINT = "<!-- codeloop-finding {} -->"
_MIN_QUOTE_CHARACTERS = 4
"""A shorter quote would be found in almost any output."""
_MAX_OUTPUT_CHARACTERS = 3000
_OUTPUT_HEAD, _OUTPUT_TAIL = 1000, 2000
"""Of a longer output a comment shows these parts, in characters."""
_INSPECTION = re.compile(
    r"\s*(?:cat|ls|grep|rg|head|tail|sed|awk|find|echo|printf|git|diff|wc|less|more|nl|file|true|false)\b"
)
"""Commands that only show or compare files, and so prove nothing about what the code does."""
_DEFINITION = re.compile(
    r"\s*(?:export\s+|public\s+|async\s+)*(?:def|class|function|func|fn|fun|sub)\s+(?:\([^)]*\)\s*)?(\w+)"
)


class ReviewFinding(Struct, frozen=True):
    """A bug that the model reports: its file and line, a description, and a command with the output that shows it."""

    path: str
    line: int
    title: str
    body: str
    command: str
    output: str


class ReviewReport(Struct, frozen=True):
    """The structured answer of a review."""

    findings: list[ReviewFinding] = []


def read_findings(structured: Any) -> list[ReviewFinding]:
    """Return the findings of a structured answer; [] if the answer has another shape."""
    try:
        return msgspec.convert(structured, ReviewReport).findings
    except msgspec.ValidationError:
        return []


def find_proof(finding: ReviewFinding, calls: Iterable[RecordedCall], source: Sequence[str]) -> RecordedCall | None:
    """Return the recorded call that shows a finding; None: no call does. `source`: the lines of the finding's file.

    The agent must have run the command, the command must do more than show files, the quoted output must be in its
    output and not in the code, and the call must name the function, or else the file, that the finding is about.
    """
    if all(_INSPECTION.match(piece) for piece in re.split(r"&&|\|\||[;|\n]", finding.command)):
        return None
    if _join_lines(finding.output) in _join_lines("\n".join(source)):
        return None
    subject = find_enclosing_name(source, finding.line) or re.sub(r"\.\w+$", "", finding.path.rpartition("/")[2])
    for call in calls:
        is_same = _join_lines(call.command) == _join_lines(finding.command)
        if (
            is_same
            and has_quoted_output(finding, call)
            and re.search(rf"(?<![^\W_]){re.escape(subject)}(?![^\W_])", call.command + call.output)
        ):
            return call
    return None


def has_quoted_output(finding: ReviewFinding, call: RecordedCall | None) -> bool:
    """Return whether a call ended by itself, and printed the output that a finding quotes.

    A timeout (124) and a command that can't be run (126, 127) don't count.
    """
    quote = _join_lines(finding.output)
    if call is None or call.exit_code is None or call.exit_code in {124, 126, 127}:
        return False
    return len(quote) >= _MIN_QUOTE_CHARACTERS and quote in _join_lines(call.output)


def is_confirmed(
    finding: ReviewFinding, on_head: RecordedCall | None, on_base: RecordedCall | None, *, is_new: bool
) -> bool:
    """Return whether the same command shows a finding after the change, and does not show it before the change.

    A command that fails after the change must succeed before it, unless the function that it calls `is_new`. One that
    fails on both sides, for different reasons, expects something that was never true.
    """
    if on_head is None or on_base is None or on_base.exit_code is None:
        return False
    if not has_quoted_output(finding, on_head) or has_quoted_output(finding, on_base):
        return False
    return is_new or on_head.exit_code == 0 or on_base.exit_code == 0


def find_enclosing_name(source: Sequence[str], line: int) -> str:
    """Return the name of the function or class around a line, numbered from 1; "" if none is found."""
    line_text = source[line - 1] if 0 < line <= len(source) else ""
    depth = _measure_indent(line_text) if line_text.strip() else 10_000
    for text in [line_text, *reversed(source[: max(line - 1, 0)])]:
        match = _DEFINITION.match(text)
        if match and (text is line_text or _measure_indent(text) < depth):
            return match[1]
        if text.strip():
            depth = min(depth, _measure_indent(text))
    return ""


def make_fingerprint(finding: ReviewFinding, source: Sequence[str]) -> str:
    """Return a hash of a finding's file and the text of its line, which stays the same when lines above change."""
    text = source[finding.line - 1].strip() if 0 < finding.line <= len(source) else str(finding.line)
    nth = sum(each.strip() == text for each in source[: finding.line])
    return hashlib.sha256(f"{finding.path}\0{text}\0{nth}".encode()).hexdigest()[:16]


def make_mark(fingerprint: str) -> str:
    """Return the hidden line by which a later review recognises the comment of a finding."""
    return _FINGERPRINT.format(fingerprint)


def is_changed(finding: ReviewFinding, changed: Mapping[str, frozenset[int]]) -> bool:
    """Return whether a finding is about a line that the pull request added or changed."""
    return finding.line in changed.get(finding.path, frozenset())


def make_comment(finding: ReviewFinding, call: RecordedCall, fingerprint: str, batch: str) -> str:
    """Return the comment of a proven finding, with its mark and that of the review (`batch`)."""
    return f"{make_mark(fingerprint)}\n{batch}\n{show_proof(finding, call)}"


def show_proof(finding: ReviewFinding, call: RecordedCall) -> str:
    """Return a proven finding in Markdown: its description, and the command with the output that shows it."""
    output = call.output.strip()
    if len(output) > _MAX_OUTPUT_CHARACTERS:
        output = f"{output[:_OUTPUT_HEAD]}\n...\n{output[-_OUTPUT_TAIL:]}"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", output + finding.command)), default=0))
    return (
        f"**{quote_answer(' '.join(finding.title.split()))}**\n\n"
        f"{quote_answer(finding.body)}\n\n"
        f"<details><summary>Reproduced; before this change the same command does not show it.</summary>\n\n"
        f"{fence}console\n$ {finding.command}\n{output}\n# exit code {call.exit_code}\n{fence}\n\n</details>\n"
    )


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
