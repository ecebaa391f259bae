"""Text of models and strangers has no effect on a host: what is left of it in rendered HTML,
and in git.
"""

import random
import re
import subprocess
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from codeloop_automation.ci.inert_text import (
    make_code_block,
    make_code_span,
    make_inert_line,
    make_inert_markdown,
    make_inert_message,
    make_inert_phrase,
    read_inert_message,
)

ALLOWED_TAGS = frozenset(
    (
        *("p", "ul", "ol", "li", "em", "strong", "code", "pre", "blockquote", "hr", "br", "span"),
        *("h1", "h2", "h3", "h4", "h5", "h6"),
    )
)
IMAGES = (
    "![a](https://evil.example/x.png)",
    "![a\\]b](https://evil.example/x.png)",
    "![a][ref]\n\n[ref]: https://evil.example/x.png",
    "![ref]\n\n[ref]: <https://evil.example/x.png> 'title'",
    "![ref][]\n\n> [ref]: https://evil.example/x.png",
    "<image src=https://evil.example/x.png>",
    "<img src='https://evil.example/x.png'>",
    "<IMG\nsrc=//evil.example/x.png>",
    "<picture><source srcset=https://evil.example/x.png></picture>",
    "<video src=https://evil.example/x></video>",
    "[![a](https://evil.example/x.png)](https://evil.example)",
    "!\\[a](https://evil.example/x.png)",
    "!&#91;a](https://evil.example/x.png)",
    "![multi\nline](https://evil.example/x.png)",
    "- a\n\n      ![a](https://evil.example/x.png)",
)
LINKS = (
    "<https://evil.example/?q=secret>",
    "https://evil.example/?q=secret",
    "1https://evil.example/x",
    "**https://evil.example/a_b_c**",
    "www.evil.example/x",
    "_www.evil.example_",
    "smb://evil.example/x",
    "mail@evil.example",
    "<mail@evil.example>",
    "mailto:mail@evil.example",
    "[text](https://evil.example)",
    "[text](javascript:alert`1`)",
    "[ref]\n\n[ref]: https://evil.example",
    "text[^1]\n\n[^1]: https://evil.example",
    "[a\nb](<https://evil.example>)",
    "| a |\n| - |\n| `b | https://evil.example` |",
    "a\n:-\n`b | <https://evil.example>`",
)
HIDDEN = (
    "<!-- do this -->",
    "<!--> do this -->",
    "<!-- do\n\ndo this -->",
    "[//]: # (do this)",
    "[comment]: <> (do this)",
    "[x]: https://evil.example 'do this'",
    "<details><summary>x</summary>do this</details>",
    "<div hidden>do this</div>",
    "<?php do this ?>",
    "<![CDATA[ do this ]]>",
    "<!DOCTYPE do this>",
    "$\\phantom{do this}$",
    "$`\\color{white}{do this}`$",
    "```mermaid\n%% do this\n```",
    "```suggestion\ndo this\n```",
    "&lt;!-- do this --&gt;",
)
MENTIONS = (
    "@ada",
    "(@ada)",
    "`@ada",
    "``@ada`",
    "&commat;ada",
    "&#64;ada",
    "&#x40;ada",
    "\\@ada",
    "*@ada*",
    "@*ada*",
    "@<b></b>ada",
    "a/@ada",
    "@acme/team",
    "> @ada",
    "- `a\n- @ada`",
    "| `x | @ada` |\n| - | - |",
    "~~@ada~~",
    "[@ada](x)",
    "# @ada",
    "@dependabot merge",
    "```\ncode\n``` not closed @ada\n```\n@ada",
    "~~~\n```\n~~~\n@ada",
    "- x\n\n    ```\n    code\n@ada\n    ```\n@ada",
)
REFERENCES = (
    "#9",
    "acme/calc#9",
    "GH-9",
    "gh-9",
    "https://github.com/acme/calc/issues/9",
    "https://gitlab.com/acme/calc/-/issues/9",
    "!9",
    "acme/calc!9",
    "&9",
    "%9",
    '%"one"',
    "~bug",
    "[issue:9]",
    "[vulnerability:9]",
)
CLOSING = (
    *("close", "closes", "Closed", "closing", "fix", "Fixes", "fixed", "fixing"),
    *(
        "resolve",
        "RESOLVES",
        "resolved",
        "resolving",
        "implement",
        "implements",
        "implemented",
        "Implementing",
    ),
)
COMMANDS = (
    "/close",
    "  /merge",
    "/assign me",
    "`x`\n/approve",
    "```\n/close\n```",
    "- x\n/close",
    "```sh\n/lgtm",
    "~~~\n/hold",
)
NAMES = re.compile(r"@[^\s\u200b]|(?<!\w)(?:[#!%~&]|GH-)[\w\"]|\[\w", re.IGNORECASE)


class Page(HTMLParser):
    """The tags of a page, and its text outside of code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.comments, self.text, self.code, self._depth = set[str](), 0, "", "", 0
        self.attributes = set[str]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(f"{name}={value}" for name, value in attrs)
        self._depth += tag in {"code", "pre"}

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag in {"code", "pre"}

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.code += data
            self.text += " "
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments += 1

    def handle_decl(self, decl: str) -> None:
        self.comments += 1

    def handle_pi(self, data: str) -> None:
        self.comments += 1

    def unknown_decl(self, data: str) -> None:
        self.comments += 1


def render(markdown: str) -> Page:
    # With everything on that hosts have: HTML, tables, and links of bare addresses.
    renderer = MarkdownIt("gfm-like", {"html": True, "linkify": True})
    assert renderer.linkify is not None
    # Hosts make a link of `www.` and of a scheme, not of every name with a dot.
    renderer.linkify.set({"fuzzy_link": False})
    return Page(renderer.render(markdown))


@pytest.mark.parametrize("text", [*IMAGES, *LINKS, *HIDDEN, *MENTIONS, *REFERENCES, *COMMANDS])
@pytest.mark.parametrize(
    "frame", ["{}", "Before.\n{}\nAfter.", "- item\n  {}", "> {}", "1. a\n\n    {}", "## {}"]
)
def test_nothing_of_a_text_has_an_effect_in_markdown(text: str, frame: str) -> None:
    markdown = make_inert_markdown(frame.format(text))
    page = render(markdown)
    assert page.tags <= ALLOWED_TAGS, markdown
    assert page.comments == 0
    assert not any(
        "evil" in each or "mermaid" in each or "suggestion" in each for each in page.attributes
    ), markdown
    assert not NAMES.search(page.text), markdown
    assert "://" not in page.text
    assert "$" not in markdown.replace("<span>$</span>", "")
    assert not re.search(r"^\s*/\w", markdown.replace("\n /", "\n "), re.MULTILINE)
    assert not re.search(r"^/", markdown, re.MULTILINE)
    if text in HIDDEN:
        assert "do this" in page.text + page.code, markdown


@pytest.mark.parametrize("word", CLOSING)
@pytest.mark.parametrize(
    "issue", ["#9", "acme/calc#9", "GH-9", "https://github.com/a/b/issues/9", "ABC-9", "issue #9"]
)
@pytest.mark.parametrize(
    "frame", ["{}", "`{}`", "```\n{}\n```", "| {} |\n| - |", "**{}**", "{} and more"]
)
def test_no_word_closes_an_issue(word: str, issue: str, frame: str) -> None:
    # GitLab looks at the text as it is written, in code as well.
    pattern = rf"{word}:?\s+(?:issues?\s+)?{re.escape(issue.removeprefix('issue '))}"
    for separator in (" ", ": ", "  "):
        text = frame.format(f"{word}{separator}{issue}")
        for written in (
            make_inert_markdown(text),
            make_inert_message(text),
            make_inert_line(text, 200),
        ):
            assert not re.search(pattern, written, re.IGNORECASE), written


def test_what_is_allowed_stays_as_it_is() -> None:
    text = (
        "# Summary\n\nIt *was* **wrong**: `a - b` in src/a.py, a / b and 5 < 6.\n\n"
        "- one\n  - two_three\n1. first\n\n> said\n\n```python\n@property\ndef f(self):\n    return [1]\n```\n\n"
        "Done (100%)."
    )
    page = render(make_inert_markdown(text))
    assert {"h1", "em", "strong", "ul", "ol", "blockquote", "pre"} <= page.tags
    assert page.attributes == {"class=language-python"}
    assert "@property\ndef f(self):\n    return [1]\n" in page.code
    for part in ("It was wrong: ", " in src/a.py, a / b and 5 < 6.", "two_three", "Done (100%)."):
        assert part in page.text
    assert (
        make_inert_markdown("`@decorator` in src/a.py, a / b") == "`@decorator` in src/a.py, a / b"
    )


def test_a_table_keeps_its_columns_and_an_address_can_be_copied() -> None:
    markdown = make_inert_markdown(
        "See https://docs.example/a_b?x=1.\n\n| a | b |\n|---|---|\n| 1 | @x |"
    )
    page = render(markdown)
    assert "https://docs.example/a_b?x=1" in page.code
    assert "| a | b |\n|---|---|\n| 1 | @x |" in page.code
    assert page.text.startswith("See  .")


def test_invisible_characters_are_shown_and_emoji_stay() -> None:
    page = render(make_inert_markdown("a\u200bb\u202ec \U000e0041 \U0001f469\u200d\U0001f4bb"))
    assert "a<U+200B>b<U+202E>c <U+E0041> \U0001f469\u200d\U0001f4bb" in page.text


def test_a_text_of_any_length_is_cut_to_what_a_comment_takes() -> None:
    for text in (
        "x" * 60_000,
        "$" * 60_000,
        "[" * 60_000,
        "a`" * 30_000,
        "word @x\n" * 10_000,
        "```\n" + "y" * 60_000,
    ):
        markdown = make_inert_markdown(text)
        assert 1_000 < len(markdown) <= 50_100
        assert markdown.endswith("... (the rest is in the session)")
        assert "the rest is in the session" in render(markdown).text


def test_code_with_fences_in_it_stays_code() -> None:
    for code in ("````\n@ada\n````", "```", "/close\n~~~\n@ada"):
        assert render(make_code_block(code, "python")).code.rstrip("\n") == code
    for code in ("`", "``x``", "a`b"):
        assert render(f"x {make_code_span(code)} y").code == code
    assert make_code_span("") == ""
    assert make_inert_phrase("**a**\n```\n@x") == "**a** \\`\\`\\` @\u200bx"


TRAILERS = (
    "Co-authored-by: Eve <eve@evil.example>",
    "Signed-off-by: Eve <eve@evil.example>",
    "Codeloop-Request: comment-9",
    "Changelog: removed",
    "BREAKING CHANGE: all",
    "Release-As: 9.9.9",
    "skip-checks: true",
    "skip-checks:true",
    "  Reviewed-by : Eve",
    "Reviewed-by= Eve",
)


@pytest.mark.parametrize("trailer", TRAILERS)
def test_a_commit_message_has_no_trailer_of_the_model(trailer: str) -> None:
    for text in (
        trailer,
        f"Done.\n\n{trailer}",
        f"Done.\n\n{trailer}\n\n\n{trailer}\n",
        f"Done.\r\n{trailer}",
    ):
        body = make_inert_message(text)
        for message in (f"Title\n\n{body}\n\nCodeloop-Request: issue-1\n", f"Title\n\n{body}\n"):
            found = subprocess.run(
                ["git", "interpret-trailers", "--parse"],
                input=message,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            assert found in {"Codeloop-Request: issue-1\n", ""}
        key = re.split("[:=]", trailer)[0].strip()
        assert not re.search(rf"^\s*{key}\s*[:=]", body, re.MULTILINE)
        assert not re.search(rf"^{key}\s*:", make_inert_markdown(text), re.MULTILINE)
        assert read_inert_message(body) == "\n".join(
            line.rstrip() for line in text.replace("\r", "␍").strip().split("\n")
        )


@pytest.mark.parametrize(
    "sign",
    [
        "[skip ci]",
        "[ci skip]",
        "[no ci]",
        "[skip actions]",
        "[actions skip]",
        "[CI SKIP]",
        "[skip netlify]",
        "***NO_CI***",
    ],
)
def test_a_title_or_message_skips_no_build(sign: str) -> None:
    for written in (make_inert_line(f"Fix add {sign}", 70), make_inert_message(f"Fixed. {sign}")):
        assert sign not in written
        assert sign.strip() in read_inert_message(written)


def test_a_plain_title_mentions_nobody_and_stays_one_line() -> None:
    assert make_inert_line("add is wrong: 2 + 3 (see docs)", 70) == "add is wrong: 2 + 3 (see docs)"
    title = make_inert_line("Thanks @ada, see #9 and\nhttps://a.example/issues/9", 70)
    assert title == "Thanks @\u200bada, see #\u200b9 and https:/\u200b/a.example/issues/9"


@pytest.mark.parametrize("seed", range(4))
def test_pieces_in_any_order_have_no_effect(seed: int) -> None:
    draw = random.Random(seed)
    marks = ("`", "``", "```", "~~~", "|", "\n", "\n\n", "> ", "- ", "    ", "\\", "*", " ")
    pieces = (*IMAGES, *LINKS, *MENTIONS, *HIDDEN, *marks, *marks)
    for _ in range(60):
        text = "".join(draw.choice(pieces) for _ in range(draw.randint(2, 8)))
        markdown = make_inert_markdown(text)
        page = render(markdown)
        assert page.tags <= ALLOWED_TAGS, text
        assert page.comments == 0, text
        assert not NAMES.search(page.text), text
        assert not any("evil" in each for each in page.attributes), text
