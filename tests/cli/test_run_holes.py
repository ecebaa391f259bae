"""Hostile shell lines on the real program, with nobody there: a rule for some commands
lets none of them through.
"""

import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Desk, call, serving, steps
from tests.support.answers import Answer

ALLOWED = {
    "*": "ask",
    "echo *": "allow",
    "git status *": "allow",
    "cd *": "allow",
    "<read-only>": "allow",
}
DENIED = {"*": "allow", "rm *": "deny", "git push *": "deny"}
NOT_ALLOWED = [
    "echo a\n\\rm -f CANARY", "echo a # b\n\\rm -f CANARY", "cat < calc.py\n\\rm -f CANARY",
    "x='a[$(rm -f CANARY)]' y=$((x)) git status", "x='a[$(rm -f CANARY)]'; echo ${PATH:x}",
    "test -v 'a[$(rm -f CANARY)]'",
    "PATH=./evil:$PATH git status", "HOME=$PWD/h git status", "GIT_TRACE2=$PWD/made git status",
    "BASH_CMDS[git]=./evil/git; git status", "evil/../evil/git status",
    "./evil/git status", "cd vendor/evil && git status",
    "git -C vendor/evil status", "echo $'a\\'; rm -f CANARY\n: \\'b'", "git -c core.fsmonitor='rm -f CANARY' status",
]  # fmt: skip
NOT_DENIED = [
    "R=rm; $R -f CANARY", "eval \"$(printf 'rm -f CANARY')\"", "{rm,-f,CANARY}", "/proc/self/root/bin/rm -f CANARY",
    "setarch x86_64 rm -f CANARY", "tar cIf 'rm -f CANARY' x calc.py",
    "compgen -C 'rm -f CANARY'", "hash -p /bin/rm ls; ls -f CANARY",
    "echo a\n\\rm -f CANARY", "x='a[$(rm -f CANARY)]'; [[ x -eq 1 ]]",
    "ls CANARY | xargs --replace rm {}", "RM=1; r''m -f CANARY",
]  # fmt: skip


def hostile(desk: Desk) -> None:
    """Fill the project with what would delete CANARY when it is run."""
    work = desk.work
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (work / "CANARY").write_text("alive\n")
    (work / "calc.py").write_text("x\n")
    (work / "evil").mkdir()
    (work / "evil" / "git").write_text(f"#!/bin/sh\nrm -f {work}/CANARY\n")
    (work / "evil" / "git").chmod(0o755)
    bare = work / "vendor" / "evil"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    setting = f"[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = rm -f {work}/CANARY;\n"
    (bare / "config").write_text(setting)


def survives(tmp_path: Path, line: str, rules: dict[str, str], *flags: str) -> None:
    """Have the model run a line, and look at the effect."""
    desk = Desk(tmp_path)
    hostile(desk)
    with serving(steps(call("bash", command=line), Answer(text="Done."))) as server:
        desk.use(server, permission={"bash": rules, "external_directory": "allow"})
        desk.run("run", "--title", "T", *flags, "work")
    assert (desk.work / "CANARY").exists()
    assert not (desk.work / "made").exists()


@pytest.mark.slow
@pytest.mark.parametrize("line", NOT_ALLOWED)
def test_what_is_not_certain_does_not_run_under_a_rule_that_allows_some_commands(
    tmp_path: Path, line: str
) -> None:
    survives(tmp_path, line, ALLOWED)


@pytest.mark.slow
@pytest.mark.parametrize("line", NOT_DENIED)
def test_what_could_be_denied_is_denied_with_auto_too(tmp_path: Path, line: str) -> None:
    survives(tmp_path, line, DENIED, "--auto")


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["git -C . push", "git --no-pager push", "git -c a.b=c push", "git --git-dir=.git push"]
)
def test_a_denied_push_is_denied_in_every_spelling(tmp_path: Path, line: str) -> None:
    desk = Desk(tmp_path)
    with serving(steps(call("bash", command=line), Answer(text="Done."))) as server:
        desk.use(server, permission={"bash": DENIED})
        desk.run("run", "--title", "T", "--auto", "work")
        assert b"Permission denied by the rule bash git push *" in server.requests[-1].body
