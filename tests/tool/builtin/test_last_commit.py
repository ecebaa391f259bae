"""A command with `unchanged: true` sees the last commit, at the project's path,
and writes nothing to the project.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.checks.check_runs import list_checks
from codeloop.schema.bounds.program import COMMIT_LEFT
from codeloop.schema.config import SandboxConfig
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolTime
from codeloop.tool.builtin.shell.background_commands import BashOutputParams, bash_output
from codeloop.tool.builtin.shell.bash import BashParams, bash
from codeloop.tool.tool import ToolFailure
from codeloop.workspace.sandbox.sandbox import Backend, SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.tool.context import TestContext, make_context

LOOK = (
    'cat src/a.txt; echo "$PWD"; ls -A . src; cat node_modules/dep.txt .venv/dep.txt 2>&1; cat "$PROJECT/src/a.txt"; '
    "echo made > src/made.txt; (echo made > node_modules/made.txt) 2>/dev/null; rm src/gone.txt; true"
)


def git(folder: Path, *words: str) -> None:
    """Run git, without the upkeep that newer versions go on with after a commit."""
    settings = ("user.email=a@example.com", "user.name=A", "maintenance.auto=false")
    subprocess.run(
        ["git", *(word for each in settings for word in ("-c", each)), *words],
        cwd=folder,
        check=True,
    )


def commit_and_change(root: Path) -> None:
    """Make a repository with one commit, and changes since: edited, removed, new and ignored files,
    and a secret.
    """
    git(root, "init", "-q")
    files = {
        ".gitignore": "node_modules/\n__pycache__/\n.env\n",
        "src/a.txt": "before\n",
        "src/gone.txt": "there\n",
    }
    ignored = {
        "node_modules/dep.txt": "dep\n",
        ".venv/dep.txt": "venv\n",
        "__pycache__/a.pyc": "",
        ".env": "KEY=1\n",
    }
    for name, text in {**files, ".gitattributes": "*.txt filter=evil\n"}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "config", "filter.evil.smudge", f"touch {root}/evil; cat")
    (root / ".git/hooks").mkdir(exist_ok=True)
    (root / ".git/hooks/post-checkout").write_text(f"#!/bin/sh\ntouch {root}/evil\n")
    (root / ".git/hooks/post-checkout").chmod(0o755)
    (root / "src/gone.txt").unlink()
    for name, text in {**ignored, "src/a.txt": "after\n", "src/new.txt": "new\n"}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)


def read_all(root: Path) -> dict[str, bytes]:
    """Return every file below a folder, by its path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def list_copies(ctx: TestContext) -> list[Path]:
    scratch = ctx.workspace.scratch
    return [*scratch.with_name(f"{scratch.name}.commit").glob("*")]


async def run(ctx: TestContext, command: str, **more: Any) -> str:
    return (await bash.run(BashParams(command=command, unchanged=True, **more), ctx)).output


@pytest.fixture
async def ctx(tmp_path: Path) -> AsyncIterator[TestContext]:
    made = make_context(tmp_path)
    made.workspace.environment = {**made.workspace.environment, "PROJECT": str(made.workspace.root)}
    made.workspace.sandbox = SandboxConfig(mode="auto", network="off")
    yield made
    await made.workspace.shells.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["namespaces", "bubblewrap", "landlock"])
async def test_the_command_sees_the_last_commit_and_what_is_ignored(
    ctx: TestContext, kind: Backend
) -> None:
    root, shells = ctx.workspace.root, ctx.workspace.shells
    shells.sandboxes = Sandboxes(shells.launcher, (kind,))
    ctx.workspace.sandbox = SandboxConfig(mode="required", network="off")
    commit_and_change(root)
    before = read_all(root)
    try:
        told = await run(ctx, LOOK)
    except ToolFailure as error:
        if not isinstance(error.__cause__, SandboxUnavailable):
            raise
        pytest.skip(str(error))
    output, _, note = told.partition("\n\n<shell_metadata>\n")
    lines = output.splitlines()
    is_mounted = kind != "landlock"
    assert lines[0] == "before"
    assert {"a.txt", "gone.txt"} <= {*lines[2:]}
    assert "new.txt" not in lines
    assert lines[-3:] == ["dep", "venv", "before" if is_mounted else "after"]
    assert (lines[1] == str(root)) == is_mounted
    assert "__pycache__" not in lines
    assert note.startswith("It ran on the last commit, ")
    assert ("with the changes." in note) != is_mounted
    assert read_all(root) == before, "nothing of the project changed"
    assert not (root / "evil").exists()
    assert list_copies(ctx) == []
    assert "KEY=1" not in await run(ctx, "cat .env; cat $PROJECT/.env")
    plain = await bash.run(BashParams(command="cat src/a.txt; pwd"), ctx)
    assert plain.output == f"after\n{root}\n", "what follows runs in the project as it is"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["namespaces", "bubblewrap", "landlock"])
async def test_no_link_of_the_commit_and_no_secret_leads_out_of_the_copy(
    ctx: TestContext, kind: Backend, tmp_path: Path
) -> None:
    root, shells, mine = ctx.workspace.root, ctx.workspace.shells, tmp_path / "mine"
    shells.sandboxes = Sandboxes(shells.launcher, (kind,))
    ctx.workspace.sandbox = SandboxConfig(mode="required", network="off")
    mine.mkdir()
    (mine / ".env").write_text("KEY=mine\n")
    git(root, "init", "-q")
    (root / ".gitignore").write_text(".env\n.bashrc\n")
    (root / "cfg").symlink_to(mine)
    (root / "src").mkdir()
    (root / "src/a.txt").write_text("before\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "cfg").unlink()
    (root / "cfg").mkdir()
    files = {
        "cfg/.env": "KEY=1\n",
        "cfg/.bashrc": "touch evil\n",
        "src/.env": "KEY=2\n",
        "src/a.txt": "after\n",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    before = read_all(root)
    try:
        told = await run(
            ctx,
            "cat src/a.txt; (echo made > src/a.txt; git update-ref refs/heads/x HEAD) 2>/dev/null; true",
        )
    except ToolFailure as error:
        if not isinstance(error.__cause__, SandboxUnavailable):
            raise
        pytest.skip(str(error))
    assert told.startswith("before\n")
    assert read_all(root) == before, "nothing of the project changed"
    assert read_all(mine) == {".env": b"KEY=mine\n"}


async def test_without_a_sandbox_no_link_stands_where_the_project_has_something_else(
    ctx: TestContext, tmp_path: Path
) -> None:
    root, mine = ctx.workspace.root, tmp_path / "mine"
    ctx.workspace.sandbox = SandboxConfig(mode="off")
    mine.mkdir()
    (mine / "key").write_text("mine\n")
    git(root, "init", "-q")
    (root / "a.txt").write_text("a\n")
    (root / "same").symlink_to("a.txt")
    (root / "cfg").symlink_to(mine)
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "cfg").unlink()
    (root / "cfg").mkdir()
    (root / "cfg/data").write_text("plain\n")
    told = await run(ctx, "cat same; cat cfg/*; ls cfg")
    assert told.startswith("a\n")
    assert "mine\n" not in told
    assert "were left out: cfg." in told
    assert (mine / "key").exists()


@pytest.mark.slow
async def test_the_folder_and_the_variables_of_the_session_stay(ctx: TestContext) -> None:
    commit_and_change(ctx.workspace.root)
    (ctx.workspace.root / "later").mkdir()
    await bash.run(BashParams(command="cd src"), ctx)
    assert (await run(ctx, "cat a.txt; cd ..; export LEFT=1")).startswith("before\n")
    assert (await bash.run(BashParams(command="cat a.txt; echo $LEFT"), ctx)).output == "after\n\n"
    assert (await run(ctx, "ls src/a.txt", workdir=str(ctx.workspace.root / "later"))).startswith(
        "src/a.txt\n"
    )


@pytest.mark.slow
async def test_a_copy_is_removed_when_the_command_is_aborted_or_was_killed(
    ctx: TestContext,
) -> None:
    commit_and_change(ctx.workspace.root)
    await run(ctx, "true")
    folder = ctx.workspace.scratch.with_name(f"{ctx.workspace.scratch.name}.commit")
    (folder / "left" / "below").mkdir(parents=True)
    (folder / "left" / "below").chmod(0o500)
    os.utime(folder / "left", (0, 0))
    (folder / "fresh").mkdir()
    task = asyncio.create_task(run(ctx, "chmod 500 src; sleep 60"))
    while not [each for each in list_copies(ctx) if (each / "src").is_dir()]:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list_copies(ctx) == [folder / "fresh"], (
        f"copies older than {COMMIT_LEFT.seconds} s were left by somebody"
    )


@pytest.mark.slow
async def test_a_copy_that_fails_leaves_running_commands_alone(ctx: TestContext) -> None:
    root = ctx.workspace.root
    commit_and_change(root)
    started = await bash.run(BashParams(command="sleep 60", run_in_background=True), ctx)
    blob = subprocess.run(
        ["git", "rev-parse", "HEAD:src/a.txt"], cwd=root, check=True, capture_output=True, text=True
    )
    (root / ".git/objects" / blob.stdout[:2] / blob.stdout.strip()[2:]).unlink()
    with pytest.raises(ToolFailure, match="git"):
        await run(ctx, "true")
    assert list_copies(ctx) == []
    shown = await bash_output.run(BashOutputParams(id=started.metadata["id"]), ctx)
    assert shown.metadata["status"] == "running"


async def test_what_has_no_last_commit_is_refused(ctx: TestContext) -> None:
    root = ctx.workspace.root
    with pytest.raises(ToolFailure, match="not a git repository"):
        await run(ctx, "true")
    git(root, "init", "-q")
    with pytest.raises(ToolFailure, match="no commit yet"):
        await run(ctx, "true")
    for more in ({"outside": "keys"}, {"run_in_background": True}):
        with pytest.raises(ToolFailure, match="neither outside nor run_in_background"):
            await run(ctx, "true", **more)
    (root / "a.txt").write_text("a\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    git(root, "commit", "-qm", "two")
    with pytest.raises(ToolFailure, match="submodules"):
        await run(ctx, "true")
    assert list_copies(ctx) == []


def test_a_check_on_the_last_commit_says_nothing_about_the_changes() -> None:
    def call(**given: Any) -> ToolPart:
        state = ToolStateCompleted(
            input={"command": "pytest -q", **given},
            output="",
            title="",
            metadata={"exit": 1},
            time=ToolTime(start=1, end=2),
        )
        return ToolPart(
            id="prt_1",
            session_id="ses_1",
            message_id="msg_1",
            call_id="c",
            tool="bash",
            state=state,
        )

    assert len(list_checks([call(), call(unchanged=True)])) == 1
