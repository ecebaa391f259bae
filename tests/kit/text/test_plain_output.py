"""What a program printed, made readable: nothing that stays on a terminal is lost."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codeloop.kit.text.plain_output import PlainOutput, to_plain_text

SEQUENCES = (
    "\x1b[31m", "\x1b[0m", "\x1b[38;5;12m", "\x1b[K", "\x1b[?25l", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\",
    "\x1b(B", "\x1b=", "\a", "\x0f", "\x1bP1$r\x1b\\",
)  # fmt: skip
WORDS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=12)
LINES = st.lists(st.one_of(WORDS, st.sampled_from(["same", "", "ok 1", "ok 2"])), max_size=30)


def expanded(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        found = re.fullmatch(r"\.\.\. the line above (\d+) times more", line)
        lines += [lines[-1]] * int(found[1]) if found else [line]
    return "\n".join(lines)


CASES = {
    "colours": ("\x1b[1;31mFAILED\x1b[0m test_a\n", "FAILED test_a\n"),
    "a title and a link": (
        "\x1b]0;make\x07see \x1b]8;;http://a.b\x1b\\docs\x1b]8;;\x1b\\\n",
        "see docs\n",
    ),
    "colours with erasing, as grep has them": (
        "\x1b[01;31m\x1b[Kneedle\x1b[m\x1b[K in a\n",
        "needle in a\n",
    ),
    "carriage returns": ("  1%\r 50%\r100% done\nnext\n", "100% done\nnext\n"),
    "line ends of Windows": ("a\r\nb\r\n", "a\nb\n"),
    "a return at the end": ("working\r", "working"),
    "a line begun again by a sequence": (
        "step 1\x1b[2K\x1b[1Gstep 2\x1b[2K\x1b[1Gstep 3\n",
        "step 3\n",
    ),
    "backspaces": ("Working /\b-\b\\\b|\bdone\n", "Working done\n"),
    "rows written over, as docker has them": (
        "a: 1%\nb: 1%\n\x1b[2A\x1b[2K\ra: 50%\x1b[1B\x1b[2K\rb: 40%\x1b[1B\r\x1b[2A\ra: done\n\x1b[2K\rb: done\nend\n",
        "a: done\nb: done\nend\n",
    ),
    "rows written over, as rich has them": (
        "start\nx 10%\ny 20%\r\x1b[2K\x1b[1A\x1b[2Kx 30%\ny 40%\r\x1b[2K\x1b[1A\x1b[2Kx 100%\ny 100%\nend\n",
        "start\nx 100%\ny 100%\nend\n",
    ),
    "rows that are cleared": ("head\nx 1%\ny 1%\nz 1%\n\x1b[3A\x1b[Jdone\n", "head\ndone\n"),
    "rows written over by the line before": ("x 1%\n\x1b[Fx 2%\n\x1b[1Fx 3%\n", "x 3%\n"),
    "a move up from the first row": ("\x1b[9Aa\nb\n", "a\nb\n"),
    "a move down that nothing follows": ("a\nb\n\x1b[2A\x1b[9B\rc\n", "a\nb\nc\n"),
    "overstruck words": ("N\bNA\bAM\bME\bE _\bx\n", "NAME x\n"),
    "a cursor moved back": ("10%\x1b[3D20%\n", "20%\n"),
    "equal lines": ("a\n" + "b\n" * 413 + "c\n", "a\nb\n... the line above 412 times more\nc\n"),
    "three equal lines": ("b\nb\nb\n", "b\nb\nb\n"),
    "a missing last line end": ("same\n" * 11 + "same", "same\n... the line above 11 times more"),
    "equal lines shorter than their count": ("}\n" * 5, "}\n" * 5),
    "a sequence that never ends": ("a\x1b]0;title\nb\x1b[31", "a\nb[31"),
    "a character that no text holds": ("a\0b\n", "a\ufffdb\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_reads_as_the_terminal_shows_it(name: str) -> None:
    printed, read = CASES[name]
    assert to_plain_text(printed).text == read


def test_rows_of_progress_become_the_first_and_the_last() -> None:
    rows = [
        f"Downloading {n}% [{'=' * n}{' ' * (100 - n)}] {n * 1.5:.1f} MB/s eta 0:00:{100 - n}"
        for n in range(101)
    ]
    found = to_plain_text("start\n" + "\n".join(rows) + "\nSuccess\n")
    assert (
        found.text == f"start\n{rows[0]}\n... 99 rows of progress in between\n{rows[-1]}\nSuccess\n"
    )
    assert found.is_reduced


def test_rows_of_tests_that_passed_become_the_first_and_the_last() -> None:
    rows = [f"{'.' * 60}{'sxX'[n % 3]}{'.' * 11} [{n * 10:3}%]" for n in range(1, 11)]
    found = to_plain_text("\n".join([*rows, "510 passed, 3 skipped"]))
    assert (
        found.text
        == f"{rows[0]}\n... 8 rows of progress in between\n{rows[-1]}\n510 passed, 3 skipped"
    )
    assert found.is_reduced


def test_rows_of_progress_that_are_shorter_than_what_says_so_stay() -> None:
    rows = [f"building {n}/4" for n in range(1, 5)]
    assert to_plain_text("\n".join(rows)) == PlainOutput("\n".join(rows))
    long = [f"building {'x' * 120} {n}/4" for n in range(1, 5)]
    found = to_plain_text("\n".join(long))
    assert found == PlainOutput(
        f"{long[0]}\n... 2 rows of progress in between\n{long[3]}", is_reduced=True
    )


def test_rows_written_over_are_said_to_be_reduced() -> None:
    assert to_plain_text("x 1%\n\x1b[1Ax 2%\n").is_reduced
    assert to_plain_text("x 1%\ny\n\x1b[2A\x1b[0Jdone\n").is_reduced


@pytest.mark.parametrize(
    "lines",
    [
        [
            f"{letters} [{n * 10}%]"
            for n, letters in enumerate(["..F.", ".EE.", "F..F", "...E", "xFx."], 1)
        ],
        [f"tests/test_{n}.py .... [{n * 10}%]" for n in range(1, 11)],
        [f"[{n}/9] cc -c {name}.c" for n, name in enumerate("abcdefghi", 1)],
        [f"src/a{n}.py 100 {9 - n} {90 + n}%" for n in range(9)],
        [f"2024-01-01 10:00:{n} request {n} took {n} ms" for n in range(10, 60)],
        ["coverage 90%", "coverage 80%", "coverage 70%", "coverage 60%", "coverage 50%"],
        [str(n) for n in range(50)],
    ],
)
def test_lines_that_differ_in_more_than_progress_all_stay(lines: list[str]) -> None:
    found = to_plain_text("\n".join(lines))
    assert (found.text, found.is_reduced) == ("\n".join(lines), False)


@pytest.mark.slow
@given(LINES)
@example(["x"] * 9)
def test_plain_lines_can_be_restored_to_the_last_character(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = to_plain_text(text)
    assert found.is_reduced or expanded(found.text) == text


@given(LINES, st.lists(st.tuples(st.integers(0, 400), st.sampled_from(SEQUENCES)), max_size=20))
def test_control_sequences_change_nothing(
    lines: list[str], inserted: list[tuple[int, str]]
) -> None:
    text = printed = "\n".join(lines)
    for place, sequence in sorted(inserted, reverse=True):
        at = min(place, len(text))
        printed = printed[:at] + sequence + printed[at:]
    assert to_plain_text(printed).text == to_plain_text(text).text


@pytest.mark.slow
@given(st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=12))
def test_the_last_state_of_every_line_stays(states: list[list[str]]) -> None:
    found = to_plain_text("\n".join("\r".join(line) for line in states))
    last = [next((state for state in reversed(line) if state.strip()), line[0]) for line in states]
    assert found.text == to_plain_text("\n".join(last)).text
    rows = zip(states, last, strict=True)
    others = {
        state.strip() for line, kept in rows for state in line if state.strip() != kept.strip()
    }
    assert found.is_reduced or not others - {""}


@given(st.text(st.sampled_from("ab1%/ =\x1b[]();\b\r\n\t\x07\x00KmGAJB2"), max_size=300))
def test_nothing_that_steers_a_terminal_is_left(printed: str) -> None:
    assert not set(to_plain_text(printed).text) & set("\x1b\b\r\x07\x00")
