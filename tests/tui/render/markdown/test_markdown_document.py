"""Texts of markdown as rows: blocks, and the same rows however the text came."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.drawing import check, draw, plain, renderer, styled
from tests.tui.parts import answer

SAMPLE = (Path(__file__).parents[1] / "sample.md").read_text()


def shown(text: str, width: int = 40) -> str:
    """Return the rows of a text without the margin."""
    return "\n".join(line[2:] for line in plain(draw(answer(text), width)).split("\n"))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("# One\ntext", "One\ntext"),
        ("One\n===\n\nTwo\n---", "One\n\nTwo"),
        ("- a\n- b", "• a\n• b"),
        ("- a\n\n- b", "• a\n\n• b"),
        ("- a\n  - b\n    - c\n- d", "• a\n  • b\n    • c\n• d"),
        ("1. a\n  - b\n2. c", "1. a\n   • b\n2. c"),
        ("1. a\n1. b\n1. c", "1. a\n2. b\n3. c"),
        ("3) a\n4) b", "3) a\n4) b"),
        ("- [ ] a\n- [x] b", "[ ] a\n[x] b"),
        ("- a\n\n  b", "• a\n\n  b"),
        ("- a\nb", "• a\n  b"),
        ("a\n- b", "a\n• b"),
        ("a\n2. b", "a\n2. b"),
        ("> a\nb\n\nc", "│ a\n│ b\n\nc"),
        ("> a\n>\n> b", "│ a\n│\n│ b"),
        ("> - a\n>   b", "│ • a\n│   b"),
        ("```\na  b\n\nc\n```\nd", " a  b\n\n c\nd"),
        ("~~~py\n```\n~~~", " ```"),
        ("- ```\n  a\nEOF\n  ```\n- b", "•  a\n   EOF\n• b"),
        ("```\nnever closed", " never closed"),
        ("    code\n    more", " code\n more"),
        ("a\n\n***\n\nb", "a\n\n" + "─" * 38 + "\n\nb"),
        ("#hashtag", "#hashtag"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("a\r\nb\r\n", "a\nb"),
        ("", ""),
    ],
)
def test_blocks(text: str, rows: str) -> None:
    assert shown(text) == rows


def test_a_table_has_columns_and_sides() -> None:
    assert shown("| a | b |\n|:--|--:|\n| x | 100 |\n| 検索 | 2 |\n| `a|b` | \\| |\nafter") == (
        "a    │   b\n─────┼────\nx    │ 100\n検索 │   2\na|b  │   |\nafter"
    )


def test_a_table_that_is_too_wide_wraps_in_its_cells_and_falls_apart_when_there_is_no_room() -> (
    None
):
    table = "| name | what |\n|---|---|\n| one | a long text that has to be wrapped somewhere |"
    assert shown(table, 32) == (
        "name │ what\n─────┼────────────────────────\none  │ a long text that has to\n     │ be wrapped somewhere"
    )
    wide = "|" + "name |" * 5 + "\n|" + "---|" * 5 + "\n|" + "some text |" * 5
    assert shown(wide, 34).startswith("name: some text\nname: some text")


def test_the_widths_of_a_long_table_stay_as_its_first_rows_make_them() -> None:
    text = "| aa | b |\n|---|---|\n" + "| x | y |\n" * 100 + "| longer | z |"
    assert shown(text).endswith("\nx  │ y\nlo │ z\nng │\ner │")


def test_code_is_coloured_by_its_language_also_over_several_lines() -> None:
    rows = styled(draw(answer('```python\ndef f():\n    """One\n    two"""\n```'), 40))
    assert "{syntax_keyword on background_panel}def" in rows
    assert "{syntax_function on background_panel}f" in rows
    assert (
        "{syntax_string on background_panel}    two" in rows
        or "syntax_comment" in rows.split("\n")[2]
    )
    comment = styled(draw(answer("```js\n/* a\n b */ let x\n```"), 40)).split("\n")
    assert "{syntax_comment on background_panel} b */" in comment[1]
    assert "{syntax_keyword on background_panel}let" in comment[1]


def test_an_unknown_language_is_plain_code() -> None:
    assert "a b" in shown("```klingon\na b\n```")


def test_nothing_in_a_text_steers_the_terminal() -> None:
    rows = draw(
        answer("a \x1b[31mred\x07 `\x1b]0;x\x07`\n\n```\n\x1b[2J\tx\n```\n[\x1b](\x1b[1m)"), 60
    )
    assert "\x1b" not in plain(rows)
    assert "\x1b" not in styled(rows)


@pytest.mark.parametrize("width", [8, 12, 40, 100])
def test_a_growing_text_never_changes_what_is_finished_and_ends_as_if_it_came_at_once(
    width: int,
) -> None:
    drawing = renderer(width)
    for end in range(0, len(SAMPLE), 7):
        check(drawing.render(answer(SAMPLE[:end], is_live=True)), width)
    assert drawing.render(answer(SAMPLE)) == renderer(width).render(answer(SAMPLE))


def test_rows_above_the_open_block_stay() -> None:
    drawing = renderer(60)
    before: list[str] = []
    for end in range(len(SAMPLE)):
        rows = plain(drawing.render(answer(SAMPLE[:end], is_live=True))).split("\n")
        kept = len([1 for one, other in zip(before, rows, strict=False) if one == other])
        assert len(before) - kept <= 8, SAMPLE[:end][-60:]
        assert len(rows) >= len(before) - 1, SAMPLE[:end][-60:]
        before = rows


MARKS = st.text(st.sampled_from(list("ab *_`~[]()!<>#-+1.|:\\\n\t漢é👍\u0301")), max_size=120)


@given(MARKS, st.integers(1, 9), st.integers(6, 30))
def test_any_text_in_any_pieces_gives_the_same_rows_that_fit(
    text: str, step: int, width: int
) -> None:
    drawing = renderer(width)
    for end in range(0, len(text), step):
        check(drawing.render(answer(text[:end], is_live=True)), width)
    whole = draw(answer(text), width)
    assert plain(drawing.render(answer(text))) == plain(whole)


def test_a_text_that_was_replaced_is_begun_anew() -> None:
    drawing = renderer(40)
    drawing.render(answer("one two", is_live=True))
    assert plain(drawing.render(answer("other", is_live=True))) == "  other"


def test_a_line_without_end_is_handed_on_in_parts() -> None:
    text = "word **b** " * 900
    drawing = renderer(80)
    for end in range(0, len(text), 501):
        drawing.render(answer(text[:end], is_live=True))
    assert drawing.render(answer(text)) == renderer(80).render(answer(text))
    assert plain(draw(answer(text))).split() == plain(draw(answer("word b " * 900))).split()
