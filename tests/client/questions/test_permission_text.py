"""A permission request in words: nothing that the answer decides is out of
sight without saying so.
"""

import pytest

from codeloop.client.questions.permission_text import describe_request
from codeloop.client.questions.requester import Requester
from codeloop.schema.permission import PermissionRequest

HOOK = ".git/hooks/post-commit"
ACCENTED = "a\u0301"


def rows(*also: str, columns: int = 80, most: int = 10) -> list[str]:
    request = PermissionRequest(
        id="per_1", session_id="ses_1", permission="bash", patterns=["./x"], always=[],
        metadata={"command": "./x", "also": list(also)},
    )  # fmt: skip
    return [row for _, row in describe_request(request, Requester("bash"), columns, most).rows]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_what_is_decided_besides_is_not_cut_off_at_the_end_of_a_row(columns: int) -> None:
    shown = rows(f"edit: {'a' * (columns - 20)}, {HOOK}", columns=columns)
    assert HOOK in "".join(row[4:] for row in shown)
    assert all(row.startswith(("  │ ", "  ┆ ")) for row in shown)


def test_of_a_very_long_row_the_end_is_shown_and_that_something_is_left_out() -> None:
    shown = rows(f"edit: {'a' * 9000}, {HOOK}")
    assert HOOK in shown[-1]
    assert "  … more of this line" in shown


def test_of_a_long_row_of_characters_without_a_width_the_end_is_shown_and_that_something_is_left_out() -> (
    None
):
    """A letter with an accent put over it is two characters in one cell."""
    shown = rows(f"edit: {ACCENTED * 5000}, {HOOK}")
    assert HOOK in shown[-1]
    assert "  … more of this line" in shown


def test_a_call_with_many_needs_shows_them() -> None:
    kinds = [f"external_directory: /place/{number}/*" for number in range(6)]
    shown = "\n".join(rows(*kinds, f"edit: {HOOK}", most=6))
    assert all(kind in shown for kind in (*kinds, HOOK))


def test_a_line_break_in_a_name_makes_no_row() -> None:
    assert any("a⏎  y  allow once" in row for row in rows("read: a\n  y  allow once"))


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        ("mcp_changed", "Use the MCP server files as it is now, which you have not agreed to"),
        ("mcp_sampling", "Let the MCP server files ask your model"),
    ],
)
def test_what_an_mcp_server_wants_is_said_in_words(permission: str, words: str) -> None:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission=permission,
        patterns=["files"],
        always=[],
        metadata={"diff": "+x"},
    )
    assert describe_request(request, Requester("files_read"), 80, 10).title.startswith(words)


@pytest.mark.parametrize("is_agreed", [True, False])
def test_a_second_question_about_a_page_says_why_it_is_asked(*, is_agreed: bool) -> None:
    given = {
        "url": "https://wiki.example.com/",
        "address": "10.0.0.5 (private)",
        **({"agreed": True} if is_agreed else {}),
    }
    request = PermissionRequest(
        id="per_1", session_id="ses_1", permission="webfetch_private", patterns=["wiki.example.com:443"], always=[],
        metadata=given,
    )  # fmt: skip
    words = describe_request(request, Requester("webfetch"), 80, 10)
    assert "not public, 10.0.0.5 (private)" in words.title
    assert ("The page is allowed." in "".join(row for _, row in words.rows)) is is_agreed
