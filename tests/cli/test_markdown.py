"""What a terminal shows of Markdown: tables that fit it, in whatever pieces they come."""

import re

import pytest

from codeloop.cli.output.markdown import Markdown
from codeloop.client.formatting import measure_width

TABLE = """Here:

| File | Lines | What |
|:--|--:|:-:|
| `a|b.py` | 12 | **bold** words that go on and on until they do not fit any more |
| b.py | 3 | one<br>漢字漢字 |
| c.py |

Done.
"""


def rendered(text: str, columns: int, size: int) -> list[str]:
    """Render a text that comes in pieces of `size` characters, without colours."""
    markdown = Markdown(styled=True, columns=columns)
    shown = (
        "".join(markdown.feed(text[at : at + size]) for at in range(0, len(text), size))
        + markdown.end()
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_table_is_aligned_and_its_cells_wrap_to_the_width(size: int) -> None:
    assert rendered(TABLE, 48, size) == [
        "Here:",
        "",
        "File   │ Lines │              What",
        "───────┼───────┼───────────────────────────────",
        "a|b.py │    12 │  bold words that go on and on",
        "       │       │ until they do not fit any more",
        "b.py   │     3 │              one",
        "       │       │            漢字漢字",
        "c.py   │       │ ",
        "",
        "Done.",
    ]


def test_without_room_for_columns_a_row_is_lines_of_names_and_values() -> None:
    assert "Lines: 12" in rendered(TABLE, 20, 5)


@pytest.mark.parametrize("columns", range(2, 120, 7))
def test_a_table_with_columns_is_never_wider_than_the_terminal(columns: int) -> None:
    lines = rendered(TABLE, columns, 11)
    assert max(map(measure_width, lines)) < columns or not any("│" in line for line in lines)


def test_a_table_of_a_pipe_stays_as_it_came() -> None:
    markdown = Markdown(styled=False, columns=40)
    assert markdown.feed(TABLE) + markdown.end() == TABLE


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [a page](https://x.y/z) now", "see a page (https://x.y/z) now"),
        ("[Rust](https://x.y/Rust_(language))", "Rust (https://x.y/Rust_(language))"),
        ("[f](https://x.y/f(a)(b)?c), [g](h)", "f (https://x.y/f(a)(b)?c), g (h)"),
        ("`x[0](a(b` and [never closed](a(b", "x[0](a(b and [never closed](a(b"),
        ("[two words](a b)", "[two words](a b)"),
    ],
)
def test_the_target_of_a_link_may_hold_brackets(text: str, shown: str, size: int) -> None:
    assert rendered(text, 80, size) == [shown]
