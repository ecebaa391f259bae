"""What is cleaned of a repository that a command made, while git still writes there."""

from pathlib import Path

import pytest

from codeloop.workspace.git.planted import repository_cleaner
from codeloop.workspace.git.planted.repository_cleaner import RepositoryCleaner


def test_a_setting_that_git_writes_while_the_file_is_cleaned_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    config = root / "sub/.git/config"
    config.parent.mkdir(parents=True)
    hook = "[gc]\n\trecentObjectsHook = evil\n"
    config.write_text(hook)
    read = repository_cleaner.read_start_or_empty
    writes = iter([f"{hook}\tauto = 5\n"])

    def read_before_a_write(path: Path, size: int) -> bytes:
        data = read(path, size)
        if path == config and (text := next(writes, None)) is not None:
            config.write_text(text)
        return data

    monkeypatch.setattr(repository_cleaner, "read_start_or_empty", read_before_a_write)
    cleaner = RepositoryCleaner([root], tmp_path / "set-aside")
    cleaner.clean_folder(config.parent)
    assert "evil" not in config.read_text()
    assert "auto = 5" in config.read_text()
