"""What is proved of a line, and why not: nothing that evaluates,
nothing of which the program is not certain.
"""

import os
import subprocess
import sys
from posixpath import normpath

import pytest

from codeloop.kit.programs import find_program
from codeloop.permission.rules import decide
from codeloop.schema.permission import Action, PermissionRule
from codeloop.shell.analysis import analyse, make_need
from codeloop.shell.program_table import find_row
from codeloop.shell.proof import GitFacts, MachineFacts, ProgramFacts, prove

BASH = find_program("bash", os.environ.get("PATH"))


def decided(line: str, facts: MachineFacts | None = None, /, **rules: Action) -> Action:
    """Return what is decided under rules for bash,
    in which `_` stands for a blank and `any` for a star.
    """
    given = [
        PermissionRule(
            permission="bash", pattern=name.replace("any", "*").replace("_", " "), action=action
        )
        for name, action in rules.items()
    ]
    return decide(make_need(line, analyse(line, facts)), tuple(given)).action


def rule(pattern: str, action: Action) -> dict[str, Action]:
    """Return a rule whose pattern is not a name."""
    return {pattern: action}


@pytest.mark.parametrize(
    "line",
    [
        "git status", "npm test 2>&1 | tail -20", "cd src && ls -la; pwd", "CI=1 make -j4 > log", "echo \"$x\"",
        "printf '%s\\n' \"$x\"", "[ -f a ] && cat a", "test \"$x\" = y || exit 1", "[ \"$x\" ]", "[ 1 -lt 2 ]",
        "timeout 5 npm test", "env CI=1 npm test", "nice -n 5 make", "ls | xargs -n1 grep x", "command -v git",
        "find . -name '*.py' -exec grep -n x {} +", "sh -c 'ls; echo a'", "bash -ec \"cd a && make\"", "sudo ls",
        "bash script.sh a b", "grep x -- \"$f\"", "./run.sh --fast", "git -C sub log", "git --no-pager diff HEAD~1",
        "kill -9 123", "type git", "git commit -m 'two\nlines'", "node_modules/.bin/jest src", "tar czf a.tgz src",
    ],
)  # fmt: skip
def test_what_is_certain_is_proved(line: str) -> None:
    assert prove(line, MachineFacts()).unproven == ""


EVALUATES = [
    "test -v 'a[$(rm x)]'", "[ -v 'a[$(rm x)]' ]", '[ "$a" "$b" ]', '[ "$a" -eq 1 ]',
    "test a -a -v b", "test -o x",
    "printf -v x y", "printf -- -v x", 'printf "$x" y',
    "printf '%n' PATH", "printf '%5ln' PATH", "read x", "unset x",
    "let x=1", "eval ls", "trap ls EXIT", "alias a=b", "source f", ". f", "mapfile x", "readarray -C ls x",
    "compgen -C ls", "complete -C ls x", "jobs -x ls", "hash -p ./x git", "fc -s", "enable -f x y", "shopt -s x",
    "set -x", "set -- a", "exec ls", "wait -p x", "wait x",
    "getopts a b", "bind -x a", "cd -", 'cd "$x"', "cd src/*",
    "pushd x", "builtin echo a", "command eval ls", "command -p ls",
    'kill "$x"', 'exit "$x"', "caller", "history",
    "sh -c 'eval ls'", "bash -c 'test -v x'", "sh -c \"$x\"", "bash -lc ls", "bash -O extglob -c ls", "sh -c ls x",
    "xargs sh -c 'eval x'", "echo ls | sh", "bash", "bash -s",
    "bash /dev/stdin", "sh -", "env -S 'ls a'", "env -i ls",
    "env PATH=. git status", "env -C d git status", "env \"$x\"", "sudo -u me ls", "sudo -e f", "timeout \"$x\" ls",
    "timeout --weird 5 ls", 'nice "$x"', "watch ls", "flock f ls",
    "strace ls", "parallel ls", "su -c ls", "script -c ls",
    "setpriv rm x", "tmux new ls", "ssh-agent ls", "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "ld.so /bin/rm x",
    "find . -execdir ls {} +", "find . -ok ls {} \\;", "rg --pre x y", "tar cIf x y", "tar -cIx f", "tar --use x f",
    "tar cf a b --checkpoint-action=exec=x", "sort --comp=x f", "rsync -ae x y z", "ssh -oProxyCommand=x h",
    "git -c core.pager=x log", "git --git-dir=x log",
    "git --exec-path=x log", "git bisect run ls", "git rebase -x ls",
    "git submodule foreach ls", "git grep -Oless x", "git --paginate log", "git \"$x\"", "cat \"$x\"", "rm \"$x\"",
    "find -- \"$x\"", "busybox ls", "doas ls", "nohup \"$x\"", "chroot / ls", "noglob ls", "unshare ls", "nsenter ls",
    "entr ls",
]  # fmt: skip


@pytest.mark.parametrize("line", EVALUATES)
def test_what_evaluates_or_runs_more_than_it_says_is_not_proved(line: str) -> None:
    assert prove(line, MachineFacts()).unproven


@pytest.mark.parametrize("line", EVALUATES)
def test_no_rule_for_particular_commands_allows_what_is_not_proved(line: str) -> None:
    pattern = line.split(maxsplit=1)[0] + " *"
    assert (
        decided(line, any="ask", **rule(pattern, "allow"), ls_any="allow", git_any="allow") == "ask"
    )


def test_a_wrapper_that_is_allowed_allows_nothing_behind_it() -> None:
    for line in (
        "timeout 5 rm x",
        "env CI=1 rm x",
        "nice rm x",
        "xargs rm",
        "sudo rm x",
        "sh -c 'rm x'",
        "nohup rm x",
    ):
        name = line.split()[0]
        assert decided(line, any="ask", **rule(f"{name}_any", "allow")) == "ask"
        assert decided(line, any="ask", **rule(f"{name}_any", "allow"), rm_any="allow") == "allow"
    assert decided("find . -exec rm {} +", any="ask", find_any="allow") == "ask"


def test_a_name_that_may_be_another_program_is_not_proved() -> None:
    facts = MachineFacts(
        find_program=lambda name: ProgramFacts(
            doubt=f"`{name}` is not in a system folder" if name == "git" else ""
        )
    )
    for line in (
        "git status",
        "ls; git status",
        "timeout 5 git status",
        "ls | xargs git add",
        "sh -c 'git status'",
    ):
        assert prove(line, facts).unproven == "`git` is not in a system folder"
    assert prove("/usr/bin/git status", facts).unproven == ""
    assert prove("echo git", facts).unproven == ""
    assert decided("git status", facts, any="ask", git_any="allow") == "ask"


@pytest.mark.parametrize(
    "line", ["ls", "ls | head", "git commit -m x", "ls; git commit -m x", "ls && touch f"]
)
def test_a_name_behind_a_folder_of_the_project_is_proved(line: str) -> None:
    facts = MachineFacts(find_program=lambda _: ProgramFacts("/usr/bin/x", is_shadowable=True))
    assert prove(line, facts).unproven == ""


@pytest.mark.parametrize(
    "line",
    [
        "cp evil .venv/bin/ls; ls",
        "ls > .venv/bin/git; git status",
        "cp a b | ls",
        "ls | cp a b",
        "touch f\nls",
    ],
)
def test_it_is_not_where_the_line_could_put_another_one_there(line: str) -> None:
    proof = prove(
        line, MachineFacts(find_program=lambda _: ProgramFacts("/usr/bin/x", is_shadowable=True))
    )
    assert "comes first on the PATH" in proof.unproven


@pytest.mark.parametrize("shell", ["zsh", "fish", "ksh", "busybox sh"])
def test_a_line_is_not_proved_for_a_shell_that_may_read_it_otherwise(shell: str) -> None:
    assert prove(f"{shell} -c 'ls'", MachineFacts()).unproven


def test_a_path_is_the_program_of_a_rule_that_names_it_and_of_no_other() -> None:
    for line in (
        "evil/../bin/git status",
        "./git status",
        "bin/git status",
        "/tmp/git status",
        "/usr/bin/../x/git status",
    ):
        assert decided(line, any="ask", git_any="allow") == "ask"
        assert decided(line, any="allow", git_any="deny") == "deny"
    assert decided("./run.sh a", any="ask", **rule("./run.sh_any", "allow")) == "allow"
    assert decided("/usr/bin/git status", any="ask", git_any="allow") == "allow"


def test_git_is_proved_only_in_the_projects_own_repository() -> None:
    def found(folder: str) -> GitFacts:
        is_top = folder == "/w"
        return GitFacts(
            "" if not normpath(folder).startswith("/w/vendor") else "another repository",
            "",
            not is_top,
        )

    facts = MachineFacts(directories=("/w",), home="/h", find_repository=found)
    assert prove("git status && cd src && git log", facts).unproven == ""
    for line in ("cd vendor/evil && git status", "git -C vendor status",
                 "cd /w/vendor; ls | xargs git add", "git -C src -C ../vendor log",
                 "sh -c 'cd vendor; git log'"):  # fmt: skip
        assert prove(line, facts).unproven == "another repository"
    assert "what comes before" in prove("mkdir src/objects; cd src; git log", facts).unproven
    assert prove("cd src | git log", facts).unproven == ""
    assert prove("git --git-dir=vendor log", facts).unproven
    for line in (
        "xargs git -C",
        "git -C src/* log",
        "xargs -I{} git -C {} log",
        "cd src/../x; git log",
        "cd src; cd ..; git log",
    ):
        assert prove(line, facts).unproven
    assert prove("cd src; cd ..; ls", facts).unproven == ""


def test_git_goes_where_a_link_leads_before_it_goes_up() -> None:
    asked: list[str] = []

    def found(folder: str) -> GitFacts:
        asked.append(folder)
        return GitFacts()

    prove("git -C link/.. log", MachineFacts(directories=("/w",), find_repository=found))
    assert asked == ["/w/link/.."]


def test_what_the_repository_runs_keeps_git_from_being_read_only() -> None:
    facts = MachineFacts(
        find_repository=lambda _: GitFacts(
            program_reason="the repository's configuration sets core.fsmonitor"
        )
    )
    proof = prove("git status", facts)
    assert (proof.unproven, proof.change_reason) == (
        "",
        "the repository's configuration sets core.fsmonitor",
    )


def test_a_doubt_about_the_place_is_a_doubt_about_every_line() -> None:
    facts = MachineFacts(doubt="PATH was changed by an earlier command")
    assert prove("ls", facts).unproven == "PATH was changed by an earlier command"
    assert decided("ls", facts, any="ask", ls_any="allow") == "ask"
    assert decided("ls", facts, any="allow") == "allow"


def test_options_before_a_subcommand_do_not_hide_it_from_a_denial() -> None:
    for line in (
        "git -C . push", "git --no-pager push", "git -c a.b=c push x", "git --git-dir=x push", "git --git-dir x push",
        "git --weird push", "git --weird x push", "git -C a -C b push", "git -C \"$x\" push", "GIT_DIR=x git push",
        "/usr/bin/git push", "./git push", "GIT push", "timeout 5 git -C x push", "git -p push",
    ):  # fmt: skip
        assert decided(line, any="allow", git_push_any="deny") == "deny", line
        assert decided(line, any="allow", git_push_any="ask") == "ask", line
    for line in (
        "git -C push status",
        "git --no-pager log push",
        "git log --grep push",
        "git status",
    ):
        assert decided(line, any="allow", git_push_any="deny") == "allow", line
    for line, pattern in {
        "docker --host x rm y": "docker_rm_any", "kubectl -n a delete pod": "kubectl_delete_any",
        "npm --prefix x publish": "npm_publish_any", "cargo +nightly publish": "cargo_publish_any",
        "gh -R a/b repo delete": "gh_repo_delete_any", "systemctl --user stop x": "systemctl_stop_any",
        "terraform -chdir=x apply": "terraform_apply_any", "uv run rm x": "rm_any", "npx rm x": "rm_any",
        "poetry run rm x": "rm_any", "docker run -it alpine rm x": "rm_any",
    }.items():  # fmt: skip
        assert decided(line, any="allow", **rule(pattern, "deny")) == "deny", line


@pytest.mark.parametrize(
    "line",
    [
        "echo a\n\\rm -f x", "echo a # b\n\\rm x", "cat < f\n\\rm x", "x='a[$(rm -f x)]' y=$((x)) git status",
        "x='a[$(rm x)]'; echo $[x]", "x='a[$(rm x)]'; echo ${PATH:x}", "x='a[$(rm x)]'; echo ${z[x]}",
        "x='a[$(rm x)]'; for ((i=x;;)); do break; done", "x='a[$(rm x)]'; ((x))", "x='a[$(rm x)]'; [[ x -eq 1 ]]",
        "x='a[$(rm x)]'; [[ -v $x ]]", "x='a[$(rm x)]'; z[x]=1", "printf -v 'a[$(rm x)]' 1", "test -v 'a[$(rm x)]'",
        "[ -v 'a[$(rm x)]' ]", "x='-v a[$(rm x)]'; [ $x ]", "a=-v b='a[$(rm x)]'; test \"$a\" \"$b\"",
        "a=-v b='a[$(rm x)]'; [ \"$a\" \"$b\" ]", "read 'a[$(rm x)]'", "unset 'a[$(rm x)]'", "let 'a[$(rm x)]'",
        "declare 'a[$(rm x)]=1'", 'declare "$y"',
        "declare -n r='a[$(rm x)]'", "export 'a[$(rm x)]'", "local -i y=x",
        "typeset -i 'y=a[$(rm x)]'", "mapfile -C 'rm x' y",
        "compgen -C 'rm x'", "jobs -x rm x", "hash -p /bin/rm ls; ls x",
        "fc -s", "complete -C 'rm x' ls", "wait -p 'a[$(rm x)]'", "getopts a 'b[$(rm x)]'", "setpriv rm x",
        "setpriv --reuid 1 rm x", "setarch x86_64 rm x",
        "choom -n 5 -- rm x", "ssh-agent rm x", "dbus-run-session rm x",
        "sg g 'rm x'", "newgrp g", "capsh -- -c 'rm x'", "tmux new 'rm x'", "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "/lib/ld-musl-x86_64.so.1 /bin/rm x", "/proc/self/root/bin/rm x",
        "/proc/self/root/usr/bin/env rm x", "./timeout 5 rm x",
        "tar cIf 'rm x' a", "tar cIf rm a", "tar -caIf rm a",
        "tar --use-c=rm a", "tar --to-c=rm a", "xargs --replace rm {}",
        "xargs --max-lines rm", "xargs -0 --replace=X rm X",
        "valgrind rm x", "firejail rm x", "perf stat rm x",
        "scp -S rm a b", "ssh -oProxyCommand='rm x' h", "pssh -OProxyCommand='rm x' -H h a",
        "parallel-ssh -x '-oProxyCommand=rm' -H h a", "pdsh -Rexec -w h rm x", "clush -o '-oProxyCommand=rm' -w h a",
        "clush --worker=exec -w h rm x", "pdcp -R exec -w h a b", "rpdcp -Rexec -w h a b", "dsh -r rm -m h -- x",
        "dsh --remoteshellopt -oProxyCommand=rm -m h -- x", "mussh -o ProxyCommand=rm -h h -c x",
        "mussh -p h -po ProxyCommand=rm -h g -c x", "prsync -S '-F f' -H h a b", "run-parts x rm",
        "R=rm; $R -f x", """eval "$(printf 'rm x')\"""", "{rm,-f,x}",
        "arch -x86_64 rm x", "RM x", "/BIN/RM x", "ip netns exec a rm x",
    ],
)  # fmt: skip
def test_a_denied_command_is_denied_where_it_could_run(line: str) -> None:
    assert decided(line, any="allow", rm_any="deny") == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "i=1; echo $((2 + 3)) ${a[0]} ${a[@]} ${x:1:2} ${x:-y}", "[[ $x = y && -n $z ]]",
        '[ "$x" = y ]',
        "[[ $# -eq 2 ]]", "read -r x y", "unset x", "printf '%s' \"$x\"", "test -f x", "export A=b B=\"$c\"", "wait",
        "tar xzf a.tgz", "ssh host ls", "valgrind ./prog",
        "uv run pytest", "xargs --replace=X echo X", "rsync -av a b",
        "nohup ./x &", "git -C x status",
    ],
)  # fmt: skip
def test_what_can_not_be_denied_is_not(line: str) -> None:
    assert decided(line, any="allow", rm_any="deny") == "allow"


@pytest.mark.skipif(BASH is None, reason="there is no bash here to ask")
def test_every_builtin_of_the_installed_bash_is_known() -> None:
    listed = subprocess.run(
        [BASH or "", "-c", "compgen -b"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [name for name in listed if find_row(name).builtin is None] == []


def test_a_line_in_the_grammar_needs_no_other_parser() -> None:
    asked = "import sys; from codeloop.shell.analysis import analyse; analyse('git log -3 | head; cd src && ls')"
    subprocess.run(
        [sys.executable, "-c", f"{asked}; sys.exit('tree_sitter' in sys.modules)"], check=True
    )


@pytest.mark.parametrize(
    "script", ["s|[|]|;a;touch P #|e", "s|[|]|;s|w P|p|", "s,[[:punct:],],;a;touch P #,e"]
)
def test_a_script_of_sed_with_its_delimiter_in_a_bracket_is_not_proved(script: str) -> None:
    assert prove(f"sed -i '{script}' f", MachineFacts()).unproven


@pytest.mark.parametrize("script", ["s|[^/]*$||", "s:[a-z]*:x:g", "s#[[:space:]]*$##;s,a[/]b,c,"])
def test_a_script_of_sed_that_only_edits_is_proved(script: str) -> None:
    assert prove(f"sed -i '{script}' f", MachineFacts()).unproven == ""
