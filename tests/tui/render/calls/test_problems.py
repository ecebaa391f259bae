"""What is wrong in files since a call changed them, as the call shows it."""

from typing import Any

import pytest

from tests.tui.drawing import draw, plain, styled
from tests.tui.gallery import CALLS, EDIT
from tests.tui.parts import DIRECTORY, done


def wrong(line: int, message: object = "no such name", severity: object = 1) -> dict[str, Any]:
    return {
        "range": {"start": {"line": line, "character": 0}},
        "severity": severity,
        "message": message,
    }


def rows(diagnostics: object, **given: Any) -> list[str]:
    item = done("edit", EDIT, "Edited", {"diagnostics": diagnostics}, **given)
    return [row.strip() for row in plain(draw(item)).split("\n")[1:]]


def test_a_narrow_screen_shows_where_and_what() -> None:
    shown = plain(draw(CALLS["edit-wrong"], 40)).split("\n")[-4:]
    assert shown == [
        "  ✗ src/cart.py:4  “Decimal” is not def…",
        '  ✗ src/cart.py:6  Operator "*=" not su…',
        "  ✗ …ow/test_cart.py:42  No parameter n…",
        "  ! src/cart.py:9  Import “Decimal” is …",
    ]


def test_errors_come_first_and_further_ones_are_counted_until_the_call_is_opened() -> None:
    given = {
        f"{DIRECTORY}/a.py": [
            wrong(0, "unused", 2),
            *map(wrong, range(1, 7)),
            wrong(9, "a hint", 4),
        ]
    }
    assert rows(given) == [
        *(f"✗ a.py:{line}  no such name" for line in range(2, 6)),
        "… and 3 more  a click shows all",
    ]
    assert rows(given, is_open=True)[4:] == [
        "✗ a.py:6  no such name", "✗ a.py:7  no such name", "! a.py:1  unused"
    ]  # fmt: skip
    assert "{text_muted italic toggle=prt_call}… and 3 more" in styled(
        draw(done("edit", EDIT, "", {"diagnostics": given}))
    )


def test_a_note_never_stands_for_one_row() -> None:
    assert len(rows({"a.py": [*map(wrong, range(5))]})) == 5


def test_nothing_of_a_message_or_a_path_can_steer_the_terminal() -> None:
    assert rows({"a\x1b[2J\n.py": [wrong(0, "one\n\x1b]52;c;aGk=\x07two")]}) == [
        "✗ a␛[2J .py:1  one ␛]52;c;aGk=␇two"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        None, [], "x", {"a.py": None}, {"a.py": ["x", {}]}, {"a.py": [wrong(0, 7)]}, {"a.py": [wrong(0, "x", "bad")]},
        {"a.py": [{"range": {"start": 4}, "message": "x"}]}, {"a.py": [{"range": [], "message": "x"}]},
    ],
)  # fmt: skip
def test_what_is_no_diagnostic_is_left_out(given: object) -> None:
    assert rows(given) == []
