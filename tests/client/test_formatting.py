"""How a command ended is said in the same words everywhere;
tables align what takes two cells of a terminal, too.
"""

from typing import Any

import pytest

from codeloop.cli.output.columns import align_columns
from codeloop.client.formatting import compute_elapsed_ms, describe_command_end


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({}, ""),
        ({"exit": 0}, ""),
        ({"exit": None, "id": "bg_1"}, ""),
        ({"exit": 3}, "exit 3"),
        ({"exit": 143}, "exit 143 (SIGTERM)"),
        ({"exit": None, "signal": "SIGKILL"}, "ended by SIGKILL"),
        ({"exit": -9}, "ended by SIGKILL"),
        ({"exit": None, "timedOut": True}, "timed out"),
        ({"exit": None, "interrupted": True}, "stopped"),
    ],
)
def test_a_command_says_how_it_ended(metadata: dict[str, Any], words: str) -> None:
    assert describe_command_end(metadata) == words


@pytest.mark.parametrize(
    ("start", "end", "ms"), [(5, 12, 7), (0, 1_795_425_593_000, 0), (12, 5, 0), (5, 0, 0)]
)
def test_a_time_that_is_not_known_makes_no_duration(start: int, end: int, ms: int) -> None:
    assert compute_elapsed_ms(start, end) == ms


def test_the_columns_of_a_command_stand_below_each_other_in_cells_of_the_terminal() -> None:
    assert align_columns([("name", "n"), ("日本", "12")], right=(1,)) == "name   n\n日本  12"
