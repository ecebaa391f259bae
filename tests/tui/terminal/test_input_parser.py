"""Keys, pastes and answers of the terminal are told apart, however they are cut."""

import pytest

from codeloop.tui.terminal.input_parser import Arrival, Arrivals


def keys(text: str) -> Arrival:
    return Arrival("keys", text)


CASES = [
    ("abc", [keys("abc")]),
    ("\x1b[Aab", [keys("\x1b[Aab")]),
    ("a\x1b[200~one\r\x1b[A two\x1b[201~b", [keys("a"), Arrival("paste", "one\r\x1b[A two"), keys("b")]),
    ("\x1b]11;rgb:ffff/fafa/0000\x1b\\x", [Arrival("answer", "rgb:ffff/fafa/0000", "11"), keys("x")]),
    ("\x1b]11;rgb:0000/0000/0000\x07", [Arrival("answer", "rgb:0000/0000/0000", "11")]),
    ("\x1b[?62;4;22c\x1b[B", [Arrival("answer", "62;4;22", "attributes"), keys("\x1b[B")]),
    ("\x1bP>|kitty(0.35.2)\x1b\\a", [Arrival("answer", "kitty(0.35.2)", "version"), keys("a")]),
    ("\x1b[6;20;10t\x1b[6~", [Arrival("answer", "20;10", "cell"), keys("\x1b[6~")]),
    ("\x1b[?1;0;256S\x1b[6;5~", [Arrival("answer", "256", "colours"), keys("\x1b[6;5~")]),
    ("\x1b_Gi=1;OK\x1b\\z", [Arrival("answer", ""), keys("z")]),
    ("\x1b[?2026;2$y", [keys("\x1b[?2026;2$y")]),
    ("\x1b[200~nul\x00\x1b[201~", [Arrival("paste", "nul")]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_what_arrives_is_taken_apart(text: str, expected: list[Arrival]) -> None:
    assert list(Arrivals().take(text)) == expected


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_cut_anywhere_changes_nothing(text: str, expected: list[Arrival]) -> None:
    for at in range(1, len(text)):
        arrivals = Arrivals()
        found = [*arrivals.take(text[:at]), *arrivals.take(text[at:]), *arrivals.flush()]
        assert "".join(each.text for each in found if each.kind == "keys") == "".join(
            each.text for each in expected if each.kind == "keys"
        )
        assert [each for each in found if each.kind != "keys"] == [each for each in expected if each.kind != "keys"]


def test_what_does_not_go_on_was_a_key() -> None:
    arrivals = Arrivals()
    assert list(arrivals.take("\x1b]")) == []
    assert not arrivals.is_idle
    assert list(arrivals.flush()) == [keys("\x1b]")]
    assert arrivals.is_idle
    assert list(arrivals.take("\x1b")) == []
    assert list(arrivals.flush()) == [keys("\x1b")]


def test_a_paste_that_waits_for_its_end_is_no_key() -> None:
    arrivals = Arrivals()
    assert list(arrivals.take("\x1b[200~half\x1b[20")) == []
    assert list(arrivals.flush()) == []
    assert list(arrivals.take("1~")) == [Arrival("paste", "half")]
