"""Private folders, and paths as people write them."""

from pathlib import Path

import pytest

from codeloop.kit.small_files import from_home, make_private


def test_every_folder_that_was_missing_is_private_and_others_stay(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    make_private(there / "a" / "b")
    make_private(there / "a" / "b")
    assert [path.stat().st_mode & 0o777 for path in (there, there / "a", there / "a" / "b")] == [0o755, 0o700, 0o700]


@pytest.mark.parametrize("name", ["~/a", "~nobody-is-called-so/a", "~a\0b", "a/~", ""])
def test_a_path_from_a_home_that_nobody_has_stays_as_it_is(name: str) -> None:
    known = Path.home() / "a" if name == "~/a" else Path(name)
    assert from_home(name) == known
