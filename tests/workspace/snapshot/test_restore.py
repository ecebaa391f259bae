"""Undo and redo of what a step recorded, on real files."""

import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.schema.bounds.sandbox import SNAPSHOT_COPY
from codeloop.workspace.snapshot.object_store import TreeEntry
from codeloop.workspace.snapshot.restore import (
    Restoration,
    RestoreResult,
    find_restorable_entry,
    restore_entries,
)
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.step_recorder import StepChanges, StepRecorder
from codeloop.workspace.snapshot.stored_trees import TreeChange, list_differences, make_file_diffs
from tests.support.examples import SHARED_FIXTURE_CHECKS, scale_examples
from tests.workspace.snapshot.trees_on_disk import (
    everything,
    git,
    git_state,
    recorded,
    repository,
    snapshots_of,
    visible,
    write,
)

FILES = {"a.txt": "a\n", "deep/er/b.txt": "b\n", "deep/c.txt": "c\n", "z": "z\n"}


class Agent:
    """Does steps as an agent's loop does, and takes them back."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.snapshots: Snapshots = snapshots_of(root, home)
        self.steps: list[StepChanges] = []

    async def shell(self, command: str, *, include_ignored: bool = False) -> StepChanges:
        recorder = StepRecorder(self.snapshots)
        await recorder.record_before(include_ignored=include_ignored)
        subprocess.run(["sh", "-c", command], cwd=self.root, check=True, stdout=subprocess.DEVNULL)
        self.steps.append(await recorded(recorder))
        return self.steps[-1]

    async def edit(self, name: str, text: str) -> StepChanges:
        recorder = StepRecorder(self.snapshots)
        await recorder.record_before([self.root / name])
        write(self.root, {name: text})
        self.steps.append(await recorded(recorder))
        return self.steps[-1]

    def changes(self) -> dict[str, list[TreeChange]]:
        found: dict[str, list[TreeChange]] = {}
        for step in self.steps:
            assert step.after is not None
            named = {os.path.relpath(path, self.root) for path in step.files}
            for each in list_differences(self.snapshots.objects, step.before, step.after):
                if each.path in named:
                    found.setdefault(each.path, []).append(each)
        return found

    def undo(self, *, dry_run: bool = False) -> RestoreResult:
        moves: list[Restoration] = []
        for path, changes in self.changes().items():
            moves += [Restoration(path, change.after, change.before) for change in changes[-1:]]
        return restore_entries(self.snapshots.objects, self.snapshots.root, moves, dry_run=dry_run)

    def redo(self) -> RestoreResult:
        moves = [
            Restoration(path, changes[0].before, changes[-1].after)
            for path, changes in self.changes().items()
        ]
        return restore_entries(self.snapshots.objects, self.snapshots.root, moves)


async def test_undo_and_redo_restore_every_kind_of_change(tmp_path: Path) -> None:
    root = repository(
        tmp_path / "work", {**FILES, "run.sh": "x\n", "big": "b" * 3_000_000, "lib/old.py": "old\n"}
    )
    (root / "link").symlink_to("a.txt")
    (root / "secret").write_text("s")
    (root / "secret").chmod(0o600)
    before, in_git = visible(root), git_state(root)
    agent = Agent(root, tmp_path)
    step = await agent.shell(
        "echo A > a.txt; chmod 755 run.sh; rm -r deep z secret; git mv -k nothing . ; mv lib/old.py lib/new.py;"
        "echo more >> big; ln -sfn z link; mkdir -p new/er && echo n > new/er/n; ln -s n new/er/l"
    )
    after = visible(root)
    assert {os.path.relpath(path, root) for path in step.files} == {
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    }
    outcome = agent.undo()
    assert outcome.conflicts == ()
    assert visible(root) == before
    assert not (root / "new").exists()
    assert agent.redo().conflicts == ()
    assert visible(root) == after
    assert git_state(root) == in_git


async def test_the_index_the_head_the_stash_and_untracked_files_stay(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    write(root, {"a.txt": "stashed\n"})
    git(root, "stash", "-q")
    write(root, {"deep/c.txt": "staged\n", "untracked": "u\n"})
    git(root, "add", "deep/c.txt")
    write(root, {"deep/c.txt": "staged, then changed\n"})
    before = everything(root)
    agent = Agent(root, tmp_path)
    await agent.shell("echo x > deep/c.txt; echo y > a.txt")
    await agent.edit("z", "zz\n")
    agent.undo()
    assert everything(root) == before


async def test_a_file_that_the_user_changed_after_is_named_and_left(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    agent = Agent(root, tmp_path)
    await agent.shell("echo A > a.txt; echo C > deep/c.txt; rm z; echo new > new; echo x > other")
    write(root, {"a.txt": "the user's\n", "z": "mine\n", "new": "mine too\n"})
    (root / "other").unlink()
    planned = agent.undo(dry_run=True)
    assert (root / "deep/c.txt").read_text() == "C\n"
    outcome = agent.undo()
    assert planned == outcome
    assert outcome.restored == ("deep/c.txt",)
    assert outcome.unchanged == ("other",)
    assert {each.path: each.reason for each in outcome.conflicts} == {
        "a.txt": "it was changed since",
        "new": "it was changed since",
        "z": "it was created since",
    }
    assert (root / "a.txt").read_text() == "the user's\n"


async def test_undo_twice_and_without_changes_does_nothing(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    agent = Agent(root, tmp_path)
    step = await agent.shell("true")
    assert (step.files, step.before) == ((), step.after)
    assert agent.undo() == RestoreResult()
    await agent.edit("a.txt", "A\n")
    assert agent.undo().restored == ("a.txt",)
    assert agent.undo() == RestoreResult(unchanged=("a.txt",))


async def test_undo_works_without_git(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root, FILES)
    before = visible(root)
    agent = Agent(root, tmp_path)
    await agent.shell("rm -r deep; echo x > a.txt; echo y > y")
    agent.undo()
    assert visible(root) == before


async def test_undo_in_a_folder_of_a_monorepo_and_in_a_submodule(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"lib.c": "int x;\n"})
    root = repository(tmp_path / "work", FILES)
    git(root, "submodule", "--quiet", "add", str(inner), "vendor")
    before, in_git = visible(root), git_state(root)
    for place in (root, root / "vendor", root / "deep"):
        agent = Agent(place, tmp_path)
        await agent.shell(
            f"echo 'int y;' > {root}/vendor/lib.c; rm -rf {root}/deep/er; echo n > {root}/deep/n"
        )
        agent.undo()
        if place == root:
            assert visible(root) == before
        write(root, {"vendor/lib.c": "int x;\n", "deep/er/b.txt": "b\n"})
        (root / "deep/n").unlink(missing_ok=True)
    assert git_state(root) == in_git


async def test_steps_of_named_files_do_not_claim_what_the_user_did_meanwhile(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", FILES)
    agent = Agent(root, tmp_path)
    await agent.shell("true")
    recorder = StepRecorder(agent.snapshots)
    await recorder.record_before([root / "a.txt"])
    write(root, {"a.txt": "agent\n", "z": "user\n"})
    step = await recorded(recorder)
    agent.steps.append(step)
    assert step.files == (f"{root}/a.txt",)
    [diff] = make_file_diffs(agent.snapshots.objects, agent.changes()["a.txt"])
    assert diff.additions == diff.deletions == 1
    agent.undo()
    assert (root / "z").read_text() == "user\n"
    assert (root / "a.txt").read_text() == "a\n"


async def test_what_the_user_did_before_a_shell_command_is_not_the_agents(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    agent = Agent(root, tmp_path)
    await agent.shell("echo 1 > a.txt")
    write(root, {"z": "user\n", "a.txt": "user\n"})
    step = await agent.shell("echo 2 > deep/c.txt")
    assert step.files == (f"{root}/deep/c.txt",)


async def test_an_ignored_file_that_a_tool_names_can_be_undone_beside_a_shell_command(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", {**FILES, ".gitignore": ".env\n"})
    write(root, {".env": "KEY=1\n"})
    agent = Agent(root, tmp_path)
    for first in (True, False):
        recorder = StepRecorder(agent.snapshots)
        if first:
            await recorder.record_before()
            write(root, {"z": "shell\n"})
        await recorder.record_before([root / ".env"])
        write(root, {".env": "KEY=2\n"})
        if not first:
            await recorder.record_before()
            write(root, {"z": "shell\n"})
        agent.steps = [await recorded(recorder)]
        assert sorted(agent.undo().restored) == [".env", "z"]
        assert (root / ".env").read_text() == "KEY=1\n"


@pytest.mark.parametrize(
    "command", ["git clean -fdxq", "git reset -q --hard", "rm -rf data a.txt", "> data/x"]
)
async def test_a_destructive_command_can_be_undone_with_ignored_files(
    tmp_path: Path, command: str
) -> None:
    root = repository(tmp_path / "work", {**FILES, ".gitignore": "data\n*.log\n"})
    write(
        root,
        {"data/x": "1", "data/deep/y": "2", "n.log": "3", "untracked": "4", "a.txt": "dirty\n"},
    )
    before = visible(root)
    agent = Agent(root, tmp_path)
    await agent.shell(command, include_ignored=True)
    assert visible(root) != before
    assert agent.undo().conflicts == ()
    assert visible(root) == before


OVERWRITE = """python3 - <<'END'
import os
open("data.db", "w").write("new")
open("x.local", "a").write("new")
os.replace("a.txt", "y.local")
os.remove("z.local")
open("big.local", "w")
open("n.log", "w")
open("made.local", "w")
END"""


async def test_small_ignored_files_that_a_script_overwrites_or_removes_can_be_undone(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", {**FILES, ".gitignore": "*.db\n*.local\n*.log\n.env\n"})
    small = {name: f"old {name}" for name in ("data.db", "x.local", "y.local", "z.local")}
    write(
        root,
        {**small, ".env": "KEY=1", "n.log": "old", "big.local": "x" * (SNAPSHOT_COPY.value + 1)},
    )
    agent = Agent(root, tmp_path)
    recorder = StepRecorder(agent.snapshots)
    assert not recorder.keeps(root / "data.db"), "nothing was read yet"
    await recorder.record_before()
    assert {
        name for name in (*small, ".env", "n.log", "big.local") if recorder.keeps(root / name)
    } == small.keys()
    await agent.shell(OVERWRITE)
    assert agent.undo().conflicts == ()
    assert {name: (root / name).read_text() for name in small} == small
    # Again, when the user has changed one since.
    write(root, {"data.db": "the user's"})
    await agent.shell("python3 -c \"open('data.db', 'w')\"")
    agent.undo()
    assert (root / "data.db").read_text() == "the user's"


async def test_ignored_trees_that_are_rebuilt_are_left_out_but_for_what_a_tool_writes(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", {**FILES, ".gitignore": "node_modules\n*.local\nbuild/\n"})
    write(root, {f"node_modules/p{number}/index.js": "1" for number in range(50)})
    write(root, {"build/x": "1", ".env.local": "KEY=1\n", "node_modules/p1/index.js": "1"})
    agent = Agent(root, tmp_path)
    recorder = StepRecorder(agent.snapshots)
    await recorder.record_before(include_ignored=True)
    await recorder.record_before([root / "node_modules", root / "node_modules/p1/index.js"])
    write(
        root,
        {"node_modules/p1/index.js": "2", ".env.local": "KEY=2\n", "node_modules/p2/index.js": "2"},
    )
    shutil.rmtree(root / "build")
    agent.steps = [await recorded(recorder)]
    assert not agent.steps[0].notes
    agent.undo()
    assert (root / ".env.local").read_text() == "KEY=1\n"
    assert (root / "node_modules/p1/index.js").read_text() == "1"
    assert (root / "node_modules/p2/index.js").read_text() == "2"
    assert not (root / "build").exists()


async def test_without_snapshots_of_the_whole_what_the_file_tools_wrote_can_be_undone(
    tmp_path: Path,
) -> None:
    root = tmp_path / "home"
    write(root, FILES)
    agent = Agent(root, tmp_path)
    agent.snapshots = Snapshots(
        root, tmp_path / "snapshot", {"HOME": str(root), "PATH": os.environ["PATH"]}
    )
    recorder = StepRecorder(agent.snapshots)
    await recorder.record_before()
    await recorder.record_before([root / "a.txt", root / "new"])
    write(root, {"a.txt": "A\n", "new": "n\n", "z": "by the shell\n"})
    step = await recorded(recorder)
    assert len(step.notes) == 1
    assert "no snapshots" in step.notes[0]
    agent.steps.append(step)
    assert agent.undo().restored == ("a.txt", "new")
    assert visible(root)["z"][1] == b"by the shell\n"


async def test_contents_that_git_converted_are_not_put_back_as_git_has_them(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"b.bat": "x\n", ".gitattributes": "* text=auto\n"})
    (root / "b.bat").write_bytes(b"x\r\ny\r\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "crlf")
    past = 1_600_000_000
    os.utime(root / "b.bat", (past, past))
    git(root, "update-index", "-q", "--refresh")
    agent = Agent(root, tmp_path)
    step = await agent.shell("echo agent > b.bat")
    assert any("can't restore them" in note for note in step.notes)
    assert [each.reason for each in agent.undo().conflicts] == [
        "its previous content is no longer kept"
    ]
    assert (root / "b.bat").read_bytes() == b"agent\n"


async def test_a_link_that_came_to_be_on_the_way_is_not_followed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    agent = Agent(root, tmp_path)
    await agent.shell("rm -r deep")
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "deep").symlink_to(outside)
    outcome = agent.undo()
    assert {each.path for each in outcome.conflicts} == {"deep/c.txt", "deep/er/b.txt"}
    assert list(outside.iterdir()) == []


async def test_a_pruned_content_is_a_named_conflict(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write(root, FILES)
    agent = Agent(root, tmp_path)
    await agent.shell("echo x > a.txt")
    changes = agent.changes()
    agent.snapshots.prune(age_ms=0)
    moves = [Restoration(path, each[-1].after, each[0].before) for path, each in changes.items()]
    outcome = restore_entries(agent.snapshots.objects, agent.snapshots.root, moves)
    assert [each.path for each in outcome.conflicts] == ["a.txt"]


async def test_a_file_that_takes_a_folders_place_and_back(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    before = visible(root)
    agent = Agent(root, tmp_path)
    await agent.shell("rm -r deep && echo file > deep; rm z && mkdir z && echo in > z/in")
    after = visible(root)
    agent.undo()
    assert visible(root) == before
    agent.redo()
    assert visible(root) == after


def item(text: str) -> TreeEntry:
    return TreeEntry(0o100644, text)


def test_changes_are_unwound_as_far_as_they_follow_on_each_other() -> None:
    a, b, c, d = (item(name) for name in "abcd")
    assert find_restorable_entry(c, [TreeChange("x", a, b), TreeChange("x", b, c)]) == a
    assert find_restorable_entry(d, [TreeChange("x", a, b), TreeChange("x", b, c)]) == d
    # Between the steps somebody made c of b.
    assert find_restorable_entry(d, [TreeChange("x", a, b), TreeChange("x", c, d)]) == c
    assert find_restorable_entry(None, [TreeChange("x", None, a), TreeChange("x", a, None)]) is None
    assert find_restorable_entry(a, [TreeChange("x", a, b), TreeChange("x", b, a)]) == a


NAMES = ("a", "b", "d/a", "d/e/a")


async def _play(root: Path, home: Path, seed: int, actors: Sequence[str]) -> None:
    choose = random.Random(seed)
    agent = Agent(root, home)
    nothing = (0, b"")
    theirs = {name: {visible(root).get(name, nothing)} for name in NAMES}
    for number, actor in enumerate(actors):
        name = choose.choice(NAMES)
        recorder = StepRecorder(agent.snapshots)
        named = choose.random() < 0.5
        if actor == "agent":
            await recorder.record_before([root / name] if named else None)
        path = root / name
        if path.exists() and choose.random() < 0.3:
            path.unlink()
        elif path.exists() and choose.random() < 0.2:
            path.chmod(0o644 if path.stat().st_mode & stat.S_IXUSR else 0o755)
        else:
            write(root, {name: f"{actor} {number if choose.random() < 0.7 else 0}\n"})
        if actor == "agent":
            agent.steps.append(await recorded(recorder))
        else:
            theirs[name].add(visible(root).get(name, nothing))
    state = visible(root)
    moves: list[Restoration] = []
    for path, changes in agent.changes().items():
        now = agent.snapshots.store_entry(path)
        moves.append(Restoration(path, now, find_restorable_entry(now, changes)))
    outcome = restore_entries(agent.snapshots.objects, agent.snapshots.root, moves)
    assert outcome.conflicts == ()
    for name in NAMES:
        now = visible(root).get(name, nothing)
        assert now in theirs[name], f"{name} holds {now}, which no user wrote"
    back = restore_entries(
        agent.snapshots.objects,
        agent.snapshots.root,
        [Restoration(m.path, m.desired, m.expected) for m in moves],
    )
    assert back.conflicts == ()
    assert visible(root) == state


@pytest.mark.slow
@settings(max_examples=scale_examples(12), suppress_health_check=SHARED_FIXTURE_CHECKS)
@given(
    seed=st.integers(0, 2**32),
    actors=st.lists(st.sampled_from(["agent", "user"]), min_size=1, max_size=8),
)
async def test_undo_leaves_every_byte_the_agent_did_not_write(seed: int, actors: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = repository(Path(name) / "work", {"a": "0\n", "d/a": "1\n"})
        await _play(root, Path(name), seed, actors)
        shutil.rmtree(root)


KILLED = """
import sys
from pathlib import Path
from codeloop.workspace.snapshot.object_store import ObjectStore, TreeEntry
from codeloop.workspace.snapshot.restore import Restoration, restore_entries
root, store, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
objects = ObjectStore(store)
objects.create_if_missing()
old, new = (objects.put_blob(text * 20_000) for text in (b"old", b"new"))
names = [f"d{n % 7}/{n}" for n in range(count)]
print("ready", flush=True)
while True:
    for now, then in ((new, old), (old, new)):
        rows = [Restoration(name, TreeEntry(0o100644, now), TreeEntry(0o100644, then)) for name in names]
        restore_entries(objects, root, rows)
"""


@pytest.mark.parametrize("wait", [0.01, 0.05, 0.15])
def test_killed_in_the_middle_each_file_is_old_or_new(tmp_path: Path, wait: float) -> None:
    root = tmp_path / "work"
    write(root, {f"d{n % 7}/{n}": "new" * 20_000 for n in range(20)})
    line = [sys.executable, "-c", KILLED, str(root), str(tmp_path / "store"), "20"]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(wait)
        process.kill()
    for n in range(20):
        assert (root / f"d{n % 7}/{n}").read_text() in {"old" * 20_000, "new" * 20_000}
