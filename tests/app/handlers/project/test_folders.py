"""Folders of the machine, for who chooses one to open."""

from pathlib import Path

import pytest

from codeloop.schema.api.project import FOLDER_LIST, FolderQuery
from codeloop.schema.errors import OperationError
from tests.support.scripted_project import open_scripted_project


async def test_visible_folders_are_listed_by_name_with_what_is_a_repository(
    tmp_path: Path,
) -> None:
    place = tmp_path / "place"
    for name in ("b", "A", ".hidden", "c/.git"):
        (place / name).mkdir(parents=True)
    (place / "file").write_text("")
    (place / "link").symlink_to(place / "A")
    (place / "loop").symlink_to(place / "loop")
    async with open_scripted_project(tmp_path, []) as it:
        listing = await it.client.call(FOLDER_LIST, FolderQuery(path=f"{place}/./"))
    assert (listing.path, listing.parent) == (str(place), str(tmp_path))
    assert [(each.name, each.is_repository) for each in listing.folders] == [
        ("A", False),
        ("b", False),
        ("c", True),
        ("link", False),
    ]
    assert not listing.is_cut


async def test_the_home_is_where_it_begins(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        home = it.project.settings.paths.home
        (home / "work" / "shop").mkdir(parents=True)
        for path in ("", "~", "~/"):
            assert (await it.client.call(FOLDER_LIST, FolderQuery(path=path))).path == str(home)
        (folder,) = (await it.client.call(FOLDER_LIST, FolderQuery(path="~/work"))).folders
        assert folder.path == str(home / "work" / "shop")
        assert (await it.client.call(FOLDER_LIST, FolderQuery(path="/"))).parent == ""


async def test_more_than_a_thousand_folders_are_cut_after_those_with_the_prefix_are_chosen(
    tmp_path: Path,
) -> None:
    many = tmp_path / "many"
    for name in (*(f"{number:04}" for number in range(1_001)), "Shop", "shoes", "zebra"):
        (many / name).mkdir(parents=True)
    async with open_scripted_project(tmp_path, []) as it:
        listing = await it.client.call(FOLDER_LIST, FolderQuery(path=str(many)))
        fitting = await it.client.call(FOLDER_LIST, FolderQuery(path=str(many), prefix="sHo"))
    assert (len(listing.folders), listing.is_cut) == (1_000, True)
    assert ([each.name for each in fitting.folders], fitting.is_cut) == (["shoes", "Shop"], False)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/no/such/folder", "Folder not found"),
        ("shop", "name the whole path"),
        ("{file}", "Folder not found"),
        ("/a\0b", "NUL"),
    ],
)
async def test_what_can_not_be_listed_is_told(tmp_path: Path, path: str, words: str) -> None:
    (tmp_path / "file").write_text("")
    async with open_scripted_project(tmp_path, []) as it:
        query = FolderQuery(path=path.replace("{file}", str(tmp_path / "file")))
        with pytest.raises(OperationError, match=words):
            await it.client.call(FOLDER_LIST, query)
