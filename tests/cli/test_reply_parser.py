"""What a person means by the words of an answer."""

from collections.abc import Sequence

import pytest

from codeloop.cli.questions.typed_answers import (
    OptionChoice,
    ReplyMeaning,
    parse_choice,
    parse_reply,
)


@pytest.mark.parametrize(
    ("line", "means"),
    [
        *(
            (each, "yes")
            for each in (
                "y",
                "Y",
                "yes",
                "YES!",
                "yes please",
                "yep",
                "ok",
                "Ok.",
                "sure",
                "sure, go ahead",
            )
        ),
        *(
            (each, "yes")
            for each in (
                "1",
                " y ",
                "yeah",
                "okay",
                "of course",
                "do it",
                "yes, thanks",
                "ok ok",
                "please",
            )
        ),
        *(
            (each, "session")
            for each in ("s", "S", "2", "session", "for this session", "yes, for this session")
        ),
        *(
            (each, "always")
            for each in ("a", "always", "3", "yes always", "always please", "Always.")
        ),
        *(
            (each, "no")
            for each in (
                "n",
                "no",
                "No!",
                "nope",
                "no thanks",
                "4",
                "stop",
                "don't",
                "do not",
                "no, stop",
                "cancel",
            )
        ),
        *(
            (each, "words")
            for each in ("use another name", "no, use pnpm", "run it with --dry-run first")
        ),
        *(
            (each, "unclear")
            for each in ("", "  ", "?", "5", "0", "x", "hmm", "asdf", "12", "yn", "yes but not now")
        ),
        *(
            (each, "unclear")
            for each in ("ok, use pnpm instead", "...", "y n", "yes no", "é", "1 2")
        ),
    ],
)
def test_an_answer_to_a_permission(line: str, means: ReplyMeaning) -> None:
    assert parse_reply(line, always=True) == means


def test_without_an_always_it_can_not_be_chosen() -> None:
    assert parse_reply("a", always=False) == "unclear"
    assert parse_reply("always", always=False) == "unclear"
    assert parse_reply("s", always=False) == "unclear"
    assert parse_reply("2", always=False) == "no"
    assert parse_reply("3", always=False) == "unclear"


LABELS = ["SQLite", "Postgres", "My SQL"]


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("1", ["SQLite"]),
        ("postgres", ["Postgres"]),
        ("1 3", ["SQLite", "My SQL"]),
        ("3, 1", ["My SQL", "SQLite"]),
        ("1 and 2", ["SQLite", "Postgres"]),
        ("my sql and 1", ["My SQL", "SQLite"]),
        ("2 2", ["Postgres"]),
        ("#2", ["Postgres"]),
    ],
)
def test_options_are_chosen_by_number_or_by_their_words(line: str, labels: list[str]) -> None:
    assert parse_choice(line, LABELS, allows_several=True, allows_own_words=False).labels == labels


@pytest.mark.parametrize(
    "line", ["0", "4", "1 9", "99999999999999999999", "-1", "oracle", "", "1.5"]
)
@pytest.mark.parametrize("several", [True, False])
def test_an_option_that_does_not_exist_is_refused(line: str, *, several: bool) -> None:
    assert parse_choice(line, LABELS, allows_several=several, allows_own_words=False).labels == []


def test_one_is_one_and_own_words_count_where_they_are_welcome() -> None:
    def parse(line: str, labels: Sequence[str] = LABELS) -> OptionChoice:
        return parse_choice(line, labels, allows_several=False, allows_own_words=True)

    assert parse("1 2").problem == "Only one can be chosen."
    assert parse("oracle, or 3 of them").labels == ["oracle, or 3 of them"]
    assert parse("7").problem.startswith("There is no option 7.")
    assert parse("8080", []).labels == ["8080"]
    assert parse("  ", []).labels == []
