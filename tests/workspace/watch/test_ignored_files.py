"""Which files of a work tree are not watched, as its ignore files say now."""

from pathlib import Path

from codeloop.workspace.watch.ignored_files import IgnoredFiles


def test_a_folder_that_is_looked_at_again_has_its_patterns_of_now(tmp_path: Path) -> None:
    ignored = IgnoredFiles(tmp_path, None, [], {})
    for pattern, logs, temporary in (("*.log", True, False), ("*.tmp", False, True)):
        (tmp_path / ".gitignore").write_text(f"{pattern}\n")
        for folder in ("", "src"):
            ignored.read_folder(folder, [".gitignore"] if not folder else [])
            assert ignored.is_ignored_entry(folder, "a.log", is_folder=False) is logs
            assert ignored.is_ignored_entry(folder, "a.tmp", is_folder=False) is temporary
