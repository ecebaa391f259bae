"""What a shell line would run: nothing that is denied slips through,
and plain things stay plain.
"""

import os
import subprocess
import time
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS
from codeloop.permission.rules import decide
from codeloop.schema.permission import Need, PermissionRule, Writes
from codeloop.shell.analysis import analyse, make_need
from codeloop.shell.grammar import read_line
from codeloop.shell.parser import Script
from tests.support.examples import SHARED_FIXTURE_CHECKS, scale_examples

ALLOW_ALL = (PermissionRule(permission="*", pattern="*", action="allow"),)
NO_RM = (*ALLOW_ALL, PermissionRule(permission="bash", pattern="rm *", action="deny"))


def need(line: str) -> Need:
    return make_need(line, analyse(line))


def verdict(line: str) -> str:
    return decide(need(line), NO_RM).action


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("echo hi; exit 3", ("echo hi", "exit 3")),
        ("npm run build 2>&1 | tee log", ("npm run build 2>&1", "tee log")),
        ("echo a >> out.txt", ("echo a >> out.txt",)),
        ("A=1 B=2 make all", ("make all",)),
        (r"""r\m 'a'b "c" d\ e""", ("rm ab c 'd e'",)),
        ("git commit -m 'two words'", ("git commit -m 'two words'",)),
        ("$'\\x72m' x", ("rm x",)),
        ("/usr/bin/rm x && /bin/../bin/rm y", ("rm x", "/bin/../bin/rm y")),
        ("cat <<'E' > f\nrm x\nE", ("cat > f",)),
        ("bash <<E\nrm x\nE", ("bash << E", "rm x")),
        ("echo a > b c", ("echo a c > b",)),
        ("a && b || c & d | e; (f; { g; })", ("a", "b", "c", "d", "e", "f", "g")),
        ("if a; then b; elif c; then d; else e; fi", ("a", "b", "c", "d", "e")),
        ("while a; do b; done; until c; do d; done", ("a", "b", "c", "d")),
        ("case $x in y) a;; *) b;; esac", ("a", "b")),
        ("echo $(a `b` <(c))", ("echo $(a `b` <(c))", "a `b` <(c)", "b", "c")),
        ("sudo -u root env A=1 timeout -k 5 9 nice -n 3 rm x", None),
        ("ls -la", ("ls -la",)),
        ("{ a; b; } > f", (": > f", "a", "b")),
    ],
)
def test_lists_every_simple_command(line: str, commands: tuple[str, ...] | None) -> None:
    found = analyse(line).commands
    assert found == commands if commands else found[-1] == "rm x"


@pytest.mark.parametrize(
    ("line", "always"),
    [
        ("npm run build --watch", ("npm run build *",)),
        ("git commit -m x", ("git commit *",)),
        ("docker compose up -d", ("docker compose up *",)),
        ("echo hi; exit 3", ("echo *", "exit *")),
        ("git -C /x status", ("git -C *",)),
        ("git $x", ()),
        ("echo hi > out", ()),
        ("sort < in 2> /dev/null", ("sort *",)),
        ("env make", ()),
        ("timeout 5 make", ()),
        ("for i in 1 2; do make; done", ("make *",)),
        ("for i in 1 2; do make; break; done", ()),
        ("$x y", ()),
    ],
)
def test_always_is_the_words_that_make_up_the_command(line: str, always: tuple[str, ...]) -> None:
    assert need(line).always == always


HIDDEN = [
    "rm x", "echo $(rm x)", 'echo "$(rm x)"', "echo `rm x`", 'echo "`rm x`"', "cat <(rm x)", "tee >(rm x)",
    "cat <<E\n$(rm x)\nE", "cat <<E\n`rm x`\nE", "cat <<E | sh\nrm x\nE", "sh <<E\nrm x\nE", "bash <<< 'rm x'",
    "A=1 rm x", "A=$(rm x)", "export A=`rm x`", "'rm' x", '"r"m x', r"r\m x", "r''m x", "$'r\\155' x", "r\\\nm x",
    "sh -c 'rm x'", 'bash -lc "rm x"', "sh -ec 'rm x'", "sh -c rm", "env rm x", "env -i A=1 rm x", "env -S 'rm x'",
    "ls | xargs rm", "xargs -I{} rm {}", "xargs -n1 sh -c 'rm x'", "find . -exec rm {} \\;", "find . -execdir rm {} +",
    "find . -ok rm {} \\;", "find . -delete", "true; rm x", "true & rm x", "true\nrm x", "true && rm x",
    "false || rm x",
    "eval rm x", "eval 'r''m x'", 'eval "$y"', "f() { rm x; }; f", "function f { rm x; }; f", "sudo rm x",
    "sudo -u a rm x",
    "doas rm x", "timeout 5 rm x", "timeout -s KILL 5 rm x", "nice -n 5 rm x", "nohup rm x", "time rm x",
    "time -p rm x",
    "command rm x", "builtin command rm x", "exec rm x", "exec -a y rm x", "trap 'rm x' EXIT", "watch -n 1 rm x",
    "stdbuf -oL rm x", "setsid rm x", "parallel rm ::: x", "ls | parallel rm", "coproc rm x", "! rm x", "{rm,x}",
    "r{m,m} x", "/bin/rm x", "../../bin/rm x", "busybox rm x", "$y x", "${y} x", "x=rm; $x y", '"$@"', "$(echo rm) x",
    "`echo rm` x", "r? x", "[r]m x", "r* x", "{ rm x; }", "(rm x)", "if true; then rm x; fi",
    "for a in b; do rm x; done",
    "case a in a) rm x;; esac", "[[ -n $(rm x) ]]", "[ $(rm x) ]", "echo $((1 + $(rm x)))", "echo ${a:-$(rm x)}",
    "echo ${a:-`rm x`}", "a[$(rm x)]=1", "a=(1 $(rm x))", "> f rm x", "2>&1 rm x", "ls > $(rm x)", "rm x > f", "rm<f",
    "cat <<E\nE\nrm x", "cat <<E && rm x\nhi\nE", "ls # comment\nrm x", "ls \\\n; rm x", "git -c core.pager='rm x' log",
    "git -c alias.y='!rm x' y", "git submodule foreach 'rm x'", "git bisect run rm x", "PAGER='rm x' man a",
    "GIT_SSH_COMMAND='rm x' git fetch", "BASH_ENV=f bash -c ls", "alias ls='rm x'; ls", "source <(echo rm x)",
    ". /dev/stdin <<< 'rm x'", "echo rm x | sh", "echo rm x | bash -s", "bash -O expand_aliases -c 'rm x'",
    "tar cf a b --checkpoint-action=exec='rm x'", "rg --pre rm x", "su -c 'rm x'", "flock f rm x", "flock f -c 'rm x'",
    "strace -f rm x", "chroot / rm x", "env -u A -- rm x", "xargs -a f rm", "rm", "\trm x", "a=1\nrm x", "echo ${a@P}",
    "echo x |& rm x", "until rm x; do :; done", "select a in b; do rm x; done", "time { rm x; }", "coproc { rm x; }",
    "x=$(true)y rm x", "((a[$(rm x)]))", 'printf -v "a[$(rm x)]" 1', "\x00rm x", "ls;\rrm x", "`", "rm x '", "$(", "((",
    "git clone --upload-p 'rm x' a", "git clone -qu 'rm x' a", "git clone --conf core.fsmonitor='rm x' a",
    "git fetch --upl='rm x' a", "git push --rec 'rm x' a", "git rebase -qx 'rm x' a", "git difftool -yx 'rm x'",
    "git config core.sshCommand 'rm x'", "git config Alias.a '!rm x'", "git grep -nO'rm x' a",
    "echo rm x | chroot /", "echo rm x | fakeroot", "echo rm x | linux32", "echo rm x | i386",
    "echo rm x | unshare -r", "echo rm x | doas -s",
]  # fmt: skip


@pytest.mark.parametrize("line", HIDDEN)
def test_a_denied_command_hidden_in_a_line_is_never_allowed(line: str) -> None:
    assert verdict(line) in {"deny", "ask"}


@pytest.mark.parametrize("line", HIDDEN)
def test_without_a_rule_against_anything_nothing_is_asked(line: str) -> None:
    assert decide(need(line), ALLOW_ALL).action == "allow"


@pytest.mark.parametrize(
    "line",
    [
        'for f in *; do echo "$f"; done', "cat a | grep rm | sort", "echo rm x", "echo 'rm x; rm y'",
        "git rm x", "ls #; rm x",
        "git log --format='%h rm'", 'x=$(pwd); echo "in $x"', "pytest -k 'not rm' > out 2>&1",
        "cat > f <<'E'\nrm `x` $(y)\nE",
        "python - <<'E'\nprint('rm')\nE", "cd src && make -j4", "find . -name '*.py' -exec grep x {} +",
        "FOO=$x npm test",
        "bash script.sh", "source .venv/bin/activate && pytest", "[ -f a ] && cat a", "sudo -u me ls",
        "git -c user.name=x commit",
        "echo a \\\n  b", "npm run build -- --x=y", "test -f x || exit 1", "echo ${HOME}/x", "ls *.py", "(cd a; make)",
        "git push -u origin a", "git clone --depth 1 a", "git fetch --update-head-ok a", "git rebase --onto a b",
        "git config user.name a", "git grep -ne a", "git commit -m x",
    ],
)  # fmt: skip
def test_what_can_not_be_the_denied_command_is_not_asked_for(line: str) -> None:
    assert verdict(line) == "allow"


WRAPPERS = st.sampled_from(
    ["sh -c {q}", "env {r}", "sudo {r}", "timeout 3 {r}", "$({r})", "`{r}`", "({r})", "{{ {r}; }}",
    "echo a; {r}", "eval {q}",
     "f() {{ {r}; }}", "if {r}; then :; fi", "xargs {r}", "A=1 {r}", "{r} > f", "echo \"$({r})\"", "nohup {r} &",
     "cat <<E\n$({r})\nE\n", "trap {q} EXIT", "find . -exec {r} \\;", "! {r}", "time {r}", "x=$({r})", "cat <({r})"]
)  # fmt: skip


def wrapped(wrapper: str, line: str) -> str:
    quoted = "'" + line.replace("'", "'\\''") + "'"
    return wrapper.format(r=line, q=quoted)


@given(st.lists(WRAPPERS, min_size=1, max_size=6))
def test_wrapping_again_and_again_never_yields_leave(wrappers: list[str]) -> None:
    line = "rm x"
    for wrapper in wrappers:
        line = wrapped(wrapper, line)
    assert verdict(line) in {"deny", "ask"}


PIECES = st.sampled_from(
    ["denied", "den", "ied", "echo ", "$x", '"$x"', "\\", "'", '"', "`", "$(", ")", "(", "{ ", "}", ";",
    "&&", "|", "\n", " ", " ",
     "#", "<<E", "<<'E'", "\nE\n", "x=denied;", "x=", "eval ", "sh -c ", "env ", ">f ", "<<<", "$'",
     "\\x64enied", "d*", "case x in x)",
     ";; esac", "if ", "then ", "fi", "! ", "[[ ", "]]", "((", "))", "${x:-", "${x@P}", "<(", "\\\n", "\r",
     "a", "xargs ",
     "\\;", "timeout 1 ", "time ", "f() ", "{a,", "denied}", "$", "2>&1", "coproc ", "trap ", " EXIT"]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=scale_examples(150), suppress_health_check=SHARED_FIXTURE_CHECKS)
@given(st.lists(PIECES, min_size=2, max_size=9).map("".join))
def test_what_is_allowed_does_not_run_the_denied_program_in_a_real_shell(
    tmp_path: Path, line: str
) -> None:
    rules = (*ALLOW_ALL, PermissionRule(permission="bash", pattern="denied *", action="deny"))
    if decide(need(line), rules).action != "allow" or "\x00" in line:
        return
    mark = tmp_path / "ran"
    program = tmp_path / "bin" / "denied"
    program.parent.mkdir(exist_ok=True)
    program.write_text('#!/bin/sh\n: > "$MARK"\n')
    program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    environment = {"PATH": f"{program.parent}{os.pathsep}/usr/bin:/bin", "MARK": str(mark)}
    null = subprocess.DEVNULL
    subprocess.run(
        ["bash", "-c", line],
        env=environment,
        cwd=work,
        stdin=null,
        stdout=null,
        stderr=null,
        check=False,
    )
    assert not mark.exists()


@given(st.text("abz019./=:@%+,-_ ", max_size=30))
def test_the_grammar_agrees_with_the_parser(line: str) -> None:
    if read_line(line).refusal:
        return
    parsed = Script(deadline=time.thread_time() + 10)
    parsed._read_tree(line.encode(), 0)
    quick = Script(deadline=time.thread_time() + 10)
    quick.read(line)
    if not parsed.is_unknown and all(
        word.is_known for command in parsed.commands for word in command.words
    ):
        assert [c.text for c in quick.commands] == [c.text for c in parsed.commands]


@pytest.mark.parametrize("count", [49, 50, 51, 5_000])
def test_a_denied_command_behind_many_others_is_found_or_asked_for(count: int) -> None:
    assert verdict("; ".join(["true"] * count) + "; rm x") in {"deny", "ask"}
    assert verdict("; ".join(f"echo {i}" for i in range(count)) + "; rm x") in {"deny", "ask"}


LONG = 64_000
HEAVY = {
    name: text + "\nrm x"
    for name, text in {
        "1 MB": "a" * 1_000_000,
        "1 MB of commands": "echo a;" * 150_000,
        "parentheses": "(" * LONG,
        "substitutions": "$(" * (LONG // 2),
        "nested": "echo $(" * 8_000 + ")" * 8_000,
        "redirects": "<" * LONG,
        "expansions": "${" * (LONG // 2),
        "quotes": '"' * LONG,
        "pipes": "$x|" * (LONG // 3) + "a",
        "words": "a " * (LONG // 2),
        "evals": "eval " * (LONG // 5) + "true",
        "heredoc": "cat > x <<E\n" + "a `b` $(c) \n" * (LONG // 14) + "E",
    }.items()
}


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_lines_are_decided_quickly(name: str) -> None:
    analyse("true; true")
    start = time.process_time()
    assert verdict(HEAVY[name]) in {"deny", "ask"}
    assert time.process_time() - start < 5, "what grows with the square of a line takes minutes"


def test_a_line_is_known_though_the_machine_stands_still_while_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = count(step=10)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    line = "if test -f a; then cat a | head -3; fi; while read x; do echo $(pwd); done; " * 4
    assert ANY_TEXT not in analyse(line).possible_commands


@pytest.mark.parametrize(
    "line",
    [
        "ls -la",
        "cat a | head -3",
        "git log --oneline",
        "git diff HEAD",
        "rg x src",
        "sort a",
        "grep x < f 2>/dev/null",
        "find . -name x",
    ],
)
def test_read_only_lines(line: str) -> None:
    assert analyse(line).is_read_only


@pytest.mark.parametrize(
    "line",
    [
        "git log --output=f", "git log --output f", "git diff --ext-diff", "git -c core.pager=x log",
        "rg --pre x y", "sort -o f a",
        "sort --output=f a", "sort -uof a", "sed 'e ls' f", "sed 'w f' a", "find . -fprintf f x",
        "find . -delete", "uniq a b",
        "tar xf a --checkpoint-action=exec=x", "ls > f", "cat $(x)", "x ls", "PAGER=x git log", "A=1 ls",
        "git grep -Ox y", "",
        "rm x", "git push", "echo $x", "git diff --textconv", "awk 1", "ls; rm x",
        "tree -o f",
    ],
)  # fmt: skip
def test_lines_that_may_write_or_execute_are_not_read_only(line: str) -> None:
    assert not analyse(line).is_read_only


def test_what_is_known_only_in_part_is_compared_in_part() -> None:
    assert analyse("git $x").possible_commands == (f"git{ANY_WORDS}",)
    assert analyse('echo "a$x"').possible_commands == (f"echo a{ANY_TEXT}",)
    assert analyse("$x y").possible_commands[0] == ANY_TEXT


@pytest.mark.parametrize(
    "escape", [r"\9", r"\8", r"\u", r"\U99999999", r"\400", r"\uD800", r"\cx", r"\z", "\\²"]
)
def test_every_escape_of_a_quoted_word_can_be_read(escape: str) -> None:
    assert len(analyse(f"ls $'{escape}z'").commands) == 1


def test_the_need_carries_the_line_for_the_screen() -> None:
    wanted = need("ls")
    assert (wanted.permission, wanted.metadata) == ("bash", {"command": "ls"})


def test_spellings_stay_when_another_command_has_the_same_text() -> None:
    spellings = analyse("xargs git --no-pager").spellings
    assert analyse("xargs git --no-pager; git --no-pager").spellings == spellings != {}


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf build",
        "sudo rm x",
        "make && dd if=/dev/zero of=x",
        "find . -name x -delete",
        "find . -exec touch {} +",
        "git clean -fdx",
        "git -C sub --no-pager checkout .",
        "git $x",
        "xargs rm",
        "rm " + "x" * 70_000,
    ],
)
def test_lines_that_may_delete_ignored_files_are_destructive(line: str) -> None:
    assert need(line).writes == Writes(ignored=True)


@pytest.mark.parametrize(
    "line", ["ls", "make", "find . -name x", "git commit -m reset", "git log -- clean", "echo rm x"]
)
def test_other_lines_may_change_anything_but_ignored_files(line: str) -> None:
    assert need(line).writes == Writes()
