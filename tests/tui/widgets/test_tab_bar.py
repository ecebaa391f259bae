"""The names of tabs: cut to their width, and free of what could steer the terminal."""

import pytest

from codeloop.tui.widgets.tab_bar import cut_title


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Fix the tests of the parser (fork #2)", "Fix the tests… (fork #2)"),
        ("Explain (fork #\x1b]0;x\x07", "Explain (fork #␛]0;x␇"),
        ("Explain (fork #" + "y" * 40, "Explain (fork #yyyyyyyy…"),
    ],
)
def test_only_the_number_of_a_fork_is_kept_whole(title: str, shown: str) -> None:
    assert cut_title(title, 24) == shown


def test_a_joined_emoji_stays_one_in_a_fork() -> None:
    assert cut_title("👩\u200d🔬 lab (fork #1)", 40) == "👩\u200d🔬 lab (fork #1)"
