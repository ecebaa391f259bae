"""What a shell line reads and writes is judged by the rules for `read`,
`edit` and `external_directory`.
"""

import subprocess
from pathlib import Path

import pytest

from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.permission import Action, PermissionRule
from codeloop.tool.builtin.shell.bash import BashParams, bash
from tests.tool.context import TestContext, make_context

KEY = "KEY=5f2c-canary"


def rule(permission: str, pattern: str, action: Action) -> PermissionRule:
    return PermissionRule(permission=permission, pattern=pattern, action=action)


BLANKET = (rule("*", "*", "allow"), rule("bash", "*", "allow"))


def project(tmp_path: Path, *rules: PermissionRule) -> TestContext:
    """A repository with files of keys, a denied folder and a file CANARY;
    a folder `out` beside it.
    """
    ctx = make_context(tmp_path)
    root = ctx.workspace.root
    for name in (
        ".env",
        ".envrc",
        "secrets/key.txt",
        "app/prod.env",
        "tls/server.pem",
        "calc.py",
        "CANARY",
        "src/a.py",
    ):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{KEY}\n" if name not in {"calc.py", "src/a.py"} else "x = 1\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_text(f"{KEY}\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(root)]
    for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    ctx.rules = rules
    return ctx


async def tried(ctx: TestContext, command: str) -> str:
    """Return what the model reads: the output, or why it was refused."""
    try:
        result = await bash.run(BashParams(command=command), ctx)
    except Denied:
        return "denied"
    except Rejected:
        return "asked"
    return result.output


SECRET_LINES = [
    "cat .env", "sort .env", "sed -n p .env", "sed -ep -n .env", "cat .en*", "cat ./.env", "cat $PWD/.env",
    "head -1 < .env",
    "cat {.env,calc.py}", "grep -r KEY .", "grep -rn KEY", "grep KEY .env", "rg --hidden KEY", "rg -uu KEY",
    "rg KEY tls",
    "git show :.env", "git show HEAD:.env", "git cat-file -p HEAD:.env", "git log -p -- .env", "git diff HEAD -- .env",
    "git archive HEAD .env", "cp .env x && cat x", "mv .env x", "ln -s .env x", "ln .env x", "tar cf - .env",
    "tar cf - .",
    "awk 1 .env", "awk -f/dev/stdin .env", "od -c .env", "xxd .env", "base64 .env", "nl .env", "tac .env",
    "cut -c1- .env",
    "dd if=.env", "python3 -m base64 .env", "cat .envrc", "cat app/prod.env", "cat tls/*.pem", "cat app/*",
    "cat <.env", "echo $(<.env)", "echo \"$(< .env)\"",
    "f=.env; cat $f", "for f in .env; do cat \"$f\"; done", "cd app && cat prod.env",
    "find . -name .env -exec cat {} +",
    "diff .env calc.py", "curl -d @.env http://127.0.0.1:9/", "tail -n1 -- .env", "paste .env",
    "cat \".env\"",
    "cat $HOME/../app/.env", "zip -q - .env", "gzip -c .env", "comm .env calc.py", "source .env", ". ./.env",
    "cp -r . ../app/b",
    "rg -. KEY", "rg -u KEY", "rg -g .env KEY", "rg --glob '*.pem' KEY tls", "grep -d recurse KEY .",
    "grep --directories=recurse KEY", "wc --files0-from=.env", "du --files0-from .env", "date -f .env", "file -f .env",
    "unshare cat .env",
    "git grep KEY -- .env", "git blame .env", "jq -R . .env", "while read x; do echo $x; done < .env", "bash < .env",
]  # fmt: skip


@pytest.mark.parametrize("command", SECRET_LINES)
async def test_secrets_are_asked_about_whatever_a_blanket_rule_allows(
    tmp_path: Path, command: str
) -> None:
    ctx = project(tmp_path, *BLANKET, rule("read", "*", "allow"))
    assert await tried(ctx, command) == "asked"


@pytest.mark.parametrize(
    "command",
    ["ls -la", "cat calc.py", "ls .env", "test -f .env", "find . -name .env", "cat *.py", "rg x src", "grep -r x src",
     "rg -g '*.py' x src",
     "git status --short", "git log --oneline", "for f in src/*.py; do wc -l \"$f\"; done", "stat .env",
     "cat .env.example",
     "echo x > new && cat new", "cp calc.py b.py", "mkdir -p d/e && touch d/e/f", "rm -rf src", "sed -i s/x/y/ calc.py",
     "git diff", "git diff --stat HEAD", "git diff HEAD -- src", "git log -p src", "git log --stat", "git show --stat",
     "git show HEAD:calc.py", "git diff calc.py", "git cat-file -t HEAD", "git grep x HEAD -- src",
     "git checkout -q -b other", "diff <(sort calc.py) <(sort src/a.py)", "tar cf src.tar src", "mv calc.py src/"],
)  # fmt: skip
async def test_ordinary_lines_need_no_question(tmp_path: Path, command: str) -> None:
    assert await tried(project(tmp_path, rule("bash", "*", "allow")), command) not in {
        "asked",
        "denied",
    }


@pytest.mark.parametrize(
    "command",
    ["cat secrets/key.txt", "cat secrets/*", "cat s*/key.txt", "grep -r KEY .", "git show HEAD:secrets/key.txt",
    "cp secrets/key.txt x",
     "cat \"$(echo secrets/key.txt)\"", "x=secrets; cat $x/key.txt", "cd secrets; cat key.txt", "ls | xargs cat",
     "cat $1 -",
     "(cd secrets && cat *)", "eval 'cat secrets/key.txt'", "sh -c 'cat secrets/key.txt'", "tar c secrets",
     "cat {secrets,src}/key.txt"],
)  # fmt: skip
async def test_a_deny_of_read_binds_the_shell(tmp_path: Path, command: str) -> None:
    ctx = project(tmp_path, *BLANKET, rule("read", "secrets/*", "deny"))
    assert await tried(ctx, command) == "denied"


async def test_a_deny_of_read_binds_nothing_else(tmp_path: Path) -> None:
    ctx = project(tmp_path, *BLANKET, rule("read", "secrets/*", "deny"))
    for command in (
        "cat calc.py",
        "grep -r x src",
        'for f in src/*; do cat "$f"; done',
        "ls secrets",
    ):
        assert await tried(ctx, command) not in {"asked", "denied"}, command


WRITES = [
    "cat calc.py > CANARY", "echo > CANARY", "echo >> CANARY", "echo >| CANARY", ": > CANARY", "echo &> CANARY",
    "echo 3<> CANARY",
    "git diff --output=CANARY", "git log --outp=CANARY", "find . -fprint CANARY", "find . -fls CANARY",
    "find . -fprintf CANARY x",
    "sort -o CANARY calc.py", "sort -oCANARY calc.py", "sort --outp CANARY calc.py", "tee CANARY < calc.py",
    "cp calc.py CANARY",
    "mv calc.py CANARY", "ln -f calc.py CANARY", "dd if=calc.py of=CANARY", "install calc.py CANARY",
    "truncate -s0 CANARY",
    "sed -i s/x/y/ CANARY", "sed -n 'w CANARY' calc.py", "perl -pi -e 1 CANARY", "touch CANARY", "rm CANARY",
    "rm -f ./CANARY",
    "chmod +x CANARY", "git checkout -- CANARY", "git restore CANARY", "git rm -q CANARY", "git mv CANARY x",
    "mv CANARY x",
    "uniq calc.py CANARY", "awk '{print > \"CANARY\"}' calc.py", "curl -o CANARY http://127.0.0.1:9/",
    "tar cf CANARY calc.py",
    "zip -q CANARY calc.py", "split -b1 calc.py CANARY", "rm C*", "rm {calc.py,CANARY}", "f=CANARY; echo > $f",
    "rm -rf .",
    "for f in CANARY; do rm \"$f\"; done", "cd src; rm ../CANARY", "echo > \"$(echo CANARY)\"", "ls | xargs rm",
    "find . -delete",
    "git reset -q --hard", "git clean -fdx", "git stash -q", "git apply p", "tar xf a.tar", "unzip -o a.zip",
    "patch -p1 < p",
    "gzip CANARY", "shred CANARY", "wget -O CANARY http://127.0.0.1:9/", "bash -c 'rm CANARY'",
    "git archive -o CANARY HEAD",
    "cp -r src/. .", "rsync -a src/ .", "git -C . checkout HEAD -- CANARY", "gcc -o CANARY a.c", "xxd calc.py CANARY",
]  # fmt: skip


@pytest.mark.parametrize("command", WRITES)
async def test_a_deny_of_edit_binds_the_shell(tmp_path: Path, command: str) -> None:
    ctx = project(tmp_path, *BLANKET, rule("edit", "CANARY*", "deny"))
    assert await tried(ctx, command) == "denied"
    assert (ctx.workspace.root / "CANARY").read_text() == f"{KEY}\n"


UNSEEN = [
    "tar xf a.tar", "tar xzf a.tar -C build", "git archive HEAD | tar x", "unzip -o a.zip", "unzip a.zip -d build",
    "git apply p", "git am m", "patch -p1 < p", "patch -d src -i p", "7z x a", "cpio -idm < a", "ar x a", "jar xf a",
    "unrar x a.rar", "pax -r < a", "dpkg -x a.deb .", "uudecode a", "gunzip -N a.gz", "curl -OJ http://127.0.0.1:9/a",
    "curl -sLOJ http://127.0.0.1:9/a", "wget -r http://127.0.0.1:9/", "rsync -a host:x .", "scp -r host:x .",
    "bash -c 'tar xf a.tar'", "cd src && tar xf a.tar", "cp -r vendor/. .", "rsync -a vendor/ src", "mv vendor/.* src",
    "env tar xf a.tar", "sudo tar xf a.tar", "ls | xargs unzip",
]  # fmt: skip
"""What comes out decides where it goes."""


@pytest.mark.parametrize("command", UNSEEN)
async def test_unpacking_what_can_not_be_known_asks_where_no_sandbox_holds(
    tmp_path: Path, command: str
) -> None:
    ctx = project(tmp_path, *BLANKET, rule("edit", "*", "allow"))
    (ctx.workspace.root / "vendor/.codeloop").mkdir(parents=True)
    assert await tried(ctx, command) == "asked"


@pytest.mark.parametrize(
    "command",
    ["tar cf a.tar src", "tar tf a.tar", "unzip -l a.zip", "git apply --check p", "7z l a", "ar rcs a b", "gunzip a.gz",
     "curl -O http://127.0.0.1:9/a", "rsync -a src/ copy", "cp -r src copy", "jar cf a src"],
)  # fmt: skip
async def test_what_unpacks_nothing_is_not_asked_about(tmp_path: Path, command: str) -> None:
    ctx = project(tmp_path, *BLANKET, rule("edit", "*", "allow"))
    assert await tried(ctx, command) != "asked"


OUTSIDE = [
    "grep -e. {out}/f", "sed -ep -n {out}/f", "awk -f/dev/stdin {out}/f", "find -L {out}", "cat {{{out}/f,x}}",
    "OLDPWD={out}; cat ~-/f",
    "CDPATH={out}/..; cd out && cat f", "git diff --no-index calc.py {out}/f", "cat < {out}/f", "cp {out}/f .",
    "cat ../out/f",
    "cd ..; cat out/f", "cd {out} && cat f", "env -C {out} cat f", "git -C {out} status", "make -C {out}",
    "tar x -C {out} -f a",
    "x={out}; cat $x/f", "cat \"$(echo {out}/f)\"", "for f in {out}/*; do cat $f; done", "HOME={out}; cat ~/f",
    "ls ../o*/f",
    "dd if={out}/f", "curl file://{out}/f", "python3 calc.py {out}/f", "cc -I{out} x.c", "jq -n --rawfile a {out}/f 1",
    "cat $OLDPWD/f",
    "ln -s {out}/f l && cat l", "source {out}/f", "bash {out}/f", "pushd {out}; cat f", "popd; cat f", "cd -; cat f",
    "cd \"$x\"; cat f",
]  # fmt: skip


@pytest.mark.parametrize("command", OUTSIDE)
async def test_places_outside_are_asked_about(tmp_path: Path, command: str) -> None:
    ctx = project(tmp_path, rule("bash", "*", "allow"))
    assert await tried(ctx, command.format(out=tmp_path / "out")) == "asked"


@pytest.mark.parametrize(
    "command",
    ["echo x > .git/hooks/post-commit", "cp calc.py .GIT/hooks/x", "mkdir .git/hooks/x", "rm -rf .git", "rm -rf .",
    "mv .git x",
     "git config core.hooksPath x", "git remote add o u", "git branch -m other", "echo {} > codeloop.json",
     "cp calc.py .codeloop/x", "mkdir -p .opencode/command",
     "echo x > AGENTS.md", "tee .vscode/tasks.json < calc.py", "sed -i s/x/y/ .git/config", "echo x > .git./hooks/x",
     "tar xf a.tar -C .git/hooks", "tar --one-top-level=.git/hooks/a -xf a.tar", "git worktree add .git/hooks/w",
     "git format-patch -1 -o .git/hooks", "git init --template=src", "unshare touch .git/hooks/x",
     "unzip -d .husky a.zip",
     "iconv -o .git/hooks/x calc.py", "sqlite3 .git/hooks/x 'select 1'", "git archive HEAD | tar x -C .codeloop",
     "ln -s /bin/sh .git/hooks/x", "cd .git && echo x > hooks/y", "printf x > .husky/pre-commit",
     "echo x >> ~/.bashrc"],
)  # fmt: skip
async def test_protected_files_are_asked_about_whatever_a_blanket_rule_allows(
    tmp_path: Path, command: str
) -> None:
    ctx = project(tmp_path, *BLANKET, rule("edit", "*", "allow"))
    assert await tried(ctx, command) == "asked"


OTHER_NAMES = [
    "ln -s .git/hooks h; echo x > h/a", "ln .git/config c && tee c < calc.py", "cp -l .git/config c; cp calc.py c",
    "cp --symbolic-link .git/config c; echo x >> c", "link .git/config c; git show HEAD:calc.py > c",
    "mount --bind .git/hooks h; cp calc.py h/a", "git checkout-index --prefix=.git/hooks/ calc.py",
    "vim -es -c 'w! .git/hooks/a' -c q calc.py", "sqlite3 a.db '.output .git/hooks/a'", "vi '+%w .git/hooks/a' calc.py",
    "git add -f .env; git diff --cached", "pip install -t .git/hooks x", "npm pack --pack-destination .git/hooks",
]  # fmt: skip


@pytest.mark.parametrize("command", OTHER_NAMES)
async def test_guarded_files_are_asked_about_under_any_name_that_the_line_gives_them(
    tmp_path: Path, command: str
) -> None:
    ctx = project(tmp_path, *BLANKET, rule("edit", "*", "allow"))
    (ctx.workspace.root / ".env").write_text(KEY)
    assert await tried(ctx, command) == "asked"


@pytest.mark.parametrize(
    "command",
    ["git fetch ../out", "cargo build --target-dir ../out/x", "pip install --target ../out x"],
)
async def test_other_repositories_and_folders_of_output_are_asked_about(
    tmp_path: Path, command: str
) -> None:
    ctx = project(tmp_path, rule("bash", "*", "allow"))
    assert await tried(ctx, command) == "asked"


@pytest.mark.parametrize("name", ["*.pem", "AGENTS.md*/AGENTS.md", "?/.env"])
async def test_no_always_is_offered_for_a_name_that_would_match_others(
    tmp_path: Path, name: str
) -> None:
    ctx = project(tmp_path, *BLANKET)
    file = ctx.workspace.root / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(KEY)
    for command in (
        f"cat '{name}'",
        f"echo > '{name}'",
        f"cat '{tmp_path}/out*/f'",
        f"touch '{tmp_path}/out?/f'",
    ):
        await tried(ctx, command)
    assert [
        need.always
        for need in ctx.asked
        if any("*" in each[:-1] or "?" in each for each in need.always)
    ] == []
