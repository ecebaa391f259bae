"""What is within a paragraph: emphasis, code, links."""

import pytest

from codeloop.tui.render.markdown.inline_parser import (
    ADDRESS,
    CODE,
    EMPHASIS,
    IMAGE,
    LINK,
    STRIKE,
    STRONG,
    parse_pieces,
)

NAMES = {
    EMPHASIS: "em",
    STRONG: "b",
    STRIKE: "s",
    CODE: "code",
    LINK: "a",
    ADDRESS: "url",
    IMAGE: "img",
}


def marked(text: str, *, is_open: bool = False) -> str:
    """Return the pieces with their looks as tags: `<b>bold</b>`."""
    shown = ""
    for piece in parse_pieces(text, is_open=is_open):
        names = [name for markup, name in NAMES.items() if piece.markup & markup]
        shown += (
            "".join(f"<{name}>" for name in names)
            + piece.text
            + "".join(f"</{name}>" for name in names[::-1])
        )
    return shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a *b* c", "a <em>b</em> c"),
        ("a **b** c", "a <b>b</b> c"),
        ("***a***", "<em><b>a</b></em>"),
        ("**a *b* c**", "<b>a </b><em><b>b</b></em><b> c</b>"),
        ("_a_ and __b__", "<em>a</em> and <b>b</b>"),
        ("~~a~~ and ~b~", "<s>a</s> and <s>b</s>"),
        ("snake_case_name and __init__.py", "snake_case_name and <b>init</b>.py"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("src/*.py and test/*.js", "src/*.py and test/*.js"),
        ("*args, **kwargs", "*args, **kwargs"),
        ("**粗体。**文字", "<b>粗体。</b>文字"),
        ("`a*b*`", "<code>a*b*</code>"),
        ("``a ` b``", "<code>a ` b</code>"),
        ("`` `a` ``", "<code>`a`</code>"),
        ("a ` b", "a ` b"),
        ("**`a`**", "<b><code>a</code></b>"),
        (r"\*a\* \\ \x", r"*a* \ \x"),
        ("&lt;b&gt; &amp; &nope; &#65;", "<b> & &nope; A"),
        ("<div>a</div>", "<div>a</div>"),
        ("a  \nb", "a\nb"),
        ("a\\\nb", "a\nb"),
        ("a\nb", "a\nb"),
        ("long " * 13 + "\nb", "long " * 13 + "b"),
        ("<a>\n<b>", "<a>\n<b>"),
    ],
)
def test_marks_become_looks(text: str, shown: str) -> None:
    assert marked(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[a](http://x.y)", "<a>a</a><url> (http://x.y)</url>"),
        ("[x.y](https://x.y/)", "<a>x.y</a>"),
        ("[a *b*](u(v)) c", "<a>a </a><em><a>b</a></em><url> (u(v))</url> c"),
        ('[a](<b c> "title")', "<a>a</a><url> (b c)</url>"),
        ("[a](#below)", "<a>a</a>"),
        ("![a](b.png)", "<img>a</img><url> (b.png)</url>"),
        ("![](b.png)", "<img>b.png</img>"),
        ("[a] (b)", "[a] (b)"),
        ("[a][1]", "[a][1]"),
        ("list[int](3)", "list<a>int</a><url> (3)</url>"),
        ("<https://x.y/z>", "<a>https://x.y/z</a>"),
        ("<me@x.org>", "<a>me@x.org</a>"),
        ("see https://x.y/z(1), ok", "see <a>https://x.y/z(1)</a>, ok"),
        ("(https://x.y)", "(<a>https://x.y</a>)"),
        ("www.x.org.", "<a>www.x.org</a>."),
        ("`https://x.y`", "<code>https://x.y</code>"),
        ("**https://x.y**", "<b><a>https://x.y</a></b>"),
    ],
)
def test_links_show_where_they_lead(text: str, shown: str) -> None:
    assert marked(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("so **bol", "so <b>bol</b>"),
        ("so **", "so "),
        ("so `co", "so <code>co</code>"),
        ("so ~~no", "so <s>no</s>"),
        ("see [te", "see <a>te</a>"),
        ("see [text](http://x", "see <a>text</a>"),
        ("see [text]", "see <a>text</a>"),
        ("2 * 3", "2 * 3"),
        ("x[0", "x[0"),
    ],
)
def test_what_is_not_closed_yet_looks_as_it_will(text: str, shown: str) -> None:
    assert marked(text, is_open=True) == shown


@pytest.mark.parametrize(
    "text",
    ["*a _b [c " * 220, "`a ``b " * 280, "[" * 2000, "](" * 1000, "**" * 900 + "a", "&#" * 900],
)
def test_nothing_takes_long(text: str) -> None:
    assert len("".join(piece.text for piece in parse_pieces(text))) > 0
