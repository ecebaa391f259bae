"""Which names are near enough in spelling to be suggested."""

import pytest

from codeloop.kit.text.suggest import find_similar, format_suggestion

KEYS = ("permission", "provider", "model", "small_model", "agent", "mcp", "share", "shell")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("permision", ["permission"]),
        ("Permission", ["permission"]),
        ("premission", ["permission"]),
        ("modle", ["model"]),
        ("agnet", ["agent"]),
        ("shel", ["shell"]),
        ("sharre", ["share"]),
        ("frobnicate", []),
        ("x", []),
        ("", []),
    ],
)
def test_only_what_is_near_in_spelling_is_suggested(name: str, found: list[str]) -> None:
    assert find_similar(name, KEYS) == found


def test_a_part_of_a_longer_name_counts_where_that_is_asked_for() -> None:
    models = ("claude-sonnet-5", "claude-opus-5", "gpt-6")
    assert find_similar("sonnet", models) == []
    assert find_similar("sonnet", models, parts=True) == ["claude-sonnet-5"]
    assert find_similar("gpt", models, parts=True) == []


def test_fewer_edits_can_be_asked_for() -> None:
    assert find_similar("export", ["explore"]) == ["explore"]
    assert find_similar("export", ["explore"], most_edits=1) == []


def test_a_name_that_is_much_farther_than_the_nearest_is_not_suggested() -> None:
    assert find_similar("sesion_list", ["session_cost", "session_list"]) == ["session_list"]


def test_the_question_names_each_of_them() -> None:
    assert format_suggestion(()) == ""
    assert format_suggestion(("a",)) == " Did you mean `a`?"
    assert format_suggestion(("a", "b")) == " Did you mean `a` or `b`?"
