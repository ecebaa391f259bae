"""`codeloop trust`: trust, list and take back."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codeloop.cli.commands.access.trust import trust
from codeloop.config.paths import Paths, find_paths
from codeloop.config.trust.store import find_trust_record
from codeloop.schema.errors import CodeloopError


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "project" / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "inner")
    monkeypatch.setenv("CODELOOP_HOME", str(tmp_path / "home"))
    return find_paths(os.environ)


def is_trusted(paths: Paths, root: Path) -> bool:
    return find_trust_record(paths, root) is not None


def run(*arguments: str) -> Result:
    return CliRunner().invoke(trust, list(arguments), catch_exceptions=False)


def test_the_whole_work_tree_is_trusted_from_any_folder_of_it(tmp_path: Path, paths: Paths) -> None:
    assert run().stdout == f"Trusted: {tmp_path}/project\n"
    assert is_trusted(paths, tmp_path / "project")
    assert f"{tmp_path}/project\n" in run("--list").stdout


def test_trust_is_taken_back(tmp_path: Path, paths: Paths) -> None:
    run(str(tmp_path / "project"))
    assert run("--remove").stdout == f"No longer trusted: {tmp_path}/project\n"
    assert not is_trusted(paths, tmp_path / "project")
    assert run("--list").stdout == "No directory is trusted.\n"
    with pytest.raises(CodeloopError, match="was not trusted"):
        run("--remove")


def test_a_directory_that_is_gone_is_marked_and_can_be_removed(
    tmp_path: Path, paths: Paths
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    run(str(gone))
    gone.rmdir()
    assert "no longer there" in run("--list").stdout
    assert run("--remove", str(gone)).stdout == f"No longer trusted: {gone}\n"


def test_a_missing_directory_is_a_clear_error(tmp_path: Path, paths: Paths) -> None:
    with pytest.raises(CodeloopError, match="can't be used"):
        run(str(tmp_path / "missing"))


def test_a_damaged_list_is_said(paths: Paths) -> None:
    paths.state.mkdir(parents=True)
    paths.trust_file.write_text("{")
    result = run("--list")
    assert "was damaged and is now trust.json.broken-" in result.stderr
    assert result.stdout == "No directory is trusted.\n"


def test_listing_goes_with_nothing_else(paths: Paths) -> None:
    assert run("--list", "--remove").exit_code == 2
