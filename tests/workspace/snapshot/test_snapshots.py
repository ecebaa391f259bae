"""Snapshots against what git itself says of the same work tree."""

import asyncio
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.limits import Limit
from codeloop.workspace.snapshot import file_jobs, scanner
from codeloop.workspace.snapshot.object_store import EMPTY_TREE
from codeloop.workspace.snapshot.snapshots import SkippedSnapshot, Snapshot, Snapshots
from codeloop.workspace.snapshot.step_recorder import StepRecorder
from codeloop.workspace.snapshot.stored_trees import find_entry
from tests.support.audit_hook import add_audit
from tests.workspace.snapshot.trees_on_disk import (
    ENVIRONMENT,
    everything,
    git,
    git_state,
    names_in,
    recorded,
    repository,
    snapshots_of,
    taken,
    write,
)

FILES = {"a.txt": "a\n", "deep/er/b.txt": "b\n", "deep/c.txt": "c\n", "z": "z\n"}


async def test_a_clean_work_tree_has_the_tree_that_git_gives_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    snapshots = snapshots_of(root, tmp_path)
    assert (await taken(snapshots)).tree == git(root, "rev-parse", "HEAD^{tree}").strip()


@pytest.mark.parametrize("version", ["2", "3", "4"])
async def test_each_version_of_the_index_is_read(tmp_path: Path, version: str) -> None:
    root = repository(tmp_path / "work", {**FILES, "ä/ö.txt": "x", "extra": "intent"})
    (root / "new").write_text("announced only")
    git(root, "add", "-N", "new")
    git(root, "update-index", f"--index-version={version}")
    past = time.time() - 100
    for path in root.rglob("*"):
        os.utime(path, (past, past))
    git(root, "update-index", "-q", "--refresh")
    (root / "a.txt").write_text("changed")
    snapshots = snapshots_of(root, tmp_path)
    state = await taken(snapshots)
    git(root, "add", "-A")
    assert state.tree == git(root, "write-tree").strip()


@pytest.mark.parametrize(
    "hide",
    [
        ("update-index", "--assume-unchanged", "a.txt"),
        ("update-index", "--skip-worktree", "a.txt"),
        ("update-index", "--split-index"),
        ("replace", "HEAD^{tree}", "HEAD:deep"),
    ],
)
async def test_a_change_that_git_is_told_not_to_show_is_seen(
    tmp_path: Path, hide: tuple[str, ...]
) -> None:
    root = repository(tmp_path / "work", FILES)
    snapshots = snapshots_of(root, tmp_path)
    before = (await taken(snapshots)).tree
    git(root, *hide)
    (root / "a.txt").write_text("hidden change\n")
    after = (await taken(snapshots)).tree
    assert before != after


async def test_what_is_clean_is_not_copied(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"clean": "c" * 1000, "dirty": "d"})
    await asyncio.sleep(0.03)
    git(root, "status")
    past = time.time() - 100
    for name in ("clean", "dirty"):
        os.utime(root / name, (past, past))
    git(root, "update-index", "-q", "--refresh")
    (root / "dirty").write_text("other")
    snapshots = snapshots_of(root, tmp_path)
    await taken(snapshots)
    assert not snapshots.objects.has(git(root, "rev-parse", "HEAD:clean").strip())
    assert snapshots.objects.has(git(root, "hash-object", "dirty").strip())


async def test_an_unchanged_state_is_not_looked_at_again(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    snapshots = snapshots_of(root, tmp_path)
    first = await taken(snapshots)
    write(root, {"a.txt": "changed"})
    assert await snapshots.take() is first
    snapshots.mark_changed()
    second = await snapshots.take()
    assert isinstance(second, Snapshot)
    assert second.tree != first.tree


async def test_every_kind_of_change_is_found(tmp_path: Path) -> None:
    root = repository(
        tmp_path / "work", {**FILES, "run.sh": "x", "gone": "x", "was/file": "x", "link": "x"}
    )
    snapshots = snapshots_of(root, tmp_path)
    await taken(snapshots)
    write(root, {"a.txt": "A\n", "new/file": "new"})
    (root / "run.sh").chmod(0o755)
    (root / "gone").unlink()
    (root / "was/file").unlink()
    (root / "was").rmdir()
    (root / "was").write_text("a file now")
    (root / "link").unlink()
    (root / "link").symlink_to("a.txt//../a.txt")
    state = await taken(snapshots)
    git(root, "add", "-A")
    assert state.tree == git(root, "write-tree").strip()


async def test_a_change_of_the_same_size_in_the_same_instant_is_found(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    snapshots = snapshots_of(root, tmp_path)
    for text in ("1", "2", "3", "4"):
        (root / "a.txt").write_text(text)
        state = await taken(snapshots)
        git(root, "add", "-A")
        assert state.tree == git(root, "write-tree").strip()


async def test_ignored_files_are_left_out_as_git_does(tmp_path: Path) -> None:
    root = repository(
        tmp_path / "work",
        {
            ".gitignore": "*.log\n/out/\n!keep.log\n",
            "kept.log": "tracked",
            "sub/.gitignore": "own\n",
        },
    )
    git(root, "add", "-f", "kept.log")
    git(root, "commit", "-q", "-m", "forced")
    (root / ".git/info/exclude").write_text("private\n")
    write(
        root,
        {
            "x.log": "",
            "keep.log": "",
            "out/x": "",
            "sub/own": "",
            "own": "",
            "private": "",
            "sub/out/x": "",
        },
    )
    snapshots = snapshots_of(root, tmp_path)
    found = names_in(snapshots, (await taken(snapshots)).tree)
    git(root, "add", "-A")
    assert found == sorted(git(root, "ls-files", "-z").split("\0")[:-1])
    write(root, {"sub/.gitignore": "other\n", "sub/other": ""})
    found = names_in(snapshots, (await taken(snapshots)).tree)
    assert "sub/own" in found
    assert "sub/other" not in found


async def test_folders_of_packages_are_left_out_where_nothing_ignores_them(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a", "node_modules/own/index.js": "tracked"})
    write(
        root,
        {
            "node_modules/p/index.js": "",
            "app/.venv/lib/x.py": "",
            "src/__pycache__/a.pyc": "",
            "dist/new.js": "",
        },
    )
    snapshots = snapshots_of(root, tmp_path)
    assert names_in(snapshots, (await taken(snapshots)).tree) == [
        "a.txt",
        "dist/new.js",
        "node_modules/own/index.js",
    ]
    write(
        root, {"node_modules/own/index.js": "changed", "node_modules/q/index.js": "", "b.txt": ""}
    )
    found = names_in(snapshots, (await taken(snapshots)).tree)
    assert found == ["a.txt", "b.txt", "dist/new.js", "node_modules/own/index.js"]


async def test_named_and_all_ignored_files_are_taken_on_demand(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {".gitignore": "*.log\nout\n"})
    write(root, {"x.log": "1", "out/deep/y": "2"})
    snapshots = snapshots_of(root, tmp_path)
    await taken(snapshots)
    named = await snapshots.take(("out",))
    assert isinstance(named, Snapshot)
    assert names_in(snapshots, named.tree) == [".gitignore", "out/deep/y"]
    whole = await snapshots.take(include_ignored=True)
    assert isinstance(whole, Snapshot)
    assert names_in(snapshots, whole.tree) == [".gitignore", "out/deep/y", "x.log"]


async def test_a_git_directory_that_a_command_names_is_never_taken(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    snapshots = snapshots_of(root, tmp_path)
    before = await taken(snapshots)
    snapshots.mark_changed()
    named = await snapshots.take((".git", ".git/refs"))
    # Undoing `rm -rf .git` would remove what seems to be new.
    assert isinstance(named, Snapshot)
    assert named.tree == before.tree


async def test_a_folder_without_git_is_taken_too(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root, {**FILES, ".gitignore": "no\n", "no": ""})
    snapshots = snapshots_of(root, tmp_path)
    assert names_in(snapshots, (await taken(snapshots)).tree) == sorted([*FILES, ".gitignore"])


async def test_an_empty_folder_has_the_empty_tree(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert (await taken(snapshots_of(tmp_path / "none", tmp_path))).tree == EMPTY_TREE


async def test_the_repository_and_its_work_tree_are_not_touched(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    write(root, {"a.txt": "staged", "new": "untracked"})
    git(root, "add", "a.txt")
    git(root, "stash", "--keep-index", "-q")
    (root / ".git/index.lock").write_text("somebody's")
    before = everything(root)
    snapshots = snapshots_of(root, tmp_path)
    await taken(snapshots)
    await snapshots.close()
    assert everything(root) == before


async def test_pipes_sockets_loops_and_large_files_are_listed_and_do_not_block(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", FILES)
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        folder = os.open(root, os.O_RDONLY)
        sock.bind(f"/proc/self/fd/{folder}/socket")
        os.close(folder)
        (root / "loop").symlink_to("loop")
        (root / "up").symlink_to("..")
        with (root / "huge").open("wb") as file:
            file.truncate(100 * 1024**3)
        snapshots = snapshots_of(root, tmp_path)
        state = await taken(snapshots)
    assert {each.path for each in state.omitted} == {"pipe", "socket", "huge"}
    assert {"loop", "up"} < set(names_in(snapshots, state.tree))
    size = sum(
        path.stat().st_size for path in snapshots.objects.folder.rglob("*") if path.is_file()
    )
    assert size < 100_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_an_unreadable_folder_is_listed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    (root / "deep").chmod(0)
    try:
        state = await taken(snapshots_of(root, tmp_path))
    finally:
        (root / "deep").chmod(0o755)
    assert "deep" in {each.path for each in state.omitted}


@pytest.mark.parametrize("place", ["/", "home", "above"])
async def test_a_home_or_everything_is_not_taken_and_that_is_said_once(
    tmp_path: Path, place: str
) -> None:
    home = tmp_path / "users" / "me"
    home.mkdir(parents=True)
    root = {"/": Path("/"), "home": home, "above": home.parent}[place]
    snapshots = Snapshots(root, tmp_path / "snapshot", {**ENVIRONMENT, "HOME": str(home)})
    first, second = await snapshots.take(), await snapshots.take(fresh=True)
    assert isinstance(first, SkippedSnapshot)
    assert isinstance(second, SkippedSnapshot)
    assert (first.is_new, second.is_new) == (True, False)
    assert str(root) in first.reason


async def test_a_scan_is_waited_for_unless_the_disk_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "work", FILES)
    snapshots = snapshots_of(root, tmp_path)
    stuck_disk = threading.Event()

    def hold(event: str, _: tuple[Any, ...]) -> None:
        if event == "os.scandir" and threading.current_thread().name == "snapshot":
            stuck_disk.wait()

    try:
        with add_audit(hold), monkeypatch.context() as short:
            short.setattr(
                file_jobs,
                "SNAPSHOT_STALLED",
                Limit("snapshot.stalled", 3, "count", "for this test"),
            )
            short.setattr(file_jobs, "_POLL_SECONDS", 0.001)
            for _ in range(2):
                skipped = await snapshots.take()
                assert isinstance(skipped, SkippedSnapshot)
                assert "the disk gives no answer" in skipped.reason
            short.undo()
            waiting = asyncio.create_task(snapshots.take())
            await asyncio.sleep(0.01)
            assert not waiting.done()
            stuck_disk.set()
            assert isinstance(await waiting, Snapshot)
    finally:
        stuck_disk.set()
    assert (await taken(snapshots)).tree == git(root, "rev-parse", "HEAD^{tree}").strip()


async def test_a_scan_that_the_end_of_the_program_stops_is_continued_by_the_next(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", {f"d{number}/f": str(number) for number in range(40)})
    past = time.time() - 100
    for path in root.rglob("f"):
        os.utime(path, (past, past))
    git(root, "update-index", "-q", "--refresh")
    write(root, {f"new{number}": str(number) for number in range(100)})
    # A file that is younger than 20 ms is read again by any scan.
    while time.time_ns() < max(path.stat().st_ctime_ns for path in root.glob("new*")) + 50_000_000:
        time.sleep(0.01)
    first = snapshots_of(root, tmp_path)
    closing: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    count = 0

    def close_half_way(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if (
            event == "os.scandir"
            and threading.current_thread().name == "snapshot"
            and str(root) in str(arguments)
        ):
            count += 1
            if count == 20:
                started = threading.Event()
                loop.call_soon_threadsafe(
                    lambda: (closing.append(loop.create_task(first.close())), started.set())
                )
                # The task sets the mark in its first step.
                started.wait()
                while not first.is_closing:
                    time.sleep(0.001)

    with add_audit(close_half_way):
        skipped = await first.take()
    await closing[0]
    assert isinstance(skipped, SkippedSnapshot)
    assert count == 20
    again = snapshots_of(root, tmp_path)
    read: list[str] = []

    def record_read(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(root) in str(arguments[0]) and ".git" not in str(arguments[0]):
            read.append(str(arguments[0]))

    with add_audit(record_read):
        state = await taken(again)
    # Files of the repository are clean by its index; of the new ones only those are read
    # again that were young then.
    assert not [name for name in read if "/d" in name.removeprefix(str(root))]
    assert len(read) < 100
    git(root, "add", "-A")
    assert state.tree == git(root, "write-tree").strip()


async def test_a_tree_without_bounds_is_refused_once_with_what_can_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        scanner, "SNAPSHOT_FILES", Limit("snapshot.files", 10, "count", "for this test")
    )
    root = repository(tmp_path / "work", {**FILES, **{f"e{number}/x": "" for number in range(5)}})
    snapshots = snapshots_of(root, tmp_path)
    first, second = await snapshots.take(), await snapshots.take()
    assert isinstance(first, SkippedSnapshot)
    assert isinstance(second, SkippedSnapshot)
    assert first.reason == (
        "the work tree has more than 10 files and folders, so there are no snapshots of it; "
        "name what is generated in a .gitignore to be able to undo"
    )
    assert (first.is_new, second.is_new) == (True, False)
    (root / ".gitignore").write_text("e*\n")
    git(root, "rm", "-rq", "--cached", "-f", *(f"e{number}/x" for number in range(5)))
    assert isinstance(await snapshots_of(root, tmp_path).take(), Snapshot)


async def test_many_contents_are_kept_in_packs_that_git_can_read(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    files = {f"d{number % 7}/f{number}": f"{number}\n" * (number % 50) for number in range(500)}
    write(root, {**files, "large": "0123456789\n" * 5_000, "empty": ""})
    snapshots = snapshots_of(root, tmp_path)
    state = await taken(snapshots)
    folder = snapshots.objects.folder
    assert list((folder / "objects" / "pack").glob("*.idx"))
    assert not [path for path in (folder / "objects").iterdir() if len(path.name) == 2]
    git(root, f"--git-dir={folder}", "fsck", "--no-dangling", "--full")
    assert names_in(snapshots, state.tree) == sorted([*files, "large", "empty"])
    # Another process, which finds the packs, and one that has no stat cache any more.
    (folder / "files.msgpack").unlink(missing_ok=True)
    other = snapshots_of(root, tmp_path)
    assert (await taken(other)).tree == state.tree
    entry = find_entry(other.objects, state.tree, "large")
    assert entry is not None
    assert other.objects.read_blob(entry.blob) == b"0123456789\n" * 5_000
    assert len(list((folder / "objects" / "pack").glob("*.idx"))) == 1
    for name in files:
        (root / name).unlink()
    left = await taken(other)
    assert other.prune(age_ms=0) > 400
    assert names_in(other, left.tree) == ["empty", "large"]
    assert list((folder / "objects" / "pack").glob("*.idx")) == []


async def test_nothing_of_the_repository_is_executed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    trap = tmp_path / "ran"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "diff.external",
    ):
        git(root, "config", key, str(script))
    git(root, "config", "core.hooksPath", str(tmp_path))
    git(root, "config", "core.sshCommand", str(script))
    write(root, {".gitattributes": "* filter=x diff=x\n", "a.txt": "changed"})
    git(tmp_path, "init", "-q", "--bare", str(root / "embedded"))
    snapshots = snapshots_of(root, tmp_path)
    state = await taken(snapshots)
    deep = git(root, "rev-parse", "HEAD:deep/c.txt").strip()
    snapshots.objects.copy_shared(
        [deep], {**ENVIRONMENT, "GIT_EXTERNAL_DIFF": str(script)}, lambda _: None
    )
    await snapshots.close()
    assert snapshots.objects.read_blob(deep) == b"c\n"
    assert "embedded/HEAD" in names_in(snapshots, state.tree)
    assert not trap.exists()


async def test_a_submodule_and_a_worktree_are_taken_with_their_files(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"lib.c": "int x;\n", ".gitignore": "*.o\n"})
    root = repository(tmp_path / "work", FILES)
    git(root, "submodule", "--quiet", "add", str(inner), "vendor/inner")
    write(root, {"vendor/inner/lib.c": "int y;\n", "vendor/inner/lib.o": ""})
    snapshots = snapshots_of(root, tmp_path)
    found = names_in(snapshots, (await taken(snapshots)).tree)
    assert found == sorted([*FILES, ".gitmodules", "vendor/inner/lib.c", "vendor/inner/.gitignore"])
    inside = snapshots_of(root / "vendor/inner", tmp_path)
    assert names_in(inside, (await taken(inside)).tree) == [".gitignore", "lib.c"]
    git(root, "worktree", "add", "-q", str(tmp_path / "second"))
    second = snapshots_of(tmp_path / "second", tmp_path)
    assert (await taken(second)).tree == git(root, "rev-parse", "HEAD^{tree}").strip()


async def test_the_next_run_knows_what_the_last_one_saw(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root, {**FILES, os.fsdecode(b"odd\xff name\n"): "x"})
    await asyncio.sleep(0.03)
    first = snapshots_of(root, tmp_path)
    state = await taken(first)
    await first.close()
    again = snapshots_of(root, tmp_path)
    assert (await taken(again)).tree == state.tree
    write(root, {"a.txt": "changed"})
    assert (await taken(again)).tree != state.tree


async def test_a_broken_table_is_made_anew(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    first = snapshots_of(root, tmp_path)
    state = await taken(first)
    (first.objects.folder / "files.msgpack").write_bytes(b"\x93\x01")
    assert (await taken(snapshots_of(root, tmp_path))).tree == state.tree


async def test_a_watched_work_tree_gives_the_same_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = scanner.SNAPSHOT_WATCH.__class__("snapshot.watch", 2, "count", "for this test")
    monkeypatch.setattr(scanner, "SNAPSHOT_WATCH", few)
    root = repository(tmp_path / "work", {**FILES, "m/n/o": "1", "q/r": "2"})
    snapshots = snapshots_of(root, tmp_path)
    await taken(snapshots)
    assert snapshots.read_stats().watched
    steps = [
        "echo 1 > deep/er/b.txt",
        "mkdir -p x/y && echo 2 > x/y/z && chmod 755 a.txt",
        "rm -rf deep && mkdir deep && echo 3 > deep/c.txt",
        "echo 4 > deep/c.txt",
        "mv m m2 && mkdir -p m/n && echo 5 > m/n/o",
        "echo 6 > m/n/o && echo 7 > m2/n/o",
        "echo '*.tmp' > q/.gitignore && touch q/a.tmp b.tmp",
        "rm q/.gitignore",
        "ln -s a.txt link && rm z",
        "mv x/y q/y && echo 8 > q/y/z",
        "true",
    ]
    for step in steps:
        subprocess.run(["sh", "-c", step], cwd=root, check=True)
        state = await taken(snapshots)
        git(root, "add", "-A")
        assert state.tree == git(root, "write-tree").strip(), step
    await snapshots.close()


async def test_what_the_present_state_needs_is_not_pruned(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root, {"a": "old"})
    snapshots = snapshots_of(root, tmp_path)
    first = await taken(snapshots)
    write(root, {"a": "new"})
    second = await taken(snapshots)
    assert snapshots.prune(age_ms=0) == 2
    assert names_in(snapshots, second.tree) == ["a"]
    assert not snapshots.objects.has(first.tree)
    assert snapshots.read_stats().objects == 2


async def test_the_store_is_private_and_a_real_git_directory(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    write(root, {"secret": "s"})
    (root / "secret").chmod(0o600)
    before = git_state(root)
    snapshots = snapshots_of(root, tmp_path)
    await taken(snapshots)
    folder = snapshots.objects.folder
    assert folder.stat().st_mode & 0o077 == 0
    assert not any(
        path.stat().st_mode & 0o077 for path in (folder / "objects").rglob("*") if path.is_file()
    )
    git(root, f"--git-dir={folder}", "fsck", "--no-dangling")
    assert git_state(root) == before


@pytest.mark.parametrize("name", ["work", 'a:b "c" \\ é\udcff'], ids=["plain", "odd"])
async def test_committed_contents_are_kept_whoever_else_opens_the_store(
    tmp_path: Path, name: str
) -> None:
    root = repository(tmp_path / name, {"a.txt": "committed\n"})
    snapshots = snapshots_of(root, tmp_path)
    past = time.time() - 100
    os.utime(root / "a.txt", (past, past))
    git(root, "update-index", "-q", "--refresh")
    recorder = StepRecorder(snapshots)
    await recorder.record_before()
    # As another process, or another thread, does before it has seen the repository.
    snapshots_of(root, tmp_path).objects.create_if_missing()
    (root / "a.txt").unlink()
    changes = await recorded(recorder)
    assert changes.notes == ()
    kept = find_entry(snapshots.objects, changes.before, "a.txt")
    assert kept is not None
    assert snapshots.objects.read_blob(kept.blob) == b"committed\n"
