"""Findings of a review, and which of them the recorded runs prove. Pure."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.automation.ci.agent_run import RecordedCall
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
_LEAST = 4  # characters of a quote; a shorter one is found in any output
_LOOKS = re.compile(
    r"\s*(?:cat|ls|grep|rg|head|tail|sed|awk|find|echo|printf|git|diff|wc|less|more|nl|file|true|false)\b"
)
_DEFINITION = re.compile(
    r"\s*(?:export\s+|public\s+|async\s+)*(?:def|class|function|func|fn|fun|sub)\s+(?:\([^)]*\)\s*)?(\w+)"
)


class ReviewFinding(Struct, frozen=True):
    """A bug that a model reports: where, what, and the run that shows it."""

    path: str
    line: int
    title: str
    body: str
    command: str
    output: str


class ReviewReport(Struct, frozen=True):
    """What a review answers."""

    findings: list[ReviewFinding] = []


def read_findings(structured: Any) -> list[ReviewFinding]:
    """Return the findings of an answer, none for one that has another shape."""
    try:
        return msgspec.convert(structured, ReviewReport).findings
    except msgspec.ValidationError:
        return []


def find_proof(finding: ReviewFinding, calls: Iterable[RecordedCall], source: Sequence[str]) -> RecordedCall | None:
    """Return the recorded run that shows a finding, None without one. `source`: the lines of its file.

    The session must have run the command, the command must do more than show files, what is quoted must stand in its
    output and not in the code, and the run must name the function, or else the file, that the finding is about.
    """
    if all(_LOOKS.match(piece) for piece in re.split(r"&&|\|\||[;|\n]", finding.command)):
        return None
    if _join_lines(finding.output) in _join_lines("\n".join(source)):
        return None
    about = enclosing_name(source, finding.line) or re.sub(r"\.\w+$", "", finding.path.rpartition("/")[2])
    for call in calls:
        same = _join_lines(call.command) == _join_lines(finding.command)
        if (
            same
            and shows(finding, call)
            and re.search(rf"(?<![^\W_]){re.escape(about)}(?![^\W_])", call.command + call.output)
        ):
            return call
    return None


def shows(finding: ReviewFinding, call: RecordedCall | None) -> bool:
    """Return whether a run came to an end of its own, and printed what a finding quotes."""
    quote = _join_lines(finding.output)
    if call is None or call.exit_code is None or call.exit_code in {124, 126, 127}:
        return False
    return len(quote) >= _LEAST and quote in _join_lines(call.output)


def holds(finding: ReviewFinding, here: RecordedCall | None, there: RecordedCall | None, *, is_new: bool) -> bool:
    """Return whether the same run shows a finding after the change, and not before it.

    A test that fails after the change must pass before it, unless what it calls `is_new`: one that fails on both sides
    for two reasons expects something that was never so.
    """
    if here is None or there is None or there.exit_code is None or not shows(finding, here) or shows(finding, there):
        return False
    return is_new or here.exit_code == 0 or there.exit_code == 0


def enclosing_name(source: Sequence[str], line: int) -> str:
    """Return the name of the function or class around a line, numbered from 1; "" if none is found."""
    own = source[line - 1] if 0 < line <= len(source) else ""
    depth = _indent(own) if own.strip() else 10_000
    for text in [own, *reversed(source[: max(line - 1, 0)])]:
        match = _DEFINITION.match(text)
        if match and (text is own or _indent(text) < depth):
            return match[1]
        if text.strip():
            depth = min(depth, _indent(text))
    return ""


def fingerprint(finding: ReviewFinding, source: Sequence[str]) -> str:
    """Return a finding's fingerprint, the same on later commits: of its file and the text of its line."""
    text = source[finding.line - 1].strip() if 0 < finding.line <= len(source) else str(finding.line)
    nth = sum(each.strip() == text for each in source[: finding.line])
    return hashlib.sha256(f"{finding.path}\0{text}\0{nth}".encode()).hexdigest()[:16]


def mark_of(print_: str) -> str:
    """Return the hidden line by which the comment of a finding is known again."""
    return _FINGERPRINT.format(print_)


def is_changed(finding: ReviewFinding, changed: Mapping[str, frozenset[int]]) -> bool:
    """Return whether a finding is about a line that the pull request added or changed."""
    return finding.line in changed.get(finding.path, frozenset())


def comment_of(finding: ReviewFinding, call: RecordedCall, print_: str, batch: str) -> str:
    """Return the comment of a proven finding, with the marks that it is known by."""
    return f"{mark_of(print_)}\n{batch}\n{show_proof(finding, call)}"


def show_proof(finding: ReviewFinding, call: RecordedCall) -> str:
    """Return a proven finding in Markdown: what is wrong, and the run that shows it."""
    output = call.output.strip()
    if len(output) > 3000:
        output = f"{output[:1000]}\n...\n{output[-2000:]}"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", output + finding.command)), default=0))
    return (
        f"**{quote_answer(' '.join(finding.title.split()))}**\n\n"
        f"{quote_answer(finding.body)}\n\n"
        f"<details><summary>Reproduced; before this change the same command does not show it.</summary>\n\n"
        f"{fence}console\n$ {finding.command}\n{output}\n# exit code {call.exit_code}\n{fence}\n\n</details>\n"
    )


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
