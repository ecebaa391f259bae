"""Private folders."""

from pathlib import Path

from codeloop.kit.small_files import create_private_folder


def test_every_folder_that_was_missing_is_private_and_others_stay(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    create_private_folder(there / "a" / "b")
    create_private_folder(there / "a" / "b")
    assert [path.stat().st_mode & 0o777 for path in (there, there / "a", there / "a" / "b")] == [
        0o755,
        0o700,
        0o700,
    ]
