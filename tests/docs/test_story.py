"""What runs the stories notices what is wrong with them."""

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks
from tests.docs.story import difference, script, tell

NOWHERE = "http://127.0.0.1:9/v1"


def shell(text: str, language: str = "sh", before: str = "") -> Block:
    return Block(ROOT / "page.md", 1, language, text, before)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("one\ntwo\n", "one\ntwo\n"),
        ("a ... c\n", "a b c\n"),
        ("...\nlast\n", "one\ntwo\nlast\n"),
        ("first\n...\n", "first\n"),
        ('{"id":"ses_a","n":1,"text":"Done: ..."}', '{"id":"ses_b","n":2.5,"text":"Done: all"}'),
        ("", "whatever\n"),
    ],
)
def test_what_a_page_may_leave_open_is_no_difference(shown: str, printed: str) -> None:
    assert difference(shown, printed) == ""


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("one\n", "two\n"),
        ("one\n", "one\ntwo\n"),
        ("one\ntwo\n", "one\n"),
        ("one\n", ""),
        ("...\nlast\n", "last\nand more\n"),
        ('{"n":1}', '{"n":"1"}'),
        ('{"n":1}', '{"n":1,"more":2}'),
        ('{"text":"Done."}', '{"text":"Not done."}'),
        ('{"id":"ses_a"}', '{"id":"msg_a"}'),
    ],
)
def test_anything_else_is_one(shown: str, printed: str) -> None:
    assert difference(shown, printed) != ""


def test_a_story_ends_at_the_first_command_that_fails(tmp_path: Path) -> None:
    told = tell([shell("true\n"), shell("false\necho on\n"), shell("true\n")], tmp_path, NOWHERE)
    assert (told.code, told.ran) == (1, [0])


def test_an_exit_code_that_is_shown_must_come(tmp_path: Path) -> None:
    right, other, none = (
        shell("sh -c 'exit 3'    # exit code 3\n"),
        shell("sh -c 'exit 3'    # exit code 4\n"),
        shell("true    # exit code 3\n"),
    )
    assert tell([right, other, none], tmp_path, NOWHERE).ran == [0]


def test_a_block_of_no_kind_or_without_the_name_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="says what it is"):
        script([shell("x\n", language="")], tmp_path)
    with pytest.raises(AssertionError, match="which file"):
        script([shell("{}\n", language="json", before="Some words:\n")], tmp_path)


def test_blocks_are_read_with_the_paragraph_above_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("One.\n\nIn `a.json`\nor so:\n\n```json\n{}\n```\n```sh\na \\\n  b\n```\n")
    first, second = blocks(page)
    assert (first.file, first.line, first.text) == ("a.json", 6, "{}\n")
    assert (second.before, second.lines()) == ("", ["a    b"])
