"""`codeloop undo` and `redo` as the real program: what is said is what happens."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, one_after_another, serving, steps
from tests.support.answers import Answer, Call


def names(desk: Desk) -> list[str]:
    return sorted(path.name for path in desk.work.iterdir())


def test_undo_says_what_becomes_of_each_file_and_does_just_that(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name in ("changed", "gone", "old", "mode"):
        (desk.work / name).write_text(f"{name}\n")
    work = "echo x > new; echo more >> changed; rm gone; mv old moved; chmod +x mode"
    with serving(steps(bash(work), Answer(text="Done."))) as server:
        desk.use(server)
        assert desk.run("run", "--auto", "--title", "One", "go").returncode == 0
    before = names(desk)
    dry = desk.run("undo", "--dry-run")
    assert dry.stdout.splitlines() == [
        "Would undo: “go”",
        "  would be restored  changed",
        "  would be re-created  gone",
        "  would be restored (mode)  mode",
        "  would be deleted  new",
        "  would be moved back  moved -> old",
    ]
    assert names(desk) == before
    undone = desk.run("undo")
    assert undone.stdout.replace("Undone", "Would undo") == dry.stdout.replace("would be ", "")
    assert names(desk) == ["changed", "gone", "mode", "old"]
    redone = desk.run("redo")
    assert redone.stdout.splitlines() == [
        "Redone: “go”",
        "  changed again  changed",
        "  deleted again  gone",
        "  changed again (mode)  mode",
        "  moved again  old -> moved",
        "  created again  new",
    ]
    assert names(desk) == before
    assert os.access(desk.work / "mode", os.X_OK)


def played(desk: Desk, *commands: str) -> None:
    """Run a turn for each command line, in one session."""
    for number, command in enumerate(commands, 1):
        with serving(steps(bash(command), Answer(text="Done."))) as server:
            desk.use(server)
            flags = ["--continue"] if number > 1 else ["--title", "One"]
            assert desk.run("run", "--auto", *flags, f"turn {number}").returncode == 0


@pytest.mark.slow
def test_undo_of_files_puts_only_these_back_and_the_conversation_stays(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a").write_text("0\n")
    played(desk, "echo 1 > a; echo 1 > b", "echo 2 > a; echo 2 > b; mkdir d; echo 2 > d/new")
    dry = desk.run("undo", "--dry-run", "a")
    assert dry.stdout.splitlines() == [
        "Would undo in these files: “turn 2”",
        "  would be restored  a",
    ]
    assert (desk.work / "a").read_text() == "2\n"
    done = desk.run("undo", "a", "d")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Undone in these files: “turn 2”",
        "  restored  a",
        "  deleted  d/new",
    ]
    assert ((desk.work / "a").read_text(), (desk.work / "b").read_text()) == ("1\n", "2\n")
    assert names(desk) == ["a", "b"]
    assert "> turn 2" in desk.run("session", "show").stdout
    assert "“turn 1”" in desk.run("undo", "./a").stdout
    assert (desk.work / "a").read_text() == "0\n"
    spent = desk.run("undo", "a")
    assert (spent.returncode, "nothing to undo" in spent.stdout) == (1, True)
    assert "“turn 1”" in desk.run("redo", "a").stdout
    redone = desk.run("redo", "a", "d")
    assert redone.stdout.splitlines() == [
        "Redone in these files: “turn 2”",
        "  changed again  a",
        "  created again  d/new",
    ]
    assert (desk.work / "a").read_text() == "2\n"
    assert "nothing to redo" in desk.run("redo", "a").stdout
    assert desk.run("undo", "a").returncode == 0  # and then the whole turn, and back
    assert desk.run("undo").returncode == 0
    assert ((desk.work / "a").read_text(), (desk.work / "b").read_text()) == ("1\n", "1\n")
    assert desk.run("redo").returncode == 0
    assert ((desk.work / "a").read_text(), (desk.work / "b").read_text()) == ("1\n", "2\n")


def test_undo_of_files_leaves_what_somebody_changed_and_what_is_not_the_sessions(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    (desk.work / "own").write_text("mine\n")
    played(desk, "echo 1 > a; echo 1 > b")
    (desk.work / "a").write_text("mine\n")
    done = desk.run("undo", "a", "b", "own")
    assert done.returncode == 1
    assert "deleted  b" in done.stdout
    assert "skipped  a: it was changed since" in done.stderr
    assert "skipped  own: no turn of this session changed it" in done.stderr
    assert (desk.work / "a").read_text() == "mine\n"
    assert names(desk) == ["a", "own"]
    outside = desk.run("undo", "../home")
    assert (outside.returncode, "is not in" in outside.stderr) == (1, True)


def test_a_sessions_diff_is_what_its_turns_changed_without_what_is_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a").write_text("0\n")
    played(desk, "echo 1 > a", "echo 2 > a; echo x > new; printf '\\0' > binary")
    (desk.work / "a").write_text("mine\n")
    whole = desk.run("session", "diff").stdout
    assert "-0\n+2\n" in whole
    assert "+x\n" in whole
    assert "binary" in whole
    assert "mine" not in whole
    assert "-1\n+2\n" in desk.run("session", "diff", "--at", "2").stdout
    assert desk.run("session", "diff", "--stat").stdout.splitlines() == [
        "modified  +1 -1  a",
        "added     +0 -0  binary",
        "added     +1 -0  new",
    ]
    assert desk.run("undo").returncode == 1
    assert "-0\n+1\n" in desk.run("session", "diff").stdout
    found = json.loads(desk.run("session", "diff", "--json").stdout)
    assert [each["file"] for each in found] == ["a"]
    assert desk.run("undo").returncode in {0, 1}
    assert "No file was changed" in desk.run("session", "diff").stderr


def test_undo_goes_back_to_the_prompt_over_reminders_and_summaries(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a").write_text("0\n")
    # An empty answer is followed by a reminder, which is stored as a prompt.
    first, second = bash("echo 1 > a", "c1"), bash("echo 2 > a; touch new", "c2")
    with serving(one_after_another(first, second, Answer(text=""), Answer(text="Done."))) as server:
        desk.use(server)
        assert desk.run("run", "--auto", "--title", "One", "go").returncode == 0
        assert "reminder" in desk.run("export").stdout
    with serving(steps(Answer(text="The note."))) as server:
        desk.use(server)
        assert desk.run("session", "compact").returncode == 0
    assert "-0\n+2\n" in desk.run("session", "diff", "--at", "1").stdout
    undone = desk.run("undo")
    assert undone.stdout.splitlines() == ["Undone: “go”", "  restored  a", "  deleted  new"]
    assert ((desk.work / "a").read_text(), names(desk)) == ("0\n", ["a"])
    assert "nothing to undo" in desk.run("undo").stderr
    redone = desk.run("redo")
    assert redone.stdout.splitlines() == [
        "Redone: “go”",
        "  changed again  a",
        "  created again  new",
    ]
    assert ((desk.work / "a").read_text(), names(desk)) == ("2\n", ["a", "new"])


def kill_in_step(desk: Desk, *calls: Call, sign: str) -> None:
    """Run a turn whose one step makes these calls, and kill the program once there is
    a file of the name `sign`.
    """
    with serving(steps(Answer(calls=calls))) as server:
        desk.use(server)
        program = desk.start("run", "--auto", "--title", "One", "go")
        deadline = time.monotonic() + 300
        while not (desk.work / sign).exists():
            assert program.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        program.kill()
        program.communicate()


def make_call(name: str, call_id: str, **arguments: str) -> Call:
    return Call(name, json.dumps(arguments), call_id)


FILE_CALLS = (
    make_call("write", "c1", filePath="new", content="new\n"),
    make_call("edit", "c2", filePath="a", oldString="0", newString="1"),
)
COMMAND = make_call("bash", "c3", command="echo 2 >> b; touch sign; sleep 600", description="Works")


@pytest.mark.parametrize("is_continued", [False, True])
def test_the_step_in_which_the_program_was_killed_is_undone(
    tmp_path: Path, is_continued: bool
) -> None:
    desk = Desk(tmp_path)
    for name in ("a", "b"):
        (desk.work / name).write_text("0\n")
    kill_in_step(desk, *FILE_CALLS, COMMAND, sign="sign")
    if is_continued:
        with serving(steps(Answer(text="Stopped."))) as server:
            desk.use(server)
            assert desk.run("run", "--auto", "-c", "never mind").returncode == 0
        assert "“never mind”" in desk.run("undo").stdout
    assert desk.run("session", "diff", "--stat").stdout.splitlines() == [
        "modified  +1 -1  a",
        "modified  +1 -0  b",
        "added     +1 -0  new",
        "added     +0 -0  sign",
    ]
    undone = desk.run("undo")
    assert (undone.returncode, undone.stderr) == (0, "")
    assert undone.stdout.splitlines() == [
        "Undone: “go”",
        "  restored  a",
        "  restored  b",
        "  deleted  new",
        "  deleted  sign",
    ]
    assert (names(desk), (desk.work / "a").read_text()) == (["a", "b"], "0\n")
    assert not list((desk.home / "data").rglob("open-steps/msg*"))
    assert desk.run("redo").returncode == 0
    assert names(desk) == ["a", "b", "new", "sign"]


def test_what_the_user_changed_after_the_program_was_killed_stays_and_is_named(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a").write_text("0\n")
    kill_in_step(desk, *FILE_CALLS, COMMAND, sign="sign")
    (record,) = (desk.home / "data").rglob("open-steps/msg*")
    long_ago = time.time() - 100
    os.utime(record, (long_ago, long_ago))
    (desk.work / "a").write_text("mine\n")
    undone = desk.run("undo")
    assert (undone.returncode, undone.stdout.splitlines()[0]) == (1, "Undone in part: “go”")
    assert "skipped  a: it was changed after the step that changed it was cut off" in undone.stderr
    assert (desk.work / "a").read_text() == "mine\n"


def test_without_snapshots_undo_names_what_it_leaves(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    calls = (
        make_call("write", "c1", filePath="new", content="new\n"),
        make_call("bash", "c2", command="python3 -c pass"),
    )
    with serving(steps(Answer(calls=calls), Answer(text="Done."))) as server:
        desk.use(server, snapshot=False)
        assert desk.run("run", "--auto", "--title", "One", "go").returncode == 0
    undone = desk.run("undo")
    assert (undone.returncode, undone.stdout) == (1, "Undone in part: “go”\n")
    assert undone.stderr.splitlines() == [
        "  skipped  new: `snapshot` is off in the configuration",
        "  skipped  what commands changed: `snapshot` is off in the configuration",
    ]


def test_what_a_snapshot_can_not_hold_is_named_by_undo_if_it_was_changed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name in ("large", "other"):
        with (desk.work / name).open("wb") as file:
            file.truncate(20 * 1024 * 1024)
    (desk.work / "a").write_text("0\n")
    played(desk, "echo 1 > a; echo more >> large")
    undone = desk.run("undo")
    assert (undone.returncode, undone.stdout.splitlines()) == (
        1,
        ["Undone in part: “turn 1”", "  restored  a"],
    )
    assert undone.stderr == "  skipped  large: it was not recorded: larger than 10,485,760 bytes\n"


@pytest.mark.parametrize(
    "command",
    [
        "git reset -q --hard",
        "git clean -qfdx",
        "rm -rf data",
        "> data/out.log",
        "echo x > data/out.log; rm data/out.log",
        "cp changed data/out.log",
        "mv changed data/out.log",
        "sed -i s/i/o/ data/out.log changed",
        "truncate -s0 data/*",
        "f=data/out.log; tee $f < changed",
    ],
)
def test_what_a_command_destroys_under_auto_is_put_back(tmp_path: Path, command: str) -> None:
    desk = Desk(tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(desk.work)]
    (desk.work / "data").mkdir()
    for name, text in {
        ".gitignore": "data\n",
        "changed": "old\n",
        "data/out.log": "ignored\n",
    }.items():
        (desk.work / name).write_text(text)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    (desk.work / "changed").write_text("mine\n")
    (desk.work / "untracked").write_text("mine too\n")
    played(desk, command)
    assert desk.run("undo").returncode == 0
    kept = {
        name: (desk.work / name).read_text() for name in ("changed", "untracked", "data/out.log")
    }
    assert kept == {"changed": "mine\n", "untracked": "mine too\n", "data/out.log": "ignored\n"}
