"""Markdown heads: split, tolerated colons, errors with their line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.text.frontmatter import Frontmatter, FrontmatterError, split_frontmatter


def test_head_and_body_are_split() -> None:
    page = split_frontmatter(
        "---\nname: review\ntools:\n  bash: false\n---\nBe strict.\n\n---\nStill body.\n"
    )
    assert page == Frontmatter(
        {"name": "review", "tools": {"bash": False}}, "Be strict.\n\n---\nStill body.\n"
    )


def test_a_text_without_a_head_is_all_body() -> None:
    assert split_frontmatter("# Title\n---\nx: 1\n---\n") == Frontmatter(
        {}, "# Title\n---\nx: 1\n---\n"
    )


@pytest.mark.parametrize(
    "text", ["---\n---\nbody", "---\n# only a comment\n---\nbody", "\ufeff---\r\n---\r\nbody"]
)
def test_an_empty_head_is_no_values(text: str) -> None:
    assert split_frontmatter(text) == Frontmatter({}, "body")


def test_windows_line_ends_are_read() -> None:
    assert split_frontmatter("---\r\na: x: y\r\nb: 2\r\n---\r\nbody\r\n") == Frontmatter(
        {"a": "x: y", "b": 2}, "body\r\n"
    )


def test_a_colon_in_an_unquoted_text_is_read_as_meant() -> None:
    page = split_frontmatter("---\ndescription: Use this: it's often right\nmode: all\n---\n")
    assert page.head == {"description": "Use this: it's often right", "mode": "all"}


@given(st.text(alphabet="ab -\n\r", max_size=40))
def test_the_body_is_never_changed(body: str) -> None:
    assert split_frontmatter("---\na: 1\n---\n" + body) == Frontmatter({"a": 1}, body)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("---\na: 1\n", 1, "no closing line"),
        ("---\na: 1\nb: [1, 2\n---\n", 4, "not valid YAML"),
        ("---\na: 1\n\tb: 2\n---\n", 3, "not valid YAML"),
        ("---\n- a\n- b\n---\n", 2, "found a list"),
        ("---\njust words\n---\n", 2, "found a str"),
        ("---\na: !!python/object/apply:os.system [true]\n---\n", 2, "not valid YAML"),
        ("---\na: 2024-99-99\n---\n", 2, "can't be read"),
        ('---\na: !!int ""\n---\n', 2, "does not fit the type before it"),
        ("---\na: !!bool maybe\n---\n", 2, "does not fit the type before it"),
        ("---\na: !!timestamp soon\n---\n", 2, "does not fit the type before it"),
    ],
)
def test_an_error_names_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(FrontmatterError, match=message) as caught:
        split_frontmatter(text)
    assert caught.value.line == line


def test_keys_that_are_no_strings_become_strings() -> None:
    assert split_frontmatter("---\n2: one\ntrue: yes\n---\n").head == {"2": "one", "True": True}
