"""Where a project is, and which others there are."""

import subprocess
from pathlib import Path

import pytest

from codeloop.app.project import open_project
from codeloop.client.local import LocalClient
from codeloop.schema.api.project import (
    LOCATION_GET,
    PATH_GET,
    PROJECT_CURRENT,
    PROJECT_DIRECTORIES,
    PROJECT_LIST,
    LocatedProject,
    LocationInfo,
    PathInfo,
    ProjectDirectory,
    ProjectId,
)
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from tests.server.support.serving import served
from tests.support.scripted_project import make_startup, open_scripted_project


def repository(folder: Path) -> str:
    """Make a repository with one commit; return the commit's hash."""
    folder.mkdir(parents=True, exist_ok=True)

    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        done = subprocess.run(
            ["git", "-C", str(folder), *identity, *words],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", str(folder))
    return git("rev-parse", "HEAD")


async def sessions_in(home: Path, *folders: Path) -> None:
    """Hold a session in each folder, as other processes did before."""
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        project = await open_project(make_startup(home, folder))
        try:
            await LocalClient(project).call(SESSION_CREATE, CreateSession())
        finally:
            await project.close()


async def test_outside_a_repository_the_project_is_the_global_one(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        home = str(tmp_path / "home")
        assert await it.client.call(PATH_GET, NoArguments()) == PathInfo(
            home=home,
            state=f"{home}/state",
            config=f"{home}/config",
            worktree=str(it.work),
            directory=str(it.work),
        )
        current = await it.client.call(PROJECT_CURRENT, NoArguments())
        session = it.view().session
        assert (current.id, current.worktree, current.vcs, current.sandboxes) == (
            "global",
            "/",
            None,
            [],
        )
        assert (current.time.created, current.time.updated) == (
            session.time.created,
            session.time.updated,
        )
        located = LocationInfo(
            directory=str(it.work),
            project=LocatedProject(id="global", directory="/", canonical="/"),
        )
        assert await it.client.call(LOCATION_GET, NoArguments()) == located


async def test_in_a_repository_the_project_is_that_of_its_first_commit(tmp_path: Path) -> None:
    first = repository(tmp_path / "work")
    async with open_scripted_project(tmp_path, []) as it:
        current = await it.client.call(PROJECT_CURRENT, NoArguments())
        assert (current.id, current.worktree, current.vcs) == (first, str(it.work), "git")
        assert (await it.client.call(PATH_GET, NoArguments())).worktree == str(it.work)
        assert (await it.client.call(LOCATION_GET, NoArguments())).project == LocatedProject(
            id=first, directory=str(it.work), canonical=str(it.work)
        )


async def test_a_project_without_sessions_has_the_times_of_its_folder(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        time = (await it.get("/project/current"))["time"]
        assert time["created"] == time["updated"] > 1_600_000_000_000


@pytest.mark.parametrize("is_repository", [True, False])
async def test_a_project_is_listed_from_the_moment_it_is_opened(
    tmp_path: Path, *, is_repository: bool
) -> None:
    if is_repository:
        repository(tmp_path / "work")
    async with served(tmp_path) as it:
        current = await it.get("/project/current")
        assert await it.get("/project") == [current]
        assert current["worktree"] == (str(tmp_path / "work") if is_repository else "/")
        other = repository(tmp_path / "other")
        assert (await it.get("/project/current", directory=str(tmp_path / "other")))["id"] == other
        assert {each["id"] for each in await it.get("/project")} == {current["id"], other}
    async with served(tmp_path) as it:  # a later process knows it, too
        listed = {each["id"]: each["worktree"] for each in await it.get("/project")}
        assert listed[other] == str(tmp_path / "other")


async def test_every_project_that_has_sessions_is_listed_newest_change_first(
    tmp_path: Path,
) -> None:
    one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
    await sessions_in(tmp_path / "home", tmp_path / "one" / "sub", tmp_path / "two")
    async with open_scripted_project(tmp_path, []) as it:
        listed = await it.client.call(PROJECT_LIST, NoArguments())
    assert [(each.id, each.worktree, each.vcs) for each in listed] == [
        ("global", "/", None),
        (two, str(tmp_path / "two"), "git"),
        (one, str(tmp_path / "one"), "git"),
    ]


async def test_a_projects_directories_are_those_of_its_sessions(tmp_path: Path) -> None:
    one = repository(tmp_path / "one")
    await sessions_in(
        tmp_path / "home", tmp_path / "one" / "sub", tmp_path / "one", tmp_path / "one" / "sub"
    )
    async with open_scripted_project(tmp_path, []) as it:
        assert await it.client.call(PROJECT_DIRECTORIES, ProjectId(project_id=one)) == [
            ProjectDirectory(directory=str(tmp_path / "one" / "sub")),
            ProjectDirectory(directory=str(tmp_path / "one")),
        ]
        assert await it.client.call(PROJECT_DIRECTORIES, ProjectId(project_id="global")) == [
            ProjectDirectory(directory=str(it.work))
        ]
        for unknown in ("0" * 40, "..", ""):
            with pytest.raises(OperationError) as raised:
                await LocalClient(it.project).call(
                    PROJECT_DIRECTORIES, ProjectId(project_id=unknown)
                )
            assert raised.value.kind == "NotFoundError"


async def test_a_database_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    broken = tmp_path / "home" / "data" / "project" / "broken" / "codeloop.db"
    broken.parent.mkdir(parents=True)
    broken.write_text("no database")
    async with open_scripted_project(tmp_path, []) as it:
        assert [each.id for each in await it.client.call(PROJECT_LIST, NoArguments())] == ["global"]
        assert await it.client.call(PROJECT_DIRECTORIES, ProjectId(project_id="broken")) == []
