"""Keys, pastes and answers of the terminal are told apart, however they are cut."""

import pytest

from codeloop.tui.terminal.input.input_parser import InputParser, TerminalInput


def keys(text: str) -> TerminalInput:
    return TerminalInput("keys", text)


CASES = [
    ("abc", [keys("abc")]),
    ("\x1b[Aab", [keys("\x1b[Aab")]),
    (
        "a\x1b[200~one\r\x1b[A two\x1b[201~b",
        [keys("a"), TerminalInput("paste", "one\r\x1b[A two"), keys("b")],
    ),
    (
        "\x1b]11;rgb:ffff/fafa/0000\x1b\\x",
        [TerminalInput("answer", "rgb:ffff/fafa/0000", "11"), keys("x")],
    ),
    ("\x1b]11;rgb:0000/0000/0000\x07", [TerminalInput("answer", "rgb:0000/0000/0000", "11")]),
    ("\x1b[?62;4;22c\x1b[B", [TerminalInput("answer", "62;4;22", "attributes"), keys("\x1b[B")]),
    (
        "\x1bP>|kitty(0.35.2)\x1b\\a",
        [TerminalInput("answer", "kitty(0.35.2)", "version"), keys("a")],
    ),
    ("\x1b[6;20;10t\x1b[6~", [TerminalInput("answer", "20;10", "cell"), keys("\x1b[6~")]),
    ("\x1b[?1;0;256S\x1b[6;5~", [TerminalInput("answer", "256", "colours"), keys("\x1b[6;5~")]),
    ("\x1b_Gi=1;OK\x1b\\z", [TerminalInput("answer", ""), keys("z")]),
    ("\x1b[?2026;2$y", [keys("\x1b[?2026;2$y")]),
    ("\x1b[200~nul\x00\x1b[201~", [TerminalInput("paste", "nul")]),
    # What tmux pastes with `extended-keys-format csi-u`, and with `xterm`;
    # Ctrl+J is a line feed, Ctrl+I a tab.
    ("\x1b[200~a\x1b[13;1ub\x1b[13uc\x1b[106;5u\x1b[201~", [TerminalInput("paste", "a\rb\rc\n")]),
    (
        "\x1b[200~a\x1b[27;1;13~\x1b[27;5;105~b\x1b[233u\x1b[201~",
        [TerminalInput("paste", "a\r\tbé")],
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_what_arrives_is_taken_apart(text: str, expected: list[TerminalInput]) -> None:
    assert list(InputParser().parse(text)) == expected


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_cut_anywhere_changes_nothing(text: str, expected: list[TerminalInput]) -> None:
    for at in range(1, len(text)):
        parser = InputParser()
        found = [*parser.parse(text[:at]), *parser.parse(text[at:]), *parser.flush()]
        assert "".join(each.text for each in found if each.kind == "keys") == "".join(
            each.text for each in expected if each.kind == "keys"
        )
        assert [each for each in found if each.kind != "keys"] == [
            each for each in expected if each.kind != "keys"
        ]


def test_what_does_not_go_on_was_a_key() -> None:
    parser = InputParser()
    assert list(parser.parse("\x1b]")) == []
    assert not parser.is_idle
    assert list(parser.flush()) == [keys("\x1b]")]
    assert parser.is_idle
    assert list(parser.parse("\x1b")) == []
    assert list(parser.flush()) == [keys("\x1b")]


def test_a_paste_that_waits_for_its_end_is_no_key() -> None:
    parser = InputParser()
    assert list(parser.parse("\x1b[200~half\x1b[20")) == []
    assert list(parser.flush()) == []
    assert list(parser.parse("1~")) == [TerminalInput("paste", "half")]
