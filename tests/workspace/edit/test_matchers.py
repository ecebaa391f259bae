"""Each matcher alone: what it finds, and what it leaves to the others."""

import pytest

from codeloop.workspace.edit import matchers as m


def found(matcher: m.Matcher, content: str, old: str) -> list[str]:
    return [content[start:end] for start, end in matcher(content, old)]


def test_exact_finds_overlapping_places() -> None:
    assert list(m.match_exact("aaa", "aa")) == [(0, 2), (1, 3)]


def test_exact_lines_finds_whole_lines_only() -> None:
    assert found(m.match_exact_lines, "ab\na\nba\n", "a") == ["a"]
    assert found(m.match_exact_lines, "x\na\nb\n", "a\nb\n") == ["a\nb\n"]


def test_line_trimmed_ignores_the_blanks_around_each_line() -> None:
    assert found(m.match_trimmed_lines, " a \n\tb\nc\n", "a\n  b") == [" a \n\tb"]


def test_whitespace_normalised_counts_blanks_only_between_words() -> None:
    assert found(m.match_loose_whitespace, "f( a,b )\n", "f(a, b)") == ["f( a,b )"]
    assert found(m.match_loose_whitespace, "return  x\n", "return x") == ["return  x"]
    assert found(m.match_loose_whitespace, "returnx\n", "return x") == []


def test_whitespace_normalised_folds_curly_quotes() -> None:
    assert found(m.match_loose_whitespace, "a = 'b' + c\n", "a = \u2018b\u2019 + c") == [
        "a = 'b' + c"
    ]


@pytest.mark.parametrize(
    ("content", "old"),
    [
        ("a\n\tb", "a\\n\\tb"),
        ('x = "y"', 'x = \\"y\\"'),
        ("a < b", "a &lt; b"),
        ("p\nq", "3: p\n4: q"),
    ],
)
def test_escape_normalised_undoes_what_disfigured_the_text(content: str, old: str) -> None:
    assert found(m.match_unescaped, content, old) == [content]


def test_escape_normalised_leaves_plain_text_alone() -> None:
    assert found(m.match_unescaped, "a b", "a b") == []


def test_trimmed_boundary_finds_the_inner_text_but_not_within_words() -> None:
    assert found(m.match_trimmed_ends, "x = foo(1)", "\n foo(1) \n") == ["foo(1)"]
    assert found(m.match_trimmed_ends, "foobar", " foo ") == []
    assert found(m.match_trimmed_ends, "foo", "foo") == []


def test_block_anchor_takes_equal_edges_and_an_alike_middle() -> None:
    content = "start\n  the quick brown fox\nstop\n"
    assert found(m.match_block_edges, content, "start\n  the quick brown dog\nstop") == [
        content.rstrip("\n")
    ]
    assert found(m.match_block_edges, content, "start\n  something else altogether\nstop") == []


def test_block_anchor_allows_a_line_more() -> None:
    body = [f"value_{n} = {n}" for n in range(8)]
    content = "\n".join(["start", *body, "stop"])
    assert found(
        m.match_block_edges, content, "\n".join(["start", *body[:4], *body[5:], "stop"])
    ) == [content]


def test_block_anchor_yields_every_alike_block() -> None:
    content = "start\nabcdefgh\nstop\nstart\nabcdefgi\nstop\n"
    assert len(found(m.match_block_edges, content, "start\nabcdefgj\nstop")) == 2


def test_context_aware_lets_an_edge_line_drift() -> None:
    content = "# a remark here\na = 1\nb = 2\nc = 3\nd = 4\n"
    assert found(m.match_most_lines, content, "# the remark here\na = 1\nb = 2\nc = 3\nd = 4") == [
        content.rstrip("\n")
    ]
    assert found(m.match_most_lines, content, "x\ny\nb = 2\nc = 3\nd = 4") == []


def test_context_aware_wants_four_lines() -> None:
    assert found(m.match_most_lines, "a\nb\nc\n", "x\nb\nc") == []


@pytest.mark.parametrize("matcher", [*m.EDIT_MATCHERS, *m.PATCH_MATCHERS])
@pytest.mark.parametrize("old", [" ", "\n", "\n \n", "\t\n\n"])
def test_blanks_alone_match_nothing_but_themselves(matcher: m.Matcher, old: str) -> None:
    assert found(matcher, "a\nb\nc\n", old) in ([], ["\n"] * 3)
