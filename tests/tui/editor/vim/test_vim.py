"""The keys of vi on a buffer: a text with a cursor in, a text with a cursor out.
`|` is the cursor.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.chips import Chip, expand_chips
from codeloop.tui.editor.grapheme_bounds import find_grapheme_bounds
from codeloop.tui.editor.vim.text_objects import find_text_object
from codeloop.tui.editor.vim.vim import Vim

ESC = "\x1b"
REDO = "\x12"


def at(shown: str) -> Vim:
    """Return vi in normal mode over a text."""
    before, _, after = shown.partition("|")
    vim = Vim(Buffer(before + after), lambda _: False)
    vim.press("escape", None)
    vim.buffer.move(len(before))
    return vim


def keys(vim: Vim, typed: str) -> None:
    for char in typed:
        if char == ESC:
            vim.press("escape", None)
        elif char == REDO:
            vim.press("ctrl+r", None)
        elif not vim.press("enter" if char == "\n" else char, char) and vim.mode == "insert":
            vim.buffer.type_text(char)


def shown(vim: Vim) -> str:
    text, cursor = vim.buffer.text, vim.buffer.cursor
    return text[:cursor] + "|" + text[cursor:]


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        # motions
        ("|one two three", "w", "one |two three"),
        ("|one two three", "2w", "one two |three"),
        ("one two |three", "b", "one |two three"),
        ("|one two three", "e", "on|e two three"),
        ("|one two three", "ee", "one tw|o three"),
        ("|a.b c", "w", "a|.b c"),
        ("|a.b c", "W", "a.b |c"),
        ("|a.b c", "E", "a.|b c"),
        ("a.b| c", "B", "|a.b c"),
        ("|one\n\ntwo", "w", "one\n|\ntwo"),
        ("one\n\n|two", "b", "one\n|\ntwo"),
        ("one t|wo", "0", "|one two"),
        ("  one t|wo", "^", "  |one two"),
        ("|one two", "$", "one tw|o"),
        ("|one\ntwo\nthree", "G", "one\ntwo\n|three"),
        ("|one\ntwo\nthree", "2G", "one\n|two\nthree"),
        ("one\ntwo\nth|ree", "gg", "|one\ntwo\nthree"),
        ("|one two", "fo", "one tw|o"),
        ("|one two", "to", "one t|wo"),
        ("one tw|o", "Fo", "|one two"),
        ("one tw|o", "To", "o|ne two"),
        ("|a-b-c-d", "f-;", "a-b|-c-d"),
        ("|a-b-c-d", "f-;,", "a|-b-c-d"),
        ("|a-b-c-d", "t-;", "a-|b-c-d"),
        ("|a-b-c-d", "3f-", "a-b-c|-d"),
        ("on|e\ntwo\nx", "j", "one\ntw|o\nx"),
        ("on|e\nx\nthree", "jj", "one\nx\nth|ree"),
        ("one\ntw|o", "k", "on|e\ntwo"),
        ("|f(a, (b))", "%", "f(a, (b)|)"),
        ("f(a, (b)|)", "%", "f|(a, (b))"),
        ("a|b", "l", "a|b"),
        ("|ab", "h", "|ab"),
        ("|one\n\ntwo\n\nthree", "}", "one\n|\ntwo\n\nthree"),
        ("one\n\ntwo\n\nth|ree", "{", "one\n\ntwo\n|\nthree"),
        ("|0123456789ab", "10l", "0123456789|ab"),
        ("|0123456789ab", "10x", "|ab"),
        ("one two th|ree", "ge", "one tw|o three"),
        ("one a.b th|ree", "gE", "one a.|b three"),
        ("|one two  ", "g_", "one tw|o  "),
        ("one t|wo", "3|", "on|e two"),
        ("o|ne\n  two", "+", "one\n  |two"),
        ("  one\nt|wo", "-", "  |one\ntwo"),
        ("|One. Two! Three", "))", "One. Two! |Three"),
        ("One. Two! T|hree", "((", "One. |Two! Three"),
        ("|one two one", "/two\n", "one |two one"),
        ("|one two one", "/one\nn", "|one two one"),
        ("one two |one", "?o\nN", "one two |one"),
        ("|one two one", "*", "one two |one"),
        ("|one\ntwo\nthree", ":2\n", "one\n|two\nthree"),
        ("on|e two\nx\nthree four", "$jj", "one two\nx\nthree fou|r"),
        ("|one\ntwo", "5j", "one\n|two"),
        # operators
        ("o|ne two", "gUiw", "|ONE two"),
        ("O|NE two", "guu", "|one two"),
        ("|oNe two", "g~w", "|OnE two"),
        ("|one\ntwo\nthree", ">j", "    |one\n    two\nthree"),
        ("    |one", "<<", "|one"),
        ("|one two", "d/two\n", "|two"),
        ("One. T|wo! Three", "das", "One. |Three"),
        ("One. T|wo! Three", "cisx" + ESC, "One. |x Three"),
        ("|one\ntwo\n\nthree", "dap", "|three"),
        ("|one\n\ntwo", "d}", "|\ntwo"),
        ("a ba|r two three", "c2wx" + ESC, "a ba|x three"),
        # registers
        ("|one two", '"ayiww"aP', "one on|etwo"),
        ("|one\ntwo", '"ayyj"Ayy"ap', "one\ntwo\n|one\ntwo"),
        ("|one two", 'yiww"_diwP', "oneon|e "),
        ("|one two", 'yiwwdiw"0P', "oneon|e "),
        ("one |two three", "dw", "one |three"),
        ("one |two", "dw", "one| "),
        ("|one two three", "d2w", "|three"),
        ("|one two three four", "2d2w", "|"),
        ("|one two\nthree", "d2w", "|\nthree"),
        ("one |two three", "db", "|two three"),
        ("|one two", "de", "| two"),
        ("one t|wo three", "d$", "one |t"),
        ("one t|wo three", "D", "one |t"),
        ("one |two three", "d0", "|two three"),
        ("|a, b, c", "dt,", "|, b, c"),
        ("|a, b, c", "df,", "| b, c"),
        ("a, b|, c", "dF,", "a|, c"),
        ("|one\ntwo\nthree", "dd", "|two\nthree"),
        ("one\ntwo\n|three", "dd", "one\n|two"),
        ("|one\ntwo\nthree", "2dd", "|three"),
        ("|one", "dd", "|"),
        ("one\n|two\nthree\nfour", "dj", "one\n|four"),
        ("one\n|two\nthree", "dG", "|one"),
        ("one\n|two\nthree", "dgg", "|three"),
        ("f|(a)", "d%", "|f"),
        ("f(a|)", "d%", "|f"),
        ("one |two three", "cwx" + ESC, "one |x three"),
        ("one |two three", "cWx" + ESC, "one |x three"),
        ("one| two", "cwx" + ESC, "one|xtwo"),
        ("|one two", "c$x" + ESC, "|x"),
        ("one t|wo", "Cx" + ESC, "one t|x"),
        ("one\nt|wo\nthree", "ccx" + ESC, "one\n|x\nthree"),
        ("one\nt|wo\nthree", "Sx" + ESC, "one\n|x\nthree"),
        ("|one two", "yw$p", "one twoone| "),
        ("|one\ntwo", "yyp", "one\n|one\ntwo"),
        ("one\n|two", "yyP", "one\n|two\ntwo"),
        ("|one\ntwo", "Yjp", "one\ntwo\n|one"),
        ("|one\ntwo", "ddp", "two\n|one"),
        ("|ab", "xp", "b|a"),
        ("|ab", "ylp", "a|ab"),
        ("|ab", "yl3p", "aaa|ab"),
        # text objects
        ("one tw|o three", "diw", "one | three"),
        ("one tw|o three", "daw", "one |three"),
        ("one tw|o", "daw", "on|e"),
        ("one a.|b three", "diW", "one | three"),
        ('say "he|llo you" now', 'di"', 'say "|" now'),
        ('say "he|llo you" now', 'da"', "say |now"),
        ('s|ay "hello"', 'ci"x' + ESC, 'say "|x"'),
        ("f(a, g(|b), c)", "di(", "f(a, g(|), c)"),
        ("f(a, g(b), |c)", "dib", "f(|)"),
        ("f(a, g(b), |c)", "dab", "|f"),
        ("[a, |b]", "ci[x" + ESC, "[|x]"),
        ("{a |b}", "di{", "{|}"),
        ("<a |b>", "di<", "<|>"),
        ("one\n\ntw|o\ntwo\n\nthree", "dip", "one\n\n|\nthree"),
        # single commands
        ("|abc", "x", "|bc"),
        ("|abc", "2x", "|c"),
        ("ab|c", "x", "a|b"),
        ("ab|c", "X", "a|c"),
        ("|abc", "rx", "|xbc"),
        ("|abc", "2rx", "x|xc"),
        ("|abc", "9rx", "|abc"),
        ("|abc", "~", "A|bc"),
        ("|abc", "sx" + ESC, "|xbc"),
        ("on|e", "Ix" + ESC, "|xone"),
        ("  on|e", "Ix" + ESC, "  |xone"),
        ("o|ne", "Ax" + ESC, "one|x"),
        ("o|ne", "ax" + ESC, "on|xe"),
        ("o|ne", "ix" + ESC, "o|xne"),
        ("o|ne", "ox" + ESC, "one\n|x"),
        ("one\nt|wo", "Ox" + ESC, "one\n|x\ntwo"),
        ("|one\n  two", "J", "one| two"),
        ("|one\ntwo\nthree", "3J", "one two| three"),
        ("|one two", "Rab" + ESC, "a|be two"),
        ("|ab", "Rxyz" + ESC, "xy|z"),
        ("|x", "3ia" + ESC, "aa|ax"),
        ("|x", "2oy" + ESC, "x\ny\n|y"),
        ("|one\n two", "gJ", "one| two"),
        ("|ab cd", "ax" + ESC + "$giy" + ESC, "ax|yb cd"),
        # undo, redo, again
        ("|one two", "dwu", "|one two"),
        ("|one two", "dwu" + REDO, "|two"),
        ("|one two", "ihello you" + ESC + "u", "|one two"),
        ("|one two three", "dw.", "|three"),
        ("|one two", "cwx" + ESC + "w.", "x |x"),
        ("|one", "ab" + ESC + "..", "obb|bne"),
        ("|a\nb\nc", "Ax" + ESC + "j.", "ax\nb|x\nc"),
        ("|one\ntwo", "ox" + ESC + ".", "one\nx\n|x\ntwo"),
        ("|aaaa", "x2.", "|a"),
        # visual
        ("|one two", "ved", "| two"),
        ("one tw|o", "vbd", "one| "),
        ("|one\ntwo\nthree", "Vjd", "|three"),
        ("|one two", "viwy$p", "one twoon|e"),
        ("one |two", "viwcx" + ESC, "one |x"),
        ("one |two", "viwU", "one |TWO"),
        ("|one two", "vlohd", "|e two"),
        ("|one two", "ve" + ESC + "x", "on| two"),
        ("|ab cd", "yiwwviwp", "ab a|b"),
        ("|one\ntwo", "VjJ", "one| two"),
        ("|one two", "verx", "|xxx two"),
        ("|one two\nthree", "v$d", "|three"),
        ("on|e two\nthree", "vD", "|three"),
        ("|one two", "v" + ESC + "wgvd", "|ne two"),
        ("|one\ntwo", "Vj>", "    |one\n    two"),
        ("|one\ntwo\nthree", "yyjVp", "one\n|one\nthree"),
        ("|one\n\ntwo", "vipd", "|\ntwo"),
        ("|one two", "vec!" + ESC, "|! two"),
        # what is not finished or means nothing changes nothing
        ("|one two", "d" + ESC + "x", "|ne two"),
        ("|one two", "dzx", "|one two"),
        ("|one two", "fz", "|one two"),
        ("|one two", "dfz", "|one two"),
        ("|one", "di(", "|one"),
        ("a| f(b) c", "di(", "a f(|) c"),
        ("one|  \ntwo", "J", "one  |two"),
        ("one\ntw|o", "ygg", "|one\ntwo"),
        ("|one two", "mxgzzzZZ@aqb[[", "|one two"),
        ("|one two", "d'a", "|one two"),
        ("|one two", ":wq\n", "|one two"),
        ("|one two", "/gone\n", "|one two"),
        ("|one two", "/abc" + ESC + "x", "|ne two"),
        ("|", "x", "|"),
        ("|", "dw", "|"),
        ("|", "dd", "|"),
        ("|", "p", "|"),
        ("|", "J", "|"),
        ("|", "iw" + ESC, "|w"),
    ],
)
def test_keys_do_what_they_do_in_vi(before: str, typed: str, after: str) -> None:
    vim = at(before)
    keys(vim, typed)
    assert shown(vim) == after
    assert vim.mode == "normal"


def test_a_character_of_several_code_points_is_one() -> None:
    vim = at("|e\u0301👍🏽🇩🇪漢x")
    places: list[int] = []
    for _ in range(5):
        places.append(vim.buffer.cursor)
        keys(vim, "l")
    assert places == [0, 2, 4, 6, 7]
    keys(vim, "0x")
    assert vim.buffer.text == "👍🏽🇩🇪漢x"
    keys(vim, "xra")
    assert vim.buffer.text == "a漢x"


def test_the_first_and_the_last_line_lead_into_the_history() -> None:
    asked: list[str] = []

    def run(action: str) -> bool:
        asked.append(action)
        return True

    vim = Vim(Buffer("one\ntwo"), run)
    vim.press("escape", None)
    keys(vim, "kkj")
    assert asked == ["history_previous"]
    keys(vim, "j")
    assert asked == ["history_previous", "history_next"]


def test_an_escape_and_a_letter_that_arrive_as_one_are_two() -> None:
    vim = at("one tw|o")
    keys(vim, "i")
    assert vim.press("alt+b", None)
    keys(vim, "x")
    assert (shown(vim), vim.mode) == ("one |wo", "normal")
    keys(vim, "i")
    vim.press("alt+shift+a", None)
    assert (shown(vim), vim.mode) == ("one wo|", "insert")


def test_keys_that_mean_nothing_here_are_left_to_others() -> None:
    vim = at("one|")
    assert not vim.press("enter", None)
    assert not vim.press("escape", None)
    assert not vim.press("ctrl+c", None)


WRITTEN = st.text(alphabet="ab .,()\"'\n漢e\u0301👍🏽", max_size=30)
KEYS = st.text(
    alphabet="hjklwbeWBE0^$gGfFtT;,%dcyiaoOIAxXrRpPuJ~vVsSCDYU. 123\"'()<>/?\nn*:_|+-mpw"
    + ESC
    + REDO,
    max_size=25,
)


@pytest.mark.slow
@given(WRITTEN, KEYS)
def test_no_keys_break_it_and_undo_brings_everything_back(written: str, typed: str) -> None:
    vim = at("|" + written)
    keys(vim, typed + ESC)
    text, cursor = vim.buffer.text, vim.buffer.cursor
    assert 0 <= cursor <= len(text)
    edges = {start for start, _ in find_grapheme_bounds(text)} | {len(text)}
    assert cursor in edges
    assert vim.mode in {"normal", "insert"}
    last = None
    while vim.buffer.undo():
        last = vim.buffer.text
    assert last in {None, written}
    while vim.buffer.redo():
        last = vim.buffer.text
    assert vim.buffer.text == last or last is None


@given(st.integers(0, 3), KEYS)
def test_a_chip_is_never_taken_apart(place: int, typed: str) -> None:
    vim = Vim(Buffer("one two"), lambda _: False)
    vim.buffer.move(place)
    vim.buffer.insert_chip(Chip("[Pasted 9 lines]", "PASTED"))
    vim.press("escape", None)
    keys(vim, typed + ESC)
    sent = expand_chips(vim.buffer.chips, vim.buffer.text)
    chips = [char for char in vim.buffer.text if char in vim.buffer.chips]
    assert sent.count("PASTED") == len(chips)


@pytest.mark.parametrize(
    ("text", "offset", "kind", "around", "found"),
    [
        ("one\n\ntwo", 4, "w", False, (4, 4)),
        ("one\ntwo", 3, "w", False, (0, 3)),
        ("one\ntwo", 0, "w", True, (0, 3)),
        ("one  \n  two", 3, "w", True, (3, 5)),
        ("one  two", 3, "w", True, (3, 8)),
        ("one  two", 0, "w", True, (0, 5)),
        ("a 'one'\n 'two'", 3, "'", True, (1, 7)),
        ("a 'one'  b", 3, "'", True, (2, 9)),
        ("  'one'", 3, "'", True, (2, 7)),
        ("a 'one'", 6, "'", False, (3, 6)),
        ("a 'one' b", 7, "'", False, None),
        ("a 'one' 'two'", 7, "'", False, (9, 12)),
        (r"'a\'b'", 1, "'", False, (1, 5)),
        ("'a\nb'", 1, "'", False, None),
    ],
)
def test_an_object_stays_within_its_line(
    text: str, offset: int, kind: str, around: bool, found: tuple[int, int] | None
) -> None:
    assert find_text_object(text, offset, kind, around=around) == found
