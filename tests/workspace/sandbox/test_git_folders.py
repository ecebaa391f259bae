"""What a command does with git reaches the real git folder as data, and nothing else of it does."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.workspace.sandbox.conftest import Attacked

pytestmark = pytest.mark.slow


def git(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the user's git outside of the sandbox."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    ended = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    return ended.stdout.strip()


@pytest.fixture
async def repo(it: Attacked) -> Attacked:
    """A repository with two commits and a tag."""
    if it.backend == "landlock":
        pytest.skip("Landlock mounts nothing")
    for name in ("one", "two"):
        (it.root / "a.txt").write_text(f"{name}\n")
        git(it.root, "add", "-A")
        git(it.root, "commit", "-qm", name)
    git(it.root, "tag", "v1")
    git(it.root, "branch", "side", "HEAD~1")
    return it


EVERYDAY = (
    "echo three > b.txt && git add -A && git commit -qm three",
    "git commit -q --amend -m more",
    "git switch -qc topic && echo four > c.txt && git add -A && git commit -qm four && git switch -q -",
    "git merge -q --no-ff -m merged topic && git branch -qd topic",
    "echo five >> b.txt && git stash -q && git stash list && git stash pop -q && git checkout -q b.txt",
    "git stash list; echo six > b.txt; git stash push -qm kept; echo 7 > b.txt; git stash push -qm dropped; git stash drop -q",
    "git tag -a -m noted noted && git tag light && git tag -d light",
    "git reset -q --hard HEAD~1 && git reset -q --hard 'HEAD@{1}'",
    "git cherry-pick --allow-empty side; git cherry-pick --abort; git revert --no-edit HEAD",
    "git switch -q side && git switch -qc later && echo x > d.txt && git add -A && git commit -qm x && git rebase -q master",
    "git switch -q master && echo m > a.txt && git commit -qam m && git switch -q later && echo n > a.txt && git commit -qam n",
    "git merge -q master",
    "git status --short",
    "git merge --abort && git rebase master",
    "git rebase --abort",
    "git merge -q master; echo both > a.txt; git add a.txt && git commit -qm both",
    "git fetch -q . '+refs/heads/*:refs/remotes/origin/*'",
    "git branch -D side",
    "git bisect start HEAD HEAD~2 && git bisect reset",
    "git checkout -q HEAD~1 && git checkout -q -",
    "git rm -q d.txt && git mv a.txt e.txt && git commit -qm moved",
    "git restore --staged . && git clean -fdq && git restore .",
    "git gc -q && git pack-refs --all && git fsck --no-progress",
    "git worktree list && git submodule status && git log --oneline -3 && git reflog -3",
    "echo w > w.txt && git add w.txt",
)
SEEN = (
    ("status", "--porcelain=v2", "--branch"),
    ("stash", "list"),
    ("reflog",),
    ("for-each-ref", "--format=%(refname)%(if:equals=refs/codeloop)%(refname:rstrip=-2)%(then) kept%(else) %(objectname)%(end)"),
    ("log", "--format=%H %s", "HEAD"),
)


async def test_everyday_lines_leave_what_git_itself_would_have_left(repo: Attacked, tmp_path: Path) -> None:
    twin = tmp_path / "twin"
    subprocess.run(["cp", "-a", repo.root, twin], check=True)
    # The same for both. Not an old one: `git gc` drops old lines of logs.
    now = f"'{int(time.time())} +0000'"
    dates = f"export GIT_AUTHOR_DATE={now} GIT_COMMITTER_DATE={now}; "
    for line in EVERYDAY:
        inside = await repo.run(dates + line)
        outside = subprocess.run(
            ["bash", "-c", dates + line], cwd=twin, env=dict(repo.context.environment), capture_output=True, text=True
        )
        assert inside.code == outside.returncode, (line, inside.output, outside.stderr)
        for words in SEEN:
            ours, theirs = (git(top, *words).splitlines() for top in (repo.root, twin))
            assert [row for row in ours if "codeloop" not in row] == theirs, (line, words, inside.warnings)
    git(repo.root, "fsck", "--strict", "--no-progress")


DELETIONS = (
    "rm -rf .git",
    "find . -mindepth 1 -delete",
    "rm -rf ./* ./.[a-z]*",
    "rm -rf .git && git init -q . && git add -A && git -c user.name=A -c user.email=a@b commit -qm new --allow-empty",
    "echo x > y; rm -rf .git; echo z",
    "printf 'distclean:\\n\\trm -rf .git build\\n' > Makefile; make distclean || true",
    "rm -rf .git/objects .git/refs .git/logs .git/packed-refs .git/real",
    "rm -f .git/HEAD .git/index",
    ": > .git/HEAD; rm -rf .git/refs",
    "mv .git old",
    "git update-ref -d refs/heads/master; git update-ref -d refs/heads/side; git tag -d v1; git stash clear",
    "git reflog expire --expire=now --all; git gc -q --prune=now",
    "for f in .git/* .git/*/* .git/*/*/*; do : > $f; done",
    "for f in .git/* .git/*/* .git/*/*/*; do echo x > $f; done",
    "rm -rf .git; ln -s /etc .git; mkdir .git; cp -r /etc/skel .git/",
    "chmod -R u+w .git; find .git -type f -exec sh -c 'echo x >> \"$1\"' _ {} ';'",
)


async def test_no_command_takes_anything_from_the_repository(repo: Attacked) -> None:
    (repo.root / "a.txt").write_text("stashed\n")
    git(repo.root, "stash", "-q")
    places = {name: git(repo.root, "rev-parse", name) for name in ("refs/heads/master", "refs/heads/side", "refs/stash")}
    wrong: list[str] = []
    for line in DELETIONS:
        result = await repo.run(f"cd {repo.root}; {line}")
        git(repo.root, "fsck", "--no-progress")
        names = git(repo.root, "for-each-ref", "--format=%(objectname)").split()
        wrong += [f"{line}: {result.warnings}"] if not set(places.values()) <= set(names) else []
        wrong += [f"{line}: no note"] if not result.warnings and not {"expire", "mv"} & set(line.split()) else []
        git(repo.root, "checkout", "-qf", "-B", "master", places["refs/heads/master"])
        git(repo.root, "update-ref", "refs/heads/side", places["refs/heads/side"])
    assert wrong == []


PLANTS = (
    "mkdir evil; cp -r .git/refs .git/objects evil/; printf '[core]\\nfsmonitor=touch {mark}\\n' > evil/config; echo ../evil > .git/commondir",
    "printf '[core]\\nfsmonitor=touch {mark}\\n' > .git/config.worktree",
    "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch {mark}\\n' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change",
    "printf '[core]\\nfsmonitor=touch {mark}\\n' >> .git/config",
    "printf '[core]\\nfsmonitor=touch {mark}\\n' > .git/own; mv -f .git/own .git/config",
    "echo '*.txt filter=x' > .git/info/attributes",
    "echo /etc > .git/objects/info/alternates",
    "mkdir -p .git/modules/x; git init -q --bare .git/modules/x; printf '[core]\\nfsmonitor=touch {mark}\\n' >> .git/modules/x/config",
    "mv .git/hooks .git/hooks2; mkdir .git/hooks",
    "ln -sf /etc/passwd .git/MERGE_MSG; ln -sf ../../../home/.ssh/id_ed25519 .git/SQUASH_MSG",
    "mkdir .git/rebase-merge; echo 'exec touch {mark}' > .git/rebase-merge/git-rebase-todo; echo x/y > .git/rebase-merge/strategy",
    "rm .git/index; mkfifo .git/index; mkfifo .git/ORIG_HEAD",
    "printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\1xxxx' > .git/index",
    "echo 'ref: ../config' > .git/HEAD",
    "echo 'ref: refs/heads/../../config' > .git/HEAD",
)


async def test_nothing_that_git_runs_gets_into_the_real_folder_even_for_a_moment(repo: Attacked, tmp_path: Path) -> None:
    folder, mark = repo.root / ".git", tmp_path / "ran"
    wrong: list[str] = []
    kept = {path: path.read_bytes() for path in (folder / "config", *(folder / "hooks").iterdir())}
    for line in PLANTS:
        # What is there while the command runs is what the user's git would see.
        running = asyncio.create_task(repo.run(f"{line.format(mark=mark)}; sleep 3"))
        while not running.done():
            found = {str(path.relative_to(folder)) for path in (*folder.iterdir(), *folder.glob("*/*"))}
            wrong += [
                f"{line}: {name}"
                for name in ("commondir", "config.worktree", "info/attributes", "objects/info/alternates", "modules/x", "hooks2")
                if name in found
            ]
            await asyncio.sleep(0.1)
        git(repo.root, "status")
        now = {path: path.read_bytes() for path in (folder / "config", *(folder / "hooks").iterdir())}
        wrong += [line] if now != kept or mark.exists() else []
        wrong += [f"{line}: {path}" for path in folder.iterdir() if path.is_symlink() or "root:" in path.name]
        todo = folder / "rebase-merge/git-rebase-todo"
        wrong += [f"{line}: exec"] if todo.exists() and b"exec" in todo.read_bytes() else []
    assert wrong == []
