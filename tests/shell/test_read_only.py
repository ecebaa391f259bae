"""Which lines are sure to change nothing; the options that they are judged by are those
of the installed programs.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codeloop.kit.programs import find_program
from codeloop.shell.program_table import list_families
from codeloop.shell.proof import MachineFacts, ProgramFacts, prove

READ_ONLY_ROWS = {
    name: row
    for rows in list_families()
    for name, row in rows.items()
    if row.reads is not None and row.check_harmless is None and not row.is_followed
}
READ_ONLY_GIT_ROWS = {
    name: row
    for rows in list_families()
    if "git" in rows
    for name, row in rows["git"].subcommands.items()
    if row.reads is not None
}


@pytest.mark.parametrize(
    "line",
    [
        "ls -la src", "cat a b | head -n 5", "head -20 f", "tail -n +5 f",
        "wc -l f", "stat f", "file f", "grep -rn x src",
        "grep -e a --include=*.py -r .", "rg -n --glob '*.py' x",
        "fd -e py", "find . -name '*.py' -type f -mtime -1 -print",
        "find . \\( -name a -o -name b \\) ! -path './x/*'", "find src -name '*.py' -exec wc -l {} +", "diff -u a b",
        "sort -u -k2,2 f | uniq -c", "cut -d: -f1 f", "tr a-z A-Z",
        "jq -r .a f", "jq --arg a b '.[$a]' f", "sed -n '5,10p' f",
        "sed -n '/a/,/b/p;$p' f", "sed 's/[]_[:space:]]*$//' f", "sed 's/a/b/g' f", "sed -n -e 1p -e '$p' f",
        "git status --short", "git log --oneline -5",
        "git log -p -S x --since=2.weeks -- src/a.py", "git diff --stat HEAD~1 HEAD",
        "git show HEAD:a", "git blame -L 1,5 f",
        "git branch", "git branch -vv --sort=-committerdate", "git branch --list 'a*'", "git branch --contains HEAD",
        "git rev-parse --abbrev-ref HEAD", "git ls-files -o --exclude-standard",
        "git grep -n x", "git describe --tags",
        "git remote -v", "git remote get-url origin", "git stash list",
        "git stash show -p", "git tag -l 'v*'", "git tag",
        "git config --get user.name", "git config user.name", "git config --list",
        "git -C src --no-pager log", "git version",
        "git worktree list", "git reflog -5", "python --version", "node -v",
        "pip list", "pip show x",
        "uname -a", "date", "date +%s", "date -u -d yesterday", "ps aux",
        "ps -aux", "ps -o pid,args -p 1", "jq '.env, .a.env' f", "uniq -- \"$f\"", "xxd -c 8 f", "tree -a -L 2",
        "ps -ef", "df -h", "du -sh .", "which git", "type ls",
        "tree -L 2", "nl f", "column -t f", "sha256sum f",
        "md5sum -c f", "echo \"$x\"", "printf '%s' \"$x\"", "[ -f a ] && pwd",
        "cd src && ls", "timeout 5 ls", "env CI=1 ls", "ls | xargs wc -l",
        "sh -c 'ls; pwd'", "cat -- \"$f\"", "ls > /dev/null 2>&1",
        "grep x < f 2>/dev/null", "command -v git", "xargs grep x < f", "nice -n 5 ls", "sleep 1", "ls src/*.py",
    ],
)  # fmt: skip
def test_lines_that_only_look(line: str) -> None:
    proof = prove(line, MachineFacts())
    assert (proof.unproven, proof.change_reason) == ("", "")


@pytest.mark.parametrize(
    "line",
    [
        "git log --output=f", "git log --output f", "git log --outp f",
        "git diff --ext-diff", "git show --textconv", "git -p log",
        "git -c core.pager=x log", "git grep -Ox y", "git grep --open-files-in-pager=x y",
        "git grep --textconv x", "git diff -Of",
        "git log --show-signature", "git log --format=%G?", "git for-each-ref --format='%(signature)'",
        "git push", "git fetch",
        "git branch new", "git branch -d x", "git branch -m x",
        "git branch --merged -d x", "git branch -l new", "git tag v1",
        "git tag -d x", "git stash", "git stash pop",
        "git remote add a b", "git remote show x", "git reflog expire --all",
        "git config a.b c", "git config --unset a.b", "git config edit",
        "git config -e", "git worktree add x", "git worktree",
        "git symbolic-ref HEAD refs/heads/x", "git checkout x",
        "git submodule status", "git cat-file --filters HEAD:a",
        "git ls-remote ext::x", "git archive --output=f HEAD", "git help log",
        "git blame --contents f g", "git config --file=x a.b c",
        "rg --pre x y", "rg -z x", "rg --search-zip x", "rg --hostname-bin=x y",
        "sort -o f a", "sort --output=f a", "sort -uof a",
        "sort --compress-program=x f", "sort --out=f a", "sort -T d f",
        "sed -i s/a/b/ f", "sed 'e ls' f", "sed 'w f' a",
        "sed 's/a/b/e' f", "sed 's/a/b/w f' a", "sed -n '1!G;h;$p' f",
        "sed -f x f", "sed -n 'r f' a", "sed 's/[/]w f/x/' a",
        "sed -n \"1p\nw f\" a", "sed 5q -i f", "sed --in-place 1d f",
        "find . -delete", "find . -fprint f", "find . -fprintf f x",
        "find . -fls f", "find . -exec rm {} +", "find . -exec sort {} \\;",
        "find . -name x -delete", "uniq a b", "xxd a b",
        "xxd -r a", "tree -o f", "file -C -m x", "file -z f",
        "date -s x", "date 01010000", "hostname x", "base64 -o f",
        "tar xf a", "awk 1 f", "perl -v", "python -c x", "python x.py",
        "python -m pip list", "node x.js", "npm test", "npm install",
        "pip install x", "make -n", "cargo tree", "go list ./...", "env", "printenv",
        "tee f", "cp a b", "touch f", "rm f", "mkdir d",
        "kill 1", "umask 022", "sudo ls", "nohup ls", "bash x.sh", "./x",
        "bin/ls", "ls > f", "ls 2> f", "ls >> f", "ls &> f",
        "ls | xargs sort", "ls | xargs rm", "xargs -a f touch", "diff -l a b",
        "diff --output=f a b", "fd -x rm", "fd -l", "fd -X vi",
        "xxd -ps a f", "xxd -es a f", "xxd -c8 a", "tree -Po x f", "tree -Lo 2 f", "tree -L2o f", "uniq x*", "xxd x*",
        "git config user.n*", "git symbolic-ref H*", "git branch --li*", "date 0*", "ps e*", "sleep 1*",
        "git stash -m list", "git stash -- list", "git stash -p list", "git stash -S list show", "git remote -v show",
        "git log --format=%+GK", "git log --format='%-G?'", "git log --format='% GS'",
        "jq -n env", "jq -n '$ENV.A'", "jq -n 'import \"s\" as $d; $d'", "jq -n 'include \"s\"; 1'", "jq -n e*",
        "jq --arg a b env", "jq -n --arg a b 'input|env'", "jq '\"\\(env)\"' f",
        "ps -auxe", "ps -o environ", "ps -o pid,environ=x", "npm ls", "npm list", "npm -v", "npm --version",
        "echo 'open(\"P\", \"w\")' | python3", "node < f", "ruby < f",
        "git diff --anchored -- --output=P /etc/passwd", "git shortlog --encoding -- --output=P HEAD",
        "git diff --src-prefix -- --output=P /etc/passwd", "git log --glob -- --output=P",
        "sed 's/[[:punct:]/]/;/w P/p' f", "sed -n '/[\\]/]/;/w P/p' f",
        "ps e", "less f", "man ls", "curl x", "cal x --y", "grep --weird x",
    ],
)  # fmt: skip
def test_lines_that_may_write_or_execute_do_not(line: str) -> None:
    proof = prove(line, MachineFacts())
    assert proof.unproven or proof.change_reason


def test_a_program_that_a_version_manager_chooses_by_the_projects_files_is_not_read_only() -> None:
    facts = MachineFacts(
        find_program=lambda name: ProgramFacts(path=f"/home/me/.asdf/shims/{name}")
    )
    assert prove("python --version", facts).change_reason
    assert prove("jq . f", facts).change_reason
    assert (
        prove(
            "ls", MachineFacts(find_program=lambda name: ProgramFacts(path=f"/usr/bin/{name}"))
        ).change_reason
        == ""
    )


@pytest.mark.parametrize("name", sorted(READ_ONLY_ROWS))
def test_options_are_those_of_the_installed_program(name: str) -> None:
    program = find_program(name, os.environ.get("PATH"))
    told = _help(program) if program else ""
    if "GNU" not in told:
        pytest.skip(f"there is no GNU {name} here, whose help names every option")
    listed = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", told))
    taking = set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)(?:=| [A-Z])", told))
    pairs = dict(re.findall(r"^\s+(-\w), (--[a-z-]+)", told, re.MULTILINE))
    known = READ_ONLY_ROWS[name].known_options
    with_value = {option for option in known if known[option].takes_next_word}
    assert {option for option in known if option.startswith("--")} <= listed
    assert {option for option in with_value if option.startswith("--")} <= taking
    assert {
        short for short, long in pairs.items() if short in with_value and long not in taking
    } == set()


def _help(program: str) -> str:
    # Newer ones put links and bold type into their help, but not for a terminal that knows neither.
    options: dict[str, Any] = {"env": {**os.environ, "TERM": "dumb"}, "stdin": subprocess.DEVNULL}
    run = subprocess.run(
        [program, "--help"], capture_output=True, text=True, check=False, **options
    )
    return run.stdout + run.stderr


@pytest.mark.skipif(
    find_program("git", os.environ.get("PATH")) is None, reason="git is not installed"
)
@pytest.mark.parametrize("name", sorted(READ_ONLY_GIT_ROWS))
def test_no_allowed_option_of_git_makes_a_file(tmp_path: Path, name: str) -> None:
    """Run each subcommand with each option that takes nothing, in a repository,
    and compare all of its files.
    """
    # Newer versions of git go on with upkeep after a commit.
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "maintenance.auto=false"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_OPTIONAL_LOCKS": "0",
        "PAGER": "cat",
    }
    null = subprocess.DEVNULL

    def run(*words: str) -> None:
        subprocess.run(
            [*git, *words],
            cwd=tmp_path / "w",
            env=environment,
            stdin=null,
            stdout=null,
            stderr=null,
            check=False,
        )

    (tmp_path / "w").mkdir()
    run("init", "-q")
    (tmp_path / "w" / "a").write_text("a\n")
    run("add", "a")
    run("commit", "-qm", "x")
    (tmp_path / "w" / "a").write_text("b\n")

    def state() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in sorted((tmp_path / "w").rglob("*"))
            if path.is_file()
        }

    before = state()
    known = READ_ONLY_GIT_ROWS[name].known_options
    flags = sorted(option for option in known if not known[option].takes_next_word)
    for option in flags[:: max(1, len(flags) // 12)]:
        run(*name.split(), option)
    assert state() == before
