import os
from pathlib import Path

import pytest

from codeloop.workspace.files.existing_paths import list_existing


def list_one_by_one(paths: list[str]) -> list[str]:
    return [path for path in paths if os.path.lexists(path)]


@pytest.mark.parametrize("others", [[], ["é"], [str(number) for number in range(300)]])
def test_what_exists_is_found_as_if_each_path_was_looked_at(
    tmp_path: Path, others: list[str]
) -> None:
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "below" / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "linked").symlink_to("folder")
    (tmp_path / "plain").touch()
    for name in others:
        (tmp_path / name).touch()
    names = [
        "folder",
        "missing",
        "link",
        "plain",
        "folder/below/file",
        "missing/file",
        "plain/file",
        "linked/below",
    ]
    names += [
        "linked/missing",
        "link/file",
        "missing/deep/file",
        "Plain",
        "FOLDER/below",
        "é",
        "É",
        "299",
    ]
    paths = [f"{tmp_path}/{name}" for name in names]
    for given in (paths, paths[::-1], ["/", "/proc", "/missing", *paths]):
        assert list_existing(given) == list_one_by_one(given)
    assert f"{tmp_path}/linked/below" in list_existing(paths)


def test_a_folder_that_may_be_entered_and_not_listed_hides_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "file").touch()
    folder.chmod(0o100)
    try:
        paths = [f"{folder}/file", f"{folder}/missing"]
        assert list_existing(paths) == list_one_by_one(paths) == paths[:1]
    finally:
        folder.chmod(0o700)
