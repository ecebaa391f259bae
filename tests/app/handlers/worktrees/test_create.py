"""Work trees over HTTP: real ones, and nothing in them is ever lost."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from tests.server.support.serving import Served, served
from tests.support.scripted_project import wait_until
from tests.workspace.snapshot.trees_on_disk import git, repository, write

PATH = "/experimental/worktree"
FILES = {"a.txt": "one\n", ".gitignore": "built/\n"}


async def remove(it: Served, directory: Path, path: str = PATH, **more: Any) -> Any:
    body = msgspec.json.encode({"directory": str(directory), **more})
    response = await it.http.request("DELETE", path, content=body)
    return response.json() if response.content else None


async def make(it: Served, **body: Any) -> Path:
    return Path((await it.post(PATH, body))["directory"])


@pytest.mark.slow
async def test_a_work_tree_is_made_listed_and_removed_with_its_branch(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        made = await it.post(PATH, {"name": "My Feature!"})
        folder = Path(made["directory"])
        assert (made["name"], made["branch"]) == ("my-feature", "codeloop/my-feature")
        assert (folder / "a.txt").read_text() == "one\n"
        assert await it.get(PATH) == [str(folder)]
        assert (await it.get("/project/current"))["sandboxes"] == [str(folder)]
        listed = await it.get(f"/project/{(await it.get('/project/current'))['id']}/directories")
        assert {"directory": str(folder), "strategy": "git_worktree"} in listed
        session = (
            await it.http.post("/session", json={}, headers={"x-opencode-directory": str(folder)})
        ).json()
        assert session["directory"] == str(folder)
        second = await make(it, name="My Feature!")
        assert second.name.startswith("my-feature-")
        assert await remove(it, folder) is True
        assert not folder.exists()
        assert "codeloop/my-feature\n" not in git(root, "branch", "--format=%(refname:short)")
        assert await it.get(PATH) == [str(second)]


@pytest.mark.slow
async def test_changes_and_commits_are_never_lost(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder = await make(it, name="kept")
        for files in ({"a.txt": "changed\n"}, {"new.txt": "new\n"}):
            write(folder, files)
            for answer in (
                await remove(it, folder),
                await it.post(f"{PATH}/reset", {"directory": str(folder)}, 400),
            ):
                assert next(iter(files)) in answer["data"]["message"]
            git(folder, "checkout", "-q", ".")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "mine")
        refused = await it.post(f"{PATH}/reset", {"directory": str(folder)}, 400)
        assert (refused["name"], "1 commits" in refused["data"]["message"]) == (
            "WorktreeResetFailedError",
            True,
        )
        commit = git(folder, "rev-parse", "HEAD").strip()
        assert await remove(it, folder) is True
        assert git(root, "rev-parse", "codeloop/kept").strip() == commit, (
            "the branch stays, as it alone has the commit"
        )


async def test_a_branch_is_set_back_when_its_commits_are_elsewhere(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder = await make(it, name="moved")
        write(folder, {"new.txt": "new\n"})
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "mine")
        git(root, "branch", "saved", "codeloop/moved")
        assert await it.post(f"{PATH}/reset", {"directory": str(folder)}) is True
        assert not (folder / "new.txt").exists()
        assert git(folder, "rev-parse", "HEAD") == git(root, "rev-parse", "main")


@pytest.mark.slow
async def test_no_program_that_the_repository_names_is_run(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {**FILES, ".gitattributes": "*.txt filter=evil\n"})
    ran = tmp_path / "ran"
    hook = root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    for name in ("smudge", "clean", "process"):
        git(root, "config", f"filter.evil.{name}", f"touch {ran}")
    git(root, "config", "filter.evil.required", "true")
    async with served(tmp_path) as it:
        folder = await make(it, name="calm")
        assert (folder / "a.txt").read_text() == "one\n"
        assert await it.post(f"{PATH}/reset", {"directory": str(folder)}) is True
        assert await remove(it, folder) is True
    assert not ran.exists()


@pytest.mark.slow
async def test_start_commands_run_in_the_new_work_tree_and_their_failure_is_told(
    tmp_path: Path,
) -> None:
    repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        project = (await it.get("/project/current"))["id"]
        said = await it.http.patch(
            f"/project/{project}", json={"name": "Pet", "commands": {"start": "pwd > built"}}
        )
        assert (said.json()["name"], said.json()["commands"]) == ("Pet", {"start": "pwd > built"})
        folder = await make(it, name="ready", startCommand="echo more >> built")
        assert (folder / "built").read_text() == f"{folder}\nmore\n"
        failed = await it.post(
            PATH, {"name": "broken", "startCommand": "echo why >&2; exit 3"}, 400
        )
        assert failed["name"] == "WorktreeStartCommandFailedError"
        assert failed["data"]["message"].endswith("ended with code 3: why")
        assert (folder.parent / "broken" / "a.txt").exists()


@pytest.mark.slow
async def test_a_work_tree_in_which_a_session_works_stays(tmp_path: Path) -> None:
    repository(tmp_path / "work", FILES)
    script = [
        ScriptedAnswer(
            calls=(ScriptedCall("bash", {"command": "until [ -e go ]; do sleep 0.02; done"}),)
        )
    ]
    async with served(
        tmp_path, [*script, ScriptedAnswer(text="Done.")], permission={"bash": "allow"}
    ) as it:
        folder = await make(it, name="busy")
        session = (
            await it.http.post("/session", json={}, headers={"x-opencode-directory": str(folder)})
        ).json()["id"]
        turn = asyncio.create_task(it.prompt(session))
        project = await it.app.get_project(folder)
        await wait_until(lambda: project.runs.is_running(session))
        assert (await remove(it, folder))["_tag"] == "SessionBusyError"
        (folder / "go").touch()
        await turn
        (folder / "go").unlink()
        assert await remove(it, folder) is True


async def test_only_work_trees_that_were_made_here_are_removed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    git(root, "worktree", "add", "-q", str(tmp_path / "own"))
    async with served(tmp_path) as it:
        for folder in (root, tmp_path / "own", tmp_path, Path("/nope"), Path("..")):
            assert (await remove(it, folder))["name"] == "WorktreeRemoveFailedError"
    assert (tmp_path / "own" / "a.txt").exists()


async def test_outside_a_repository_there_are_none(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        assert await it.get(PATH) == []
        assert (await it.post(PATH, {}, 400))["name"] == "WorktreeNotGitError"
        made = await it.post("/project/git/init")
        assert (made["vcs"], (it.work / ".git").is_dir()) == ("git", True)
        refused = await it.post(PATH, {}, 400)
        assert (refused["name"], "no commit yet" in refused["data"]["message"]) == (
            "WorktreeCreateFailedError",
            True,
        )


async def test_a_copy_is_removed_by_force_only_when_it_holds_something(tmp_path: Path) -> None:
    repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        path = f"/experimental/project/{(await it.get('/project/current'))['id']}/copy"
        assert await it.post(f"{path}/generate-name", {"context": "Fix the login page"}) == {
            "name": "fix-login-page"
        }
        body = {"strategy": "git_worktree", "directory": str(tmp_path / "copies"), "name": "one"}
        folder = Path((await it.post(path, body))["directory"])
        assert (folder.name, (folder / "a.txt").exists()) == ("one", True)
        (folder / "a.txt").write_text("changed\n")
        refused = await remove(it, folder, path, force=False)
        assert (refused["name"], refused["data"]["forceRequired"]) == ("ProjectCopyError", True)
        assert await remove(it, folder, path, force=True) is None
        assert not folder.exists()
        assert (await it.post(path, {**body, "strategy": "copy"}, 400))[
            "name"
        ] == "ProjectCopyError"


@pytest.mark.slow
async def test_a_tree_is_in_a_folder_of_its_projects_name_and_an_id_stands_there_for_a_second_project(
    tmp_path: Path,
) -> None:
    repository(tmp_path / "work", FILES)
    second = repository(tmp_path / "two" / "work", {"b.txt": "two\n"})
    async with served(tmp_path) as it:
        folder = await make(it, name="login")
        assert folder.parts[-3:] == ("codeloop-worktrees", "work", "login")
        headers = {"x-opencode-directory": str(second)}
        made = (await it.http.post(PATH, json={"name": "login"}, headers=headers)).json()
        commit = git(second, "rev-list", "--max-parents=0", "HEAD").strip()
        assert Path(made["directory"]).parts[-2:] == (f"work-{commit[:8]}", "login")
        assert (await it.http.get(PATH, headers=headers)).json() == [made["directory"]]
        assert await it.get(PATH) == [str(folder)]
        inner = (
            await it.http.post(
                PATH, json={"name": "in"}, headers={"x-opencode-directory": str(folder)}
            )
        ).json()
        assert inner["directory"] == str(folder.with_name("in")), (
            "a tree of a tree is the project's too"
        )


@pytest.mark.slow
async def test_a_tree_that_an_older_version_made_is_still_found_used_and_removed(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        new = await make(it, name="new")
        old = new.parent.with_name(git(root, "rev-list", "--max-parents=0", "HEAD").strip()) / "old"
        old.parent.mkdir()
        git(root, "worktree", "add", "-q", "-b", "codeloop/old", str(old))
        record = (new.parent / "new.json").read_text().replace("new", "old")
        (old.parent / "old.json").write_text(record)
        assert sorted(await it.get(PATH)) == sorted([str(new), str(old)])
        rows = {row["name"]: row["directory"] for row in await it.get("/worktree")}
        assert rows == {"new": str(new), "old": str(old)}
        again = await make(it, name="old")
        assert again.parent == new.parent
        assert again.name.startswith("old-"), "its name is taken"
        assert await remove(it, old) is True
        assert list(old.parent.iterdir()) == []
        assert sorted(await it.get(PATH)) == sorted([str(new), str(again)])
