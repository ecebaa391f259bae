"""What a command does with git reaches the real git folder as data, and nothing else of it does."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.workspace.process.shells import Shells
from codeloop.workspace.sandbox import git_folders
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.workspace.sandbox.conftest import Attacked

pytestmark = pytest.mark.slow


def read_lines(name: str) -> tuple[str, ...]:
    """Read shell lines from a file of this folder."""
    return tuple((Path(__file__).parent / "git_lines" / f"{name}.txt").read_text().splitlines())


def git(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the user's git outside of the sandbox."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    ended = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
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


EVERYDAY = read_lines("everyday")
SEEN = (
    ("status", "--porcelain=v2", "--branch"),
    ("stash", "list"),
    ("reflog",),
    (
        "for-each-ref",
        "--format=%(refname)%(if:equals=refs/codeloop)%(refname:rstrip=-2)%(then) kept%(else) %(objectname)%(end)",
    ),
    ("log", "--format=%H %s", "HEAD"),
)


async def test_everyday_lines_leave_what_git_itself_would_have_left(
    repo: Attacked, tmp_path: Path
) -> None:
    twin = tmp_path / "twin"
    subprocess.run(["cp", "-a", repo.root, twin], check=True)
    # The same for both. Not an old one: `git gc` drops old lines of logs.
    now = f"'{int(time.time())} +0000'"
    dates = f"export GIT_AUTHOR_DATE={now} GIT_COMMITTER_DATE={now}; "
    for line in EVERYDAY:
        inside = await repo.run(dates + line)
        outside = subprocess.run(
            ["bash", "-c", dates + line],
            cwd=twin,
            env=dict(repo.context.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert inside.code == outside.returncode, (line, inside.output, outside.stderr)
        for words in SEEN:
            ours, theirs = (git(top, *words).splitlines() for top in (repo.root, twin))
            assert [row for row in ours if "codeloop" not in row] == theirs, (
                line,
                words,
                inside.warnings,
            )
    git(repo.root, "fsck", "--strict", "--no-progress")


DELETIONS = read_lines("deletions")


async def test_no_command_takes_anything_from_the_repository(repo: Attacked) -> None:
    (repo.root / "a.txt").write_text("stashed\n")
    git(repo.root, "stash", "-q")
    places = {
        name: git(repo.root, "rev-parse", name)
        for name in ("refs/heads/master", "refs/heads/side", "refs/stash")
    }
    wrong: list[str] = []
    for line in DELETIONS:
        result = await repo.run(f"cd {repo.root}; {line}")
        git(repo.root, "fsck", "--no-progress")
        names = git(repo.root, "for-each-ref", "--format=%(objectname)").split()
        wrong += [f"{line}: {result.warnings}"] if not set(places.values()) <= set(names) else []
        wrong += (
            [f"{line}: no note"]
            if not result.warnings and not {"expire", "mv"} & set(line.split())
            else []
        )
        git(repo.root, "checkout", "-qf", "-B", "master", places["refs/heads/master"])
        git(repo.root, "update-ref", "refs/heads/side", places["refs/heads/side"])
    assert wrong == []


PLANTS = read_lines("plants")


async def test_nothing_that_git_runs_gets_into_the_real_folder_even_for_a_moment(
    repo: Attacked, tmp_path: Path
) -> None:
    folder, mark = repo.root / ".git", tmp_path / "ran"
    wrong: list[str] = []
    kept = {path: path.read_bytes() for path in (folder / "config", *(folder / "hooks").iterdir())}
    for line in PLANTS:
        # What is there while the command runs is what the user's git would see.
        running = asyncio.create_task(repo.run(f"{line.format(mark=mark)}; sleep 3"))
        while not running.done():
            found = {
                str(path.relative_to(folder)) for path in (*folder.iterdir(), *folder.glob("*/*"))
            }
            wrong += [
                f"{line}: {name}"
                for name in (
                    "commondir",
                    "config.worktree",
                    "info/attributes",
                    "objects/info/alternates",
                    "modules/x",
                    "hooks2",
                )
                if name in found
            ]
            await asyncio.sleep(0.1)
        git(repo.root, "status")
        now = {
            path: path.read_bytes() for path in (folder / "config", *(folder / "hooks").iterdir())
        }
        wrong += [line] if now != kept or mark.exists() else []
        wrong += [
            f"{line}: {path}"
            for path in folder.iterdir()
            if path.is_symlink() or "root:" in path.name
        ]
        todo = folder / "rebase-merge/git-rebase-todo"
        wrong += [f"{line}: exec"] if todo.exists() and b"exec" in todo.read_bytes() else []
    assert wrong == []


async def wait_for(is_there: Callable[[], bool]) -> None:
    """Wait until something holds, which takes the carrying-over of a command
    that runs some seconds.
    """
    for _ in range(600):
        if is_there():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it did not come")


async def test_the_user_and_a_command_work_at_the_same_time(repo: Attacked) -> None:
    # What the user does is seen after the next carrying-over.
    tips = "$({ git log --format=%s -1; git log --format=%s -1 side; } 2> /dev/null)"
    script = (
        "echo a > ours.txt; git add ours.txt; git commit -qm ours; "
        f'until [ "$(echo {tips})" = "mine moved" ]; do sleep 0.1; done'
    )
    running = asyncio.create_task(
        repo.run(f"{script}; git log --format=%s -1; git tag late; git branch -f side HEAD")
    )
    root = repo.root
    await wait_for(lambda: git(root, "log", "--format=%s", "-1") == "ours")
    # The user goes on from the command's commit, while the command still runs.
    (root / "mine.txt").write_text("1")
    git(root, "add", "mine.txt")
    git(root, "commit", "-qm", "mine")
    git(root, "gc", "-q", "--prune=now")
    git(root, "stash", "list")
    side = git(root, "commit-tree", "-m", "moved", "HEAD^{tree}")
    git(root, "update-ref", "refs/heads/side", side)
    result = await running
    assert result.output.strip() == "mine", result
    assert git(root, "status", "--porcelain", "-uno") == ""
    assert git(root, "rev-parse", "late") == git(root, "rev-parse", "HEAD")
    assert git(root, "rev-parse", "side") == git(root, "rev-parse", "HEAD")
    assert "side was moved" in "".join(result.warnings)
    git(root, "fsck", "--no-progress", "--strict")


async def test_what_cannot_be_carried_is_kept_under_a_name_and_said(repo: Attacked) -> None:
    root = repo.root
    wait = "touch ready; while ! test -e go; do sleep 0.05; done"
    running = asyncio.create_task(
        repo.run(f"{wait}; echo x > x; git add x; git commit -qm theirs; git branch -f side HEAD")
    )
    await wait_for((root / "ready").exists)
    # The command sees what was there before it began: nothing is taken over in
    # the middle of this second.
    git(root, "commit", "-qm", "mine", "--allow-empty")
    git(root, "branch", "-f", "side", "HEAD")
    (root / "go").touch()
    result = await running
    kept = git(root, "for-each-ref", "--format=%(contents:subject)", "refs/codeloop/kept").split()
    if git(root, "log", "--format=%s", "-1") == "mine":
        assert kept.count("theirs") == 2, result
        assert "at the same time" in "".join(result.warnings)
    git(root, "fsck", "--no-progress")


async def test_two_programs_at_once_and_one_that_was_killed_lose_nothing(repo: Attacked) -> None:
    other = Shells()
    other.sandboxes = Sandboxes(other.launcher, (repo.backend,))
    second = repo._replace(shells=other)
    try:
        for number in range(3):
            for each in (repo, second):
                result = await each.run(
                    f"echo {number} >> c.txt; git add c.txt; git commit -qm c{number}"
                )
                assert result.code == 0, result
        assert git(repo.root, "rev-list", "--count", "HEAD") == "8"
        # It is cut off before anything is carried over: only the folder is left.
        # A start that was tried again on a busy machine has a number as well.
        private = next(repo.place.private_folder.glob("[2-9]/git/*/git/real")).parent
    finally:
        await other.close()
    env = {**os.environ, "GIT_DIR": str(private), "GIT_WORK_TREE": str(repo.root)}
    (private / "real").rename(private / "real.away")
    (private / "real").mkdir()
    (private / "real/objects").symlink_to(repo.root / ".git/objects")
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    subprocess.run(
        ["git", *identity, "commit", "-qm", "cut off", "--allow-empty"],
        env=env,
        check=True,
        cwd=repo.root,
    )
    (private / "hooks").mkdir(exist_ok=True)
    (private / "hooks/pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (private / "hooks/pre-commit").chmod(0o755)
    third = Shells()
    third.sandboxes = Sandboxes(third.launcher, (repo.backend,))
    try:
        result = await repo._replace(shells=third).run(
            "git log --format=%s -1; git commit -qm next --allow-empty"
        )
        assert (result.code, result.output.strip()) == (0, "cut off"), result
    finally:
        await third.close()
    assert git(repo.root, "log", "--format=%s", "-2").split("\n") == ["next", "cut off"]


async def test_submodules_and_linked_work_trees_in_the_project_are_carried(
    repo: Attacked, tmp_path: Path
) -> None:
    root, lib = repo.root, tmp_path / "lib"
    subprocess.run(["cp", "-a", root, lib], check=True)
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(lib), "sub")
    git(root / "sub", "config", "user.name", "A")
    git(root / "sub", "config", "user.email", "a@example.com")
    git(root, "commit", "-qm", "with a submodule")
    git(root, "worktree", "add", "-q", str(root / "tree"))
    (root / ".git/info/exclude").write_text("/tree\n")
    line = "cd {}/{}; echo 1 > new.txt; git add new.txt; git commit -qm {}"
    for folder in ("sub", "tree"):
        result = await repo.run(line.format(root, folder, folder))
        assert result.code == 0, result
        assert git(root / folder, "log", "--format=%s", "-1") == folder
        assert git(root / folder, "status", "--porcelain") == ""
    result = await repo.run(
        f"cd {root}; git add sub; git commit -qm bump; git submodule status; git worktree list"
    )
    assert result.code == 0, result
    assert git(root, "status", "--porcelain") == ""
    made = await repo.run(
        f"cd {root}; git worktree add -q made && cd made && git commit -q --allow-empty -m made"
    )
    assert made.code == 0, made
    assert git(root / "made", "log", "--format=%s", "-1") == "made"
    gone = await repo.run(
        f"cd {root}; git worktree remove --force made; rm -rf .git/modules/sub sub"
    )
    assert "made" not in git(root, "worktree", "list"), gone
    assert (root / ".git/modules/sub/HEAD").exists()
    assert "tried to delete" in "".join(gone.warnings)
    git(root, "submodule", "update", "-f", "--recursive")


@pytest.mark.parametrize("kind", ["sha256", "split", "shallow", "alternates", "packed", "odd"])
async def test_repositories_of_every_kind_are_carried(
    repo: Attacked, tmp_path: Path, kind: str
) -> None:
    root, source = repo.root, tmp_path / "source"
    if kind == "split":
        git(root, "config", "core.splitIndex", "true")
        git(root, "update-index", "--split-index")
    elif kind == "packed":
        git(root, "gc", "-q")
    elif kind == "odd":
        git(root, "branch", os.fsdecode(b"odd-\xff-\xc3\xa9"))
        (root / os.fsdecode(b'odd \xff\n"name')).write_text("1")
    else:
        root.rename(source)
        if kind == "sha256":
            git(tmp_path, "init", "-q", "--object-format=sha256", str(root))
            (root / "a.txt").write_text("1")
        elif kind == "shallow":
            git(tmp_path, "clone", "-q", "--depth=1", f"file://{source}", str(root))
        else:
            inside = tmp_path / "work"
            git(tmp_path, "clone", "-q", "--bare", str(source), str(tmp_path / "base.git"))
            git(tmp_path, "clone", "-q", str(source), str(inside))
            (tmp_path / "base.git").rename(inside / "base.git")
            git(inside, "repack", "-adq")
            (inside / ".git/objects/info/alternates").write_text("../../base.git/objects\n")
            git(inside, "repack", "-adlq")
        for name, value in (("user.name", "A"), ("user.email", "a@example.com")):
            git(root, "config", name, value)
    for number in range(2):
        result = await repo.run(
            f"cd {root}; echo {number} > new; git add new a.txt && git commit -qm c{number} && git branch b{number}"
            " && (test -e base.git || git add -A) && git status --short && git log --oneline && git fsck --no-progress"
        )
        assert result.code == 0, result
        assert git(root, "log", "--format=%s", "-1") == f"c{number}", result
        assert git(root, "status", "--porcelain", "-uno", "--", "new") == ""
    git(root, "fsck", "--no-progress")


async def test_a_bad_object_index_or_reference_is_not_carried(repo: Attacked) -> None:
    root = repo.root
    head = git(root, "rev-parse", "HEAD")
    lies = read_lines("lies")
    for line in lies:
        result = await repo.run(f"cd {root}; {line.format(head=head)}")
        git(root, "fsck", "--strict", "--no-progress")
        names = git(root, "for-each-ref", "--format=%(refname)").split("\n")
        assert names == ["refs/heads/master", "refs/heads/side", "refs/tags/v1"], (line, result)
        assert git(root, "rev-parse", "HEAD") == head, (line, result)
        assert "/k" not in git(root, "ls-files"), (line, result)
        assert not list((root / ".git/objects/pack").glob("*1234567*")), line


async def test_files_of_git_lfs_are_carried_by_their_hash_alone(repo: Attacked) -> None:
    line = (
        "h=$(echo large | sha256sum | cut -c1-64); d=.git/lfs/objects/$(echo $h | cut -c1-2)/$(echo $h | cut -c3-4);"
        " mkdir -p $d; echo large > $d/$h; mkdir -p .git/lfs/objects/00/00; echo x > .git/lfs/objects/00/00/"
        + "0" * 64
        + "; git commit -q --allow-empty -m lfs"
    )
    assert (await repo.run(line)).code == 0
    (found,) = [path for path in (repo.root / ".git/lfs").rglob("*") if path.is_file()]
    assert found.read_text() == "large\n"
    assert "large" in (await repo.run("cat .git/real/lfs/objects/*/*/*")).output


async def test_what_cannot_be_read_of_a_private_folder_stops_no_command(repo: Attacked) -> None:
    for line in (
        "rm .git/packed-refs; mkfifo .git/packed-refs",
        "rm .git/packed-refs; mkdir .git/packed-refs",
    ):
        await repo.run(line)
        assert (await repo.run("git log --oneline | wc -l")).output.strip() == "2", line


async def test_carrying_over_in_the_middle_of_everything_loses_nothing(
    repo: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_folders, "_WATCH_SECONDS", 0.01)
    root = repo.root
    script = (
        "set -e; for i in $(seq 25); do echo $i > c.txt; git add c.txt; git commit -qm c$i; git branch -f side HEAD;"
        " git switch -q --detach; git switch -q master; echo x > a.txt; git stash -q; git stash pop -q;"
        " git checkout -q a.txt; git tag -f t$((i % 3)) > /dev/null; done; git pack-refs --all"
    )
    running = asyncio.create_task(repo.run(script))
    mine: list[str] = []
    while not running.done():
        # The user's own branch, meanwhile.
        mine.append(git(root, "commit-tree", "-m", f"m{len(mine)}", "HEAD^{tree}"))
        git(root, "update-ref", "refs/heads/mine", mine[-1])
        await asyncio.sleep(0.05)
    result = await running
    assert result.code == 0, result
    assert git(root, "log", "--format=%s", "-26").split("\n")[:25] == [
        f"c{number}" for number in range(25, 0, -1)
    ]
    assert git(root, "status", "--porcelain") == ""
    assert (
        git(root, "rev-parse", "side")
        == git(root, "rev-parse", "t1")
        == git(root, "rev-parse", "HEAD")
    )
    assert git(root, "rev-parse", "mine") == mine[-1]
    assert git(root, "stash", "list") == ""
    logged = git(root, "reflog", "--format=%gs", "master").split("\n")
    assert logged[:25] == [f"commit: c{number}" for number in range(25, 0, -1)]
    git(root, "fsck", "--no-progress")


async def test_a_process_that_ends_leaves_nothing_that_looks_like_a_command_that_deleted_all(
    repo: Attacked,
) -> None:
    for _ in range(2):
        shells = Shells()
        shells.sandboxes = Sandboxes(shells.launcher, (repo.backend,))
        try:
            # Until nothing is left to carry over at the end: what has just changed
            # counts as unknown.
            for _ in range(3):
                await asyncio.sleep(0.15)
                result = await repo._replace(shells=shells).run("git log --oneline | wc -l")
                assert (result.output.strip(), result.warnings) == ("2", ()), result
        finally:
            await shells.close()


UNKEPT = (
    "git config a.b c",
    "git remote add o https://example.com/x",
    "git checkout -q -b n --track side",
    "python3 -c \"import subprocess; subprocess.run(['git', 'config', 'a.b', 'c'])\"",
    "git branch -q --set-upstream-to=side || true",
)


async def test_settings_that_are_not_kept_are_told_also_when_git_succeeds(repo: Attacked) -> None:
    before = (repo.root / ".git/config").read_bytes()
    for line in UNKEPT:
        result = await repo.run(line)
        told = [
            note
            for note in result.notes
            if note.startswith("Settings of git were not changed (.git/config)")
        ]
        assert len(told) == 1, (line, result)
        assert "it asks for the file" in told[0]
    assert (repo.root / ".git/config").read_bytes() == before
    add = "git clone -q --bare . ../o.git; git -c protocol.file.allow=always submodule --quiet add $PWD/../o.git sub"
    result = await repo.run(add.replace("..", "x"))
    assert "the repository of submodule sub was not kept" in " ".join(result.warnings), result
    assert "submodule sub" not in " ".join((await repo.run("true")).warnings)


async def test_a_command_can_not_cut_the_history_nor_open_one_that_is_cut(
    repo: Attacked, tmp_path: Path
) -> None:
    outcome = await repo.run("git rev-parse HEAD > .git/shallow")
    assert not (repo.root / ".git/shallow").exists()
    assert "where the history ends" in " ".join(outcome.warnings)
    assert git(repo.root, "rev-list", "--count", "HEAD") == "2"
    git(tmp_path, "clone", "-q", "--bare", str(repo.root), "origin.git")
    shutil.rmtree(repo.root / ".git")
    git(repo.root, "clone", "-q", "--depth=1", f"file://{tmp_path}/origin.git", "x")
    shutil.move(repo.root / "x/.git", repo.root / ".git")
    await repo.run("rm .git/shallow")
    assert git(repo.root, "rev-list", "--count", "HEAD") == "1"
    git(repo.root, "fsck", "--no-progress")
    # What git itself does has its effect: here a repository that the command sees.
    git(tmp_path, "clone", "-q", "--bare", "origin.git", str(repo.root / "seen.git"))
    result = await repo.run("git fetch -q --unshallow ./seen.git")
    assert result.code == 0, result.output
    assert not (repo.root / ".git/shallow").exists()
    assert git(repo.root, "rev-list", "--count", "HEAD") == "2"


async def test_what_misleads_git_in_a_sandbox_is_gone_with_the_next_command(repo: Attacked) -> None:
    await repo.run("echo ../evil > .git/commondir; echo x > .git/info/grafts")
    await repo.run("mkdir -p .git/objects/info; echo x > .git/objects/info/commit-graph")
    outcome = await repo.run("git log --oneline | wc -l")
    assert outcome.output.split() == ["2"]


async def test_a_git_folder_that_commands_only_read_is_named_when_git_fails(
    repo: Attacked,
) -> None:
    # As with reftables, which this git may not know.
    kept = repo.root.parent / "kept"
    (repo.root / ".git/refs/tags").rename(kept)
    (repo.root / ".git/refs/tags").symlink_to(kept)
    (repo.root / "a.txt").write_text("more\n")
    later = Shells()
    later.sandboxes = Sandboxes(later.launcher, (repo.backend,))
    try:
        result = await repo._replace(shells=later).run("git commit -qam more")
    finally:
        await later.close()
    assert result.code != 0
    assert any("only read this repository's git folder" in note for note in result.notes), result
    assert [path.name for path in kept.iterdir()] == ["v1"]
