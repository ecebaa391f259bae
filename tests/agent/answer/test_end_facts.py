"""What a turn did to the project is told at its end, whatever the answer says."""

import subprocess
from pathlib import Path

import pytest

from codeloop.client.formatting import describe_changes, describe_side_effects
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import MessageWithParts, RunLimits
from codeloop.schema.message import AssistantMessage
from codeloop.schema.turn_facts import TurnFacts
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

DONE = ScriptedAnswer(text="The work is finished.")


def git(folder: Path, *words: str) -> str:
    settings = ("user.name=me", "user.email=me@example.com", "gc.auto=0", "maintenance.auto=false")
    options = [word for setting in settings for word in ("-c", setting)]
    done = subprocess.run(
        ["git", *options, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with two commits, a branch, a changed README and an untracked file."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for number in (1, 2):
        (folder / "README").write_text(f"{number}\n")
        (folder / "a.py").write_text(f"x = {number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", str(number))
    git(folder, "branch", "old")
    (folder / "README").write_text("2\nmine\n")
    (folder / "notes.txt").write_text("mine\n")
    return folder


async def do(
    tmp_path: Path, *commands: str, edits: bool = False
) -> tuple[TurnFacts, MessageWithParts]:
    """Run a turn of these commands, with an edit of a.py after them;
    return its facts and its answer.
    """
    calls = [make_answer(make_call("bash", command=command)) for command in commands]
    if edits:
        calls.append(make_answer(make_call("write", filePath="b.py", content="x = 3\ny = 4\n")))
    # Commands of git that lose something would ask.
    async with open_scripted_project(
        tmp_path, [*calls, *[DONE] * 6], permission={"bash": "allow"}
    ) as it:
        answer = await it.prompt(limits=RunLimits(attended=False))
        stored = [
            entry.info for entry in it.view().entries if isinstance(entry.info, AssistantMessage)
        ][-1]
    assert answer.stop is not None
    assert answer.stop.facts is not None
    assert stored.facts == answer.stop.facts
    return answer.stop.facts, answer


async def test_a_turn_that_changed_nothing_says_so(tmp_path: Path, work: Path) -> None:
    facts, _ = await do(tmp_path, f"cat {work}/a.py")
    assert describe_changes(facts) == ("no file was changed",)
    assert describe_side_effects(facts) == []


async def test_files_and_lines_are_counted_and_checks_named(tmp_path: Path, work: Path) -> None:
    (work / "test.sh").write_text("exit 0\n")
    facts, _ = await do(tmp_path, "echo 'x = 7' > a.py", "sh test.sh")
    assert describe_changes(facts) == ("1 file changed (+1 -1)", "checks passed")
    facts, _ = await do(tmp_path, "sh test.sh", edits=True)
    assert describe_changes(facts) == ("1 file changed (+2 -0)", "checks unproven")
    (work / "test.sh").write_text("echo it is broken; exit 1\n")
    facts, _ = await do(tmp_path, "sh test.sh")
    assert describe_changes(facts) == ("no file was changed", "checks failed")


async def test_uncommitted_work_that_a_command_removed_is_named(tmp_path: Path, work: Path) -> None:
    facts, _ = await do(tmp_path, "git checkout -q -- . && git clean -fdq", edits=True)
    assert facts.lost_files == ("README", "notes.txt")
    (sentence,) = describe_side_effects(facts)
    assert sentence == (
        "Uncommitted work of yours was removed by a command: README, notes.txt; `codeloop undo` brings it back."
    )


@pytest.mark.parametrize(
    "command",
    [
        "mkdir docs && mv notes.txt docs/notes.txt",
        "echo more >> notes.txt",
        "rm a.py",
        "echo 'x = 9' > a.py && git checkout -q -- a.py",
        "echo 1 > made.txt && rm made.txt",
    ],
)
async def test_what_is_committed_moved_or_the_agents_own_is_not_lost(
    tmp_path: Path, work: Path, command: str
) -> None:
    assert (work / "notes.txt").exists()
    facts, _ = await do(tmp_path, command)
    assert facts.lost_files == ()


async def test_moved_commits_stashes_and_deleted_branches_are_named(
    tmp_path: Path, work: Path
) -> None:
    before, parent = git(work, "rev-parse", "HEAD")[:9], git(work, "rev-parse", "HEAD~1")[:9]
    facts, _ = await do(
        tmp_path, "git stash -q -u; git reset -q --hard HEAD~1; git branch -q -D old"
    )
    assert facts.git == (f"HEAD moved {before} -> {parent}", "1 stash made", "branch old deleted")
    assert facts.lost_files == ("README", "notes.txt")


async def test_commits_and_another_branch_are_named(tmp_path: Path, work: Path) -> None:
    before = git(work, "rev-parse", "HEAD")[:9]
    commit = "git -c user.name=me -c user.email=me@example.com commit -q"
    facts, _ = await do(
        tmp_path, f"git checkout -q -b fix; {commit} -am one; {commit} --allow-empty -m two"
    )
    after = git(work, "rev-parse", "HEAD")[:9]
    assert facts.git == (
        f"2 commits made ({before} -> {after})",
        "the checked-out branch changed from main to fix",
    )


async def test_many_lost_files_are_named_by_their_folder(tmp_path: Path, work: Path) -> None:
    (work / "data").mkdir()
    for number in range(9):
        (work / "data" / f"{number}.txt").write_text("mine\n")
    facts, _ = await do(tmp_path, "rm -r data")
    assert (facts.lost_files, facts.lost_count) == (("data/",), 9)


async def test_an_answer_without_calls_has_no_facts(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="It is 4.")]) as it:
        answer = await it.prompt(limits=RunLimits(attended=False))
    assert answer.stop is not None
    assert answer.stop.facts is None


async def test_a_command_that_was_refused_changed_nothing_that_could_not_be_undone(
    tmp_path: Path,
) -> None:
    script = [make_answer(make_call("bash", command="touch a")), *[DONE] * 6]
    async with open_scripted_project(tmp_path, script, permission={"bash": "deny"}) as it:
        answer = await it.prompt(limits=RunLimits(attended=False))
    assert answer.stop is not None
    assert answer.stop.facts is not None
    assert describe_side_effects(answer.stop.facts) == []
