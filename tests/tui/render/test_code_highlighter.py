"""Code is coloured line by line, and a line knows what the lines before it began."""

import pytest

from codeloop.tui.render.code_highlighter import CodeHighlighter, find_language
from codeloop.tui.themes.styles import Styles
from tests.tui.drawing import PROBE, styled


def coloured(language: str, *lines: str) -> str:
    """Return lines in colours; the names of colours without what they begin with."""
    code = CodeHighlighter(language, Styles(PROBE))
    return (
        styled(code.highlight(line) for line in lines)
        .replace("{syntax_", "{")
        .replace("{markdown_code_block}", "{}")
    )


@pytest.mark.parametrize(
    ("language", "lines", "shown"),
    [
        ("python", ["def f(): # x"], "{keyword}def {function}f{punctuation}(): {comment}# x"),
        (
            "py",
            ['x = """a', 'b"""', "y"],
            '{variable}x {operator}= {string}"""a\n{string}b"""\n{variable}y',
        ),
        ("js", ["/* a", "b */ let c"], "{comment}/* a\n{comment}b */ {keyword}let {variable}c"),
        ("js", ['"/*"', "let a"], '{string}"/*"\n{keyword}let {variable}a'),
        ("c", ["// /*", "int a;"], "{comment}// /*\n{type}int {variable}a{punctuation};"),
        ("json", ['{"a": 1}'], '{punctuation}{{keyword}"a"{punctuation}: {number}1{punctuation}}'),
        ("bash", ['echo "$HOME" # x'], '{type}echo {string}"{variable}$HOME{string}" {comment}# x'),
        ("klingon", ["if a"], "{}if a"),
        ("", ["if a"], "{}if a"),
        ("python", ["", "  "], "\n{}  "),
    ],
)
def test_lines(language: str, lines: list[str], shown: str) -> None:
    assert coloured(language, *lines) == shown


@pytest.mark.parametrize(
    "language",
    [
        "yaml",
        "html",
        "markdown",
        "diff",
        "rust",
        "go",
        "toml",
        "sql",
        "css",
        "tsx",
        "make",
        "docker",
        "xml",
    ],
)
def test_no_text_is_lost_in_any_language(language: str) -> None:
    lines = [
        "a: [b, 'c'] <d e=\"f\"> @g { h ; } `i",
        "\u6f22 '''",
        '"""',
        "\\",
        "- x # y",
        "${z} /* !",
        "*/ (((",
        "]]>",
    ]
    code = CodeHighlighter(language, Styles(PROBE))
    for line in lines:
        assert "".join(segment.text for segment in code.highlight(line)) == line


def test_a_line_that_is_not_complete_changes_nothing() -> None:
    code = CodeHighlighter("python", Styles(PROBE))
    code.highlight_open_line('x = """a')
    assert styled([code.highlight("def f")]).startswith("{syntax_keyword}def")


def test_a_line_that_nobody_wrote_is_not_coloured() -> None:
    assert coloured("python", "x = 1;" * 100).startswith("{}x = 1")


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "python"),
        ("B.TSX", "tsx"),
        ("Makefile", "make"),
        ("x/Dockerfile", "docker"),
        ("a.unknown", ""),
        ("a", ""),
    ],
)
def test_the_language_of_a_file(path: str, language: str) -> None:
    assert find_language(path) == language
