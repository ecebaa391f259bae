"""Which findings a recorded run proves."""

from typing import Any

import pytest

from codeloop_automation.ci.agent_program import RecordedCall
from codeloop_automation.ci.review.findings import (
    ReviewFinding,
    find_enclosing_name,
    find_proof,
    is_confirmed,
    make_fingerprint,
    read_findings,
    render_finding_comment,
)

SOURCE = [
    "import os",
    "",
    "def add(a, b):",
    "    return a - b",
    "",
    "",
    "class Door:",
    "    def open(self):",
    "        return 1",
    "x = 2",
]
CALL = RecordedCall("python3 t.py", 1, "Traceback: add(2, 3)\nAssertionError: add gives -1\n")


def finding(**more: Any) -> ReviewFinding:
    given: dict[str, Any] = {
        "path": "lib/calc.py",
        "line": 4,
        "title": "t",
        "body": "b",
        "command": "python3 t.py",
        "output": "add gives -1",
    }
    return ReviewFinding(**{**given, **more})


def test_a_recorded_run_proves_a_finding() -> None:
    assert find_proof(finding(), [CALL], SOURCE) is CALL
    assert find_proof(finding(command="python3  t.py\n"), [CALL], SOURCE) is CALL


@pytest.mark.parametrize(
    ("claim", "call"),
    [
        (finding(command="python3 other.py"), CALL),
        (finding(output="add gives 17"), CALL),
        (finding(output=""), CALL),
        (finding(output="-1"), CALL),
        (finding(output="return a - b"), RecordedCall("python3 t.py", 1, "add: return a - b")),
        (finding(), RecordedCall("python3 t.py", None, CALL.output)),
        (finding(), RecordedCall("python3 t.py", 127, CALL.output)),
        (finding(), RecordedCall("python3 t.py", 124, CALL.output)),
        (finding(line=9), CALL),
        (
            finding(command="echo add gives -1"),
            RecordedCall("echo add gives -1", 0, "add gives -1"),
        ),
        (
            finding(command="cat a | grep b; git diff"),
            RecordedCall("cat a | grep b; git diff", 0, "add gives -1"),
        ),
    ],
)
def test_what_no_run_shows_is_not_proved(claim: ReviewFinding, call: RecordedCall) -> None:
    assert find_proof(claim, [call], SOURCE) is None


def test_a_finding_holds_when_the_change_makes_the_difference() -> None:
    passes, other = (
        RecordedCall("python3 t.py", 0, "ok"),
        RecordedCall("python3 t.py", 1, "add gives 9"),
    )
    missing = RecordedCall("python3 t.py", 1, "ImportError: cannot import name 'add'")
    assert is_confirmed(finding(), CALL, passes, is_new=False)
    assert not is_confirmed(finding(), CALL, CALL, is_new=False), "it was so before"
    assert not is_confirmed(finding(), CALL, other, is_new=False), "the test is wrong on both sides"
    assert is_confirmed(finding(), CALL, missing, is_new=True)
    assert not is_confirmed(finding(), passes, passes, is_new=False), "it is not shown again"
    assert not is_confirmed(finding(), CALL, None, is_new=True)


def test_the_function_around_a_line_is_found() -> None:
    assert [find_enclosing_name(SOURCE, line) for line in (4, 8, 9, 10, 1, 99)] == [
        "add",
        "open",
        "open",
        "",
        "",
        "",
    ]


def test_a_finding_is_known_again_when_its_line_has_moved() -> None:
    moved = ["# one", "# two", *SOURCE]
    assert make_fingerprint(finding(), SOURCE) == make_fingerprint(finding(line=6), moved)
    assert make_fingerprint(finding(), SOURCE) != make_fingerprint(finding(line=9), SOURCE)
    assert make_fingerprint(finding(), SOURCE) != make_fingerprint(finding(path="b.py"), SOURCE)


def test_a_comment_can_be_left_by_nothing_in_it() -> None:
    text = render_finding_comment(
        finding(title="@all <!-- x\n/close"),
        RecordedCall("c", 1, "```\n/merge"),
        "f" * 16,
        "<!-- batch -->",
    )
    assert "@all" not in text
    assert text.count("<!--") == 2
    assert "````console" in text


def test_an_answer_of_another_shape_has_no_findings() -> None:
    for structured in (None, [], "x", {"findings": 3}, {"findings": [{"path": 1}]}, {}):
        assert read_findings(structured) == []
