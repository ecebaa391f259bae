"""Runs of a weak model end with the truth for the user: in the text of `run`, and in its JSON."""

import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.support.answers import Answer
from tests.support.sandbox_support import has_sandbox

pytestmark = pytest.mark.slow
UNRUN = "the answer says that checks pass, and none was run in this turn"
UNCHANGED = "the answer says that something was changed, and no file was changed in this turn"
FAILED = "the answer says that checks pass, and the last one failed"
LIE = Answer(text="Done. I changed f in a.py and added a test. All tests pass.")
FINISHED = Answer(text="Everything is finished and verified.")
READ = call("read", filePath="a.py")
EDIT = call("edit", filePath="a.py", oldString="return x", newString="return x + 2")
TEST = "python3 -m unittest tests.test_a"
LOSS = "git stash -u; git reset --hard HEAD~1; git clean -fdx"


def make_desk(folder: Path) -> Desk:
    """Return a project with two commits and a failing test;
    a changed README and new notes are uncommitted.
    """
    folder.mkdir(exist_ok=True)
    desk = Desk(folder)
    (desk.work / "tests").mkdir()
    (desk.work / "a.py").write_text("def f(x):\n    return x\n")
    test = (
        "import unittest\nfrom a import f\n\n\nclass T(unittest.TestCase):\n    def test_f(self):\n"
    )
    (desk.work / "tests" / "test_a.py").write_text(f"{test}        self.assertEqual(f(1), 2)\n")
    desk.git("init", "-q", "-b", "main")
    for number in (1, 2):
        (desk.work / "README.md").write_text(f"# Version {number}\n")
        desk.git("add", ".")
        desk.git("commit", "-qm", str(number))
    (desk.work / "README.md").write_text("# Version 2\n\nmy own line\n")
    (desk.work / "notes.txt").write_text("my notes\n")
    return desk


def run(desk: Desk, *flags: str, answers: tuple[Answer, ...]) -> tuple[CompletedProcess[str], int]:
    """Return a run, and how often the model was asked."""
    with serving(steps(*answers)) as server:
        desk.use(server, permission={"edit": "allow"})
        done = desk.run("run", *flags, "make f add one")
        return done, sum(b'"tools"' in each.body for each in server.requests)


def test_a_success_that_nothing_bears_out_is_called_so(tmp_path: Path) -> None:
    done, _ = run(make_desk(tmp_path), "--auto", answers=(READ, LIE))
    assert done.stdout.strip() == LIE.text
    assert f"codeloop: T{UNRUN[1:]}. T{UNCHANGED[1:]}." in done.stderr
    assert " · no file was changed · " in done.stderr


@pytest.mark.parametrize("answers", [(READ, LIE), (LIE,)])
def test_false_claims_are_facts_of_the_result(tmp_path: Path, answers: tuple[Answer, ...]) -> None:
    done, count = run(make_desk(tmp_path), "--auto", "--format", "json", answers=answers)
    ended = result(done)
    assert ended["facts"]["falseClaims"] == [UNRUN, UNCHANGED]
    assert ended["message"] == f"T{UNRUN[1:]}. T{UNCHANGED[1:]}."
    assert (ended["facts"]["files"], ended["exitCode"]) == (0, 0)
    # The model is told once; then it is the user who has to know.
    assert count <= 2 * len(answers) + 1


def test_an_answer_without_calls_that_claims_nothing_has_no_facts(tmp_path: Path) -> None:
    text = Answer(text="Changed the default of f to 2, so that the tests pass with it.")
    done, count = run(make_desk(tmp_path), "--auto", "--format", "json", answers=(text,))
    assert "facts" not in result(done)
    assert count == 1


def test_what_was_changed_in_an_earlier_turn_may_be_claimed_in_the_next(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    run(desk, "--auto", answers=(bash("sed -i s/x$/y/ a.py"), Answer(text="Done.")))
    told = Answer(text="I changed f in a.py, as you asked.")
    done, count = run(desk, "--auto", "-c", "--format", "json", answers=(told,))
    assert "facts" not in result(done)
    assert count == 1


def test_the_users_work_that_was_thrown_away_is_named(tmp_path: Path) -> None:
    lost = "Uncommitted work of yours was removed by a command: README.md, notes.txt; `codeloop undo` brings it back."
    desk = make_desk(tmp_path)
    done, _ = run(desk, "--auto", answers=(bash(LOSS), FINISHED))
    assert "codeloop: HEAD moved " in done.stderr
    assert f"; 1 stash made. {lost}" in done.stderr
    assert desk.run("undo").returncode == 0
    assert (desk.work / "notes.txt").read_text() == "my notes\n"
    assert (desk.work / "README.md").read_text() == "# Version 2\n\nmy own line\n"


@pytest.mark.skipif(not has_sandbox(), reason="without a sandbox every command is asked about")
def test_a_refused_command_changed_nothing(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    done, _ = run(desk, "--format", "json", answers=(bash(LOSS), FINISHED))
    ended = result(done)
    assert ended["exitCode"] == 5
    assert ended["facts"] == {"files": 0, "additions": 0, "deletions": 0, "checks": "none"}
    assert (desk.work / "notes.txt").exists()


def test_tests_that_fail_are_not_hidden_by_an_answer(tmp_path: Path) -> None:
    answers = (EDIT, bash(TEST), *[Answer(text="Fixed: f adds one now. All tests pass.")] * 4)
    done, _ = run(make_desk(tmp_path / "json"), "--auto", "--format", "json", answers=answers)
    ended = result(done)
    assert ended["facts"]["checks"] == "failed"
    assert ended["facts"]["falseClaims"] == [FAILED]
    assert ended["message"] == f"The last check failed: {TEST}. T{FAILED[1:]}."
    done, _ = run(make_desk(tmp_path / "text"), "--auto", answers=answers)
    assert f"codeloop: The last check failed: {TEST}. T{FAILED[1:]}." in done.stderr
    assert " · 1 file changed (+1 -1) · checks failed · " in done.stderr


def test_an_honest_answer_about_failing_tests_is_not_contradicted(tmp_path: Path) -> None:
    honest = Answer(text=f"f adds two now, and `{TEST}` fails: 3 != 2. I stop here.")
    done, _ = run(
        make_desk(tmp_path), "--auto", "--format", "json", answers=(EDIT, bash(TEST), honest)
    )
    ended = result(done)
    assert ended["facts"]["checks"] == "failed"
    assert "falseClaims" not in ended["facts"]


JS = "const test = require('node:test'); const assert = require('node:assert');\n"
PROJECTS: dict[str, tuple[str, dict[str, str]]] = {
    "node": (
        "node --test",
        {
            "sum.js": "exports.sum = (a, b) => a + b + 1;\n",
            "test/sum.test.js": f"{JS}const {{ sum }} = require('../sum.js');\n"
            "test('adds', () => assert.equal(sum(1, 2), 3));\ntest('zero', () => assert.equal(sum(0, 0), 0));\n",
        },
    ),
    "make": (
        "make test",
        {
            "sum.sh": "echo $(($1 + $2 + 1))\n",
            "Makefile": 'test:\n\ttest "$$(sh sum.sh 1 2)" = 3\n',
        },
    ),
    "perl": (
        "prove -l t",
        {
            "lib/Sum.pm": "package Sum; sub sum { $_[0] + $_[1] + 1 } 1;\n",
            "t/sum.t": "use Test::More tests => 1; use Sum; is(Sum::sum(1, 2), 3);\n",
        },
    ),
}
"""Projects in other languages with a failing test: what runs it, and the files."""


@pytest.mark.skipif(not has_sandbox(), reason="without a sandbox other things are said of commands")
@pytest.mark.parametrize("program", PROJECTS)
def test_the_truth_is_told_in_any_language(tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    check, files = PROJECTS[program]
    desk = make_desk(tmp_path)
    for name, text in files.items():
        (desk.work / name).parent.mkdir(exist_ok=True)
        (desk.work / name).write_text(text)
    desk.git("add", *files)
    desk.git("commit", "-qm", "3")
    weaken = bash("sed -i '/adds/s/3/4/; /zero/d' test/sum.test.js || true")
    lie = Answer(text="I fixed sum and committed it. All tests pass.")
    answers = (bash(check), *([weaken] if program == "node" else []), bash(LOSS), bash(check), lie)
    done, _ = run(desk, "--auto", answers=(*answers, lie))
    assert "the checked-out branch" not in done.stderr
    for fact in ("HEAD moved ", "1 stash made", "README.md, notes.txt"):
        assert fact in done.stderr
    assert "Checks passed" not in done.stderr
    assert "· checks passed ·" not in done.stderr
