"""Paths as people write them."""

from pathlib import Path

import pytest

from codeloop.kit.paths import expand_user_path


@pytest.mark.parametrize("name", ["~/a", "~nobody-is-called-so/a", "~a\0b", "a/~", ""])
def test_a_path_from_a_home_that_nobody_has_stays_as_it_is(name: str) -> None:
    known = Path.home() / "a" if name == "~/a" else Path(name)
    assert expand_user_path(name) == known
