"""Our own calls of git in a repository that was made to run programs: none of them starts,
whatever git's version.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.git.repository import Git
from codeloop.workspace.git.working_diff import list_changes
from codeloop.workspace.snapshot.object_store import ObjectStore
from tests.workspace.snapshot.trees_on_disk import git, repository, write

PROGRAMS = (
    *(
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "pager.diff",
        "core.editor",
        "diff.external",
        "core.gitProxy",
    ),
    *(
        "diff.x.command",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "merge.x.driver",
    ),
    *(
        "core.alternateRefsCommand",
        "core.askPass",
        "credential.helper",
        "gpg.program",
        "uploadpack.packObjectsHook",
    ),
)
HOOKS = (
    "post-index-change",
    "reference-transaction",
    "fsmonitor-watchman",
    "post-checkout",
    "pre-auto-gc",
)
ALIASES = (
    "rev-list",
    "rev-parse",
    "diff",
    "ls-files",
    "cat-file",
    "merge-base",
    "symbolic-ref",
    "for-each-ref",
)


class Hostile:
    """A repository with a trap in every place. `sprung`: what a trap makes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = repository(folder / "work", {"a.txt": "a\n", "b.txt": "b\n"})
        self.sprung = folder / "sprung"
        self.first = git(self.root, "rev-parse", "HEAD").strip()
        self.blob = git(self.root, "rev-parse", "HEAD:b.txt").strip()
        git(self.root, "commit", "-q", "--allow-empty", "-m", "second")
        self.second = git(self.root, "rev-parse", "HEAD").strip()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self._arm()

    def with_older_git(self) -> None:
        """Put a git on the path that does not know how to leave missing objects alone,
        as those before 2.45 don't.
        """
        older = self.folder / "bin" / "git"
        older.parent.mkdir()
        older.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
        older.chmod(0o755)
        self.environment["PATH"] = f"{older.parent}:{self.environment['PATH']}"

    def _arm(self) -> None:
        trap = self.folder / "trap"
        trap.write_text(f"#!/bin/sh\ntouch {self.sprung}\nexit 1\n")
        trap.chmod(0o755)
        for name in (*HOOKS, "pre-commit"):
            (self.root / ".git" / "hooks").mkdir(exist_ok=True)
            (self.root / ".git" / "hooks" / name).symlink_to(trap)
        settings = {key: str(trap) for key in PROGRAMS} | {
            f"alias.{name}": f"!{trap}" for name in ALIASES
        }
        settings |= {
            "core.hooksPath": str(self.root / ".git" / "hooks"),
            "core.attributesFile": str(self.folder / "attributes"),
            "core.repositoryFormatVersion": "1",
            "extensions.partialClone": "origin",
            "remote.origin.promisor": "true",
            "remote.origin.partialCloneFilter": "blob:none",
            "remote.origin.url": f"ext::{trap}",
            "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
            "remote.origin.uploadpack": str(trap),
            "protocol.allow": "always",
            "protocol.ext.allow": "always",
            "protocol.file.allow": "always",
            "filter.x.required": "true",
        }
        for key, value in settings.items():
            command = ["git", "config", "--file", str(self.root / ".git" / "config"), key, value]
            subprocess.run(command, check=True, cwd=self.folder)
        (self.folder / "attributes").write_text("* filter=x diff=x merge=x\n")
        write(
            self.root,
            {
                ".gitattributes": "* filter=x diff=x merge=x\n",
                "a.txt": "changed\n",
                "new.txt": "n\n",
            },
        )
        others = self.folder / "others"
        subprocess.run(["git", "init", "-q", "--bare", str(others)], check=True)
        (self.root / ".git/objects/info").mkdir(exist_ok=True)
        (self.root / ".git/objects/info/alternates").write_text(f"{others / 'objects'}\n")
        embedded = self.root / "embedded"
        subprocess.run(["git", "init", "-q", "--bare", str(embedded)], check=True)
        subprocess.run(
            ["git", "-C", str(embedded), "config", "core.fsmonitor", str(trap)], check=True
        )

    def lose(self, name: str) -> None:
        """Remove an object, so that git would fetch it from the promising remote."""
        (self.root / ".git/objects" / name[:2] / name[2:]).unlink()


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path)


def git_of(hostile: Hostile) -> Git:
    return Git(hostile.root, hostile.environment)


async def root_commit(hostile: Hostile) -> None:
    hostile.lose(hostile.first)
    paths = find_paths({"CODELOOP_HOME": str(hostile.folder / "home")})
    found = await asyncio.to_thread(find_project_root, hostile.root, paths, hostile.environment)
    assert found.vcs == "git"


async def branches(hostile: Hostile) -> None:
    assert await git_of(hostile).read_branch() == "main"
    assert (await git_of(hostile).find_default_branch()) is not None


async def lost_commit(hostile: Hostile) -> None:
    hostile.lose(hostile.first)
    assert await git_of(hostile).resolve_commit(hostile.first) is None


async def lost_base(hostile: Hostile) -> None:
    hostile.lose(hostile.first)
    assert await git_of(hostile).find_merge_base("HEAD", "HEAD~1") is None


async def lost_blob(hostile: Hostile) -> None:
    hostile.lose(hostile.blob)
    assert await git_of(hostile).read_blob("HEAD", "b.txt", 100) is None


async def list_differences(hostile: Hostile) -> None:
    found = {each.file for each in await list_changes(git_of(hostile), hostile.second, 3)}
    assert {"a.txt", "new.txt"} <= found


async def lost_differences(hostile: Hostile) -> None:
    hostile.lose(git(hostile.root, "-c", "core.fsmonitor=false", "rev-parse", "HEAD:a.txt").strip())
    with pytest.raises(CodeloopError):
        await list_changes(git_of(hostile), hostile.second, 3)


async def shared_objects(hostile: Hostile) -> None:
    hostile.lose(hostile.blob)
    objects = ObjectStore(hostile.folder / "snapshot")
    objects.share_objects([hostile.root / ".git" / "objects"])
    await asyncio.to_thread(
        objects.copy_shared, [hostile.blob], hostile.environment, lambda _: None
    )
    assert not objects.has(hostile.blob)


CALLERS = (
    root_commit,
    branches,
    lost_commit,
    lost_base,
    lost_blob,
    list_differences,
    lost_differences,
    shared_objects,
)


@pytest.mark.parametrize("version", ["this", "older"])
@pytest.mark.parametrize("call", CALLERS)
async def test_nothing_is_run(
    hostile: Hostile, call: Callable[[Hostile], Awaitable[None]], version: str
) -> None:
    if version == "older":
        hostile.with_older_git()
    await call(hostile)
    assert not hostile.sprung.exists()


def test_the_traps_are_armed(hostile: Hostile) -> None:
    hostile.lose(hostile.blob)
    command = ["git", "-c", "protocol.allow=never", "cat-file", "blob", f"{hostile.second}:b.txt"]
    subprocess.run(
        command, cwd=hostile.root, env=hostile.environment, capture_output=True, check=False
    )
    assert hostile.sprung.exists(), "the missing object is not fetched from the remote"
    hostile.sprung.unlink()
    subprocess.run(
        ["git", "diff"], cwd=hostile.root, env=hostile.environment, capture_output=True, check=False
    )
    assert hostile.sprung.exists(), "no program of the configuration is run"
