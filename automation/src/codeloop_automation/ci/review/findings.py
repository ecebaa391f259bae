"""The findings of a review: their JSON Schema, the rules for what proves one, and their comments.
Does no I/O.
"""

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop_automation.ci.agent_program import RecordedCall
from codeloop_automation.ci.inert_text import (
    make_code_block,
    make_inert_markdown,
    make_inert_phrase,
)

ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    **{
                        name: {"type": "string"}
                        for name in ("path", "title", "body", "command", "output")
                    },
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
Verdict = Literal["unproven", "unchanged", "repeated", "surplus"]
"""Why a finding is not posted: no run shows it; the change did not touch its line; it was posted
before; too many were found.
"""
# An HTML comment is hidden from readers.
_MARK_TEMPLATE = "<!-- codeloop-finding {} -->"
# A shorter quote would be found in almost any output.
_MIN_QUOTE_CHARACTERS = 4
# Of an output that is longer, a comment shows the first and the last characters.
_MAX_OUTPUT_CHARACTERS = 3000
_OUTPUT_HEAD_CHARACTERS, _OUTPUT_TAIL_CHARACTERS = 1000, 2000
# Commands that only show or compare files prove nothing about what the code does.
_INSPECTION_COMMAND = (
    r"\s*(?:cat|ls|grep|rg|head|tail|sed|awk|find|echo|printf|git|diff|wc|less"
    r"|more|nl|file|true|false)\b"
)
# The first line of a function or class in Python, JavaScript, Go (also with a receiver), Rust,
# Kotlin and others.
_DEFINITION_LINE = (
    r"\s*(?:export\s+|public\s+|async\s+)*(?:def|class|function|func|fn|fun"
    r"|sub)\s+(?:\([^)]*\)\s*)?(\w+)"
)


class ReviewFinding(Struct, frozen=True):
    """A bug that the model reports: its file and line, a description,
    and a command whose output shows it.
    """

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


def find_proof(
    finding: ReviewFinding, calls: Iterable[RecordedCall], source: Sequence[str]
) -> RecordedCall | None:
    """Return the recorded call that shows a finding; None if no call does.
    `source`: the lines of the finding's file.

    The agent must have run the command, and the command must do more than show files. Its output
    must contain what the finding quotes. The call must name the function, or else the file,
    that the finding is about.
    """
    if all(
        re.match(_INSPECTION_COMMAND, piece)
        for piece in re.split(r"&&|\|\||[;|\n]", finding.command)
    ):
        return None
    # An output that is a piece of the code was copied from the code.
    if _normalize_spaces(finding.output) in _normalize_spaces("\n".join(source)):
        return None
    # A test of something else would prove nothing about this finding.
    subject = find_enclosing_name(source, finding.line) or re.sub(
        r"\.\w+$", "", finding.path.rpartition("/")[2]
    )
    for call in calls:
        if _normalize_spaces(call.command) != _normalize_spaces(finding.command):
            continue
        # The subject as a word, where `_` separates words, too: `test_add` names `add`.
        names_subject = re.search(
            rf"(?<![^\W_]){re.escape(subject)}(?![^\W_])", call.command + call.output
        )
        if names_subject and has_quoted_output(finding, call):
            return call
    return None


def has_quoted_output(finding: ReviewFinding, call: RecordedCall | None) -> bool:
    """Return whether a call has ended by itself,
    and has printed the output that a finding quotes.
    """
    quote = _normalize_spaces(finding.output)
    # 124: a timeout. 126 and 127: the command could not be run.
    if call is None or call.exit_code is None or call.exit_code in {124, 126, 127}:
        return False
    return len(quote) >= _MIN_QUOTE_CHARACTERS and quote in _normalize_spaces(call.output)


def is_confirmed(
    finding: ReviewFinding,
    on_head: RecordedCall | None,
    on_base: RecordedCall | None,
    *,
    is_new: bool,
) -> bool:
    """Return whether the same command shows a finding after the change,
    and does not show it before.

    `is_new`: the function of the finding is new, so that calls of it fail before the change.
    """
    if on_head is None or on_base is None or on_base.exit_code is None:
        return False
    if not has_quoted_output(finding, on_head) or has_quoted_output(finding, on_base):
        return False
    # A command that fails on both sides, for different reasons,
    # expects something that was never true.
    return is_new or on_head.exit_code == 0 or on_base.exit_code == 0


def find_enclosing_name(source: Sequence[str], line: int) -> str:
    """Return the name of the function or class around a line, numbered from 1;
    "" if none is found.
    """
    # Look upwards for the nearest definition that is indented less than every line in between.
    # `depth`: the smallest indentation so far.
    line_text = source[line - 1] if 0 < line <= len(source) else ""
    # An empty line has no indentation of its own.
    depth = _measure_indent(line_text) if line_text.strip() else sys.maxsize
    for text in [line_text, *reversed(source[: max(line - 1, 0)])]:
        match = re.match(_DEFINITION_LINE, text)
        if match and (text is line_text or _measure_indent(text) < depth):
            return match[1]
        if text.strip():
            depth = min(depth, _measure_indent(text))
    return ""


def make_fingerprint(finding: ReviewFinding, source: Sequence[str]) -> str:
    """Return a hash that identifies a finding in later reviews."""
    # Made of the file and the text of the line, not of its number, which changes with the lines
    # above. `occurrence` distinguishes equal lines of one file.
    text = (
        source[finding.line - 1].strip() if 0 < finding.line <= len(source) else str(finding.line)
    )
    occurrence = sum(each.strip() == text for each in source[: finding.line])
    return hashlib.sha256(f"{finding.path}\0{text}\0{occurrence}".encode()).hexdigest()[:16]


def make_mark(fingerprint: str) -> str:
    """Return the hidden line by which a later review recognises the comment of a finding."""
    return _MARK_TEMPLATE.format(fingerprint)


def is_on_changed_line(finding: ReviewFinding, changed_lines: Mapping[str, frozenset[int]]) -> bool:
    """Return whether a finding is about a line that the pull request added or changed."""
    return finding.line in changed_lines.get(finding.path, frozenset())


def render_finding_comment(
    finding: ReviewFinding, call: RecordedCall, fingerprint: str, review_mark: str
) -> str:
    """Return the comment of a proven finding.
    `review_mark`: the hidden mark of the whole review.
    """
    return f"{make_mark(fingerprint)}\n{review_mark}\n{render_proof(finding, call)}"


def render_proof(finding: ReviewFinding, call: RecordedCall) -> str:
    """Return a proven finding in Markdown: its description,
    and the command with the output that shows it.
    """
    output = call.output.strip()
    if len(output) > _MAX_OUTPUT_CHARACTERS:
        output = f"{output[:_OUTPUT_HEAD_CHARACTERS]}\n...\n{output[-_OUTPUT_TAIL_CHARACTERS:]}"
    run = make_code_block(f"$ {finding.command}\n{output}\n# exit code {call.exit_code}", "console")
    return (
        f"**{make_inert_phrase(finding.title)}**\n\n"
        f"{make_inert_markdown(finding.body)}\n\n"
        f"<details><summary>Reproduced; before this change the same command does not show it.</summary>\n\n"
        f"{run}\n\n</details>\n"
    )


def _normalize_spaces(text: str) -> str:
    # Models quote outputs with other line breaks and indentation.
    return " ".join(text.split())


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
