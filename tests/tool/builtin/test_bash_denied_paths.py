"""What rules deny by path, the kernel keeps from sandboxed commands,
whatever name they have for it.
"""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.config import SandboxConfig
from codeloop.schema.permission import PermissionRule
from codeloop.tool.builtin.shell.bash import BashParams, bash
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from tests.tool.context import TestContext, make_context

ALLOWED = tuple(
    PermissionRule(permission=name, pattern="*", action="allow")
    for name in ("bash", "edit", "read", "ex*")
)
DENIED = tuple(
    PermissionRule(permission=permission, pattern=pattern, action="deny")
    for permission, pattern in (
        ("edit", "dist/*"),
        ("edit", "app.lock"),
        ("edit", "*.gen.py"),
        ("edit", "new/*"),
        ("read", "secrets/*"),
        ("read", "keys.txt"),
    )
)
KEY = "the-key-of-this-test"


@pytest.fixture
async def ctx(tmp_path: Path) -> AsyncIterator[TestContext]:
    made = make_context(tmp_path)
    root = made.workspace.root
    for name in ("dist/f", "app.lock", "deep/a.gen.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("kept")
    (root / "secrets").mkdir()
    (root / "secrets/k.txt").write_text(KEY)
    (root / "keys.txt").write_text(KEY)
    for words in (
        ["init", "-q"],
        ["config", "user.email", "a@example.com"],
        ["config", "user.name", "A"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)
    made.rules = (*ALLOWED, *DENIED)
    made.workspace.sandbox = SandboxConfig(mode="required", network="off")
    yield made
    await made.workspace.shells.close()


async def run(ctx: TestContext, command: str) -> str:
    try:
        return (await bash.run(BashParams(command=command), ctx)).output
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    except (Denied, Rejected) as error:
        return str(error)


ATTACKS = (
    "ln -s dist q; echo x > q/f",
    "ln dist/f hard; echo x > hard; ln app.lock l; echo x > l",
    "mv dist gone; mv app.lock gone2; mv deep gone3; rm -rf dist deep; rm -f app.lock",
    "python3 attack.py",
    "make -s -f Attack.mk",
    "printf '1c\\nx\\n.\\nw\\n' | sh -c 'ed -s dist/f'",
    "git add -Af; git commit -qm a; git switch -q --orphan other; git checkout -q --force other",
    "sh -c 'python3 -m zipfile -c dist/f Attack.mk; python3 -m zipfile -c app.lock Attack.mk'",
    "sh attack.sh",
)


@pytest.mark.slow
async def test_a_denied_path_is_not_changed_by_any_name(ctx: TestContext) -> None:
    root = ctx.workspace.root
    (root / "attack.py").write_text(
        "import os, shutil\nfor p in ('dist/f', 'app.lock', 'deep/a.gen.py', 'dist/g', 'new/f'):\n"
        "    try:\n        os.makedirs('new', exist_ok=True)\n        open(p, 'w').write('x')\n"
        "    except OSError: pass\n"
    )
    (root / "Attack.mk").write_text("all:\n\t-@ln -s dist y; echo x > y/f; cp Attack.mk app.lock\n")
    (root / "attack.sh").write_text(
        "d=di; cd ${d}st && echo x > f; cd ..; echo x | tee app.lock deep/a.gen.py\n"
    )
    for attack in ATTACKS:
        await run(ctx, attack)
        for name in ("dist/f", "app.lock", "deep/a.gen.py"):
            assert (root / name).read_text() == "kept", attack
        assert not (root / "dist/g").exists(), attack
        assert not (root / "new").exists(), attack


@pytest.mark.slow
async def test_what_may_not_be_read_is_not_there_by_any_name(ctx: TestContext) -> None:
    root = ctx.workspace.root
    (root / "attack.sh").write_text(
        "s=secr; cat ${s}ets/k.txt; cp -r secrets copy; cat copy/*; cat keys.txt < keys.txt\n"
    )
    for attack in (
        "ln -s secrets y; cat y/k.txt",
        "ln -s keys.txt z; cat z; ln keys.txt h; cat h",
        "sh attack.sh",
        "python3 -c 'print(open(\"keys.txt\").read())'",
        "git add -Af; git diff --cached; git commit -qm x; git worktree add -q w; cat w/secrets/k.txt w/keys.txt",
        "git stash -u -q; git stash show -p; git checkout-index -a --prefix=out/; cat out/keys.txt out/secrets/*",
        "mv secrets s; cat s/k.txt; tar cf - . | cat",
    ):
        assert KEY not in await run(ctx, attack), attack
    subprocess.run(["grep", "-r", KEY, "secrets"], cwd=root, check=True, capture_output=True)


async def test_what_appears_where_a_pattern_denies_it_is_set_aside(ctx: TestContext) -> None:
    root = ctx.workspace.root
    (root / "attack.sh").write_text(
        "echo x > deep/b.gen.py; mkdir -p more/sub; echo x > more/sub/c.gen.py\n"
    )
    told = await run(ctx, "sh attack.sh")
    assert sorted(path.name for path in root.rglob("*.gen.py")) == ["a.gen.py"]
    assert "more/sub/c.gen.py" in told
    assert (root / "deep/a.gen.py").read_text() == "kept"


async def test_an_exception_of_a_denied_folder_stays_open(ctx: TestContext) -> None:
    ctx.rules = (
        *(ctx.rules or ()),
        PermissionRule(permission="edit", pattern="dist/ok.txt", action="allow"),
    )
    (ctx.workspace.root / "dist/ok.txt").write_text("before")
    (ctx.workspace.root / "attack.sh").write_text("cd dist; echo x > f\n")
    await run(ctx, "echo after > dist/ok.txt; sh attack.sh")
    assert (ctx.workspace.root / "dist/ok.txt").read_text() == "after\n"
    assert (ctx.workspace.root / "dist/f").read_text() == "kept"


@pytest.mark.parametrize(
    ("line", "is_asked"),
    [
        ("ln -s dist q; echo x > q/f", True),
        ("make all", True),
        ("python3 x.py", True),
        ("git switch --orphan x", True),
        ("sqlite3 db .dump", True),
        ("echo x > other; mkdir sub; touch sub/a", False),
        ("git status", False),
    ],
)
async def test_without_a_sandbox_what_could_go_around_a_denied_path_is_asked(
    ctx: TestContext, line: str, is_asked: bool
) -> None:
    ctx.workspace.sandbox = SandboxConfig(mode="off")
    await run(ctx, line)
    bashes = [need for need in ctx.asked if need.permission == "bash"]
    assert [need.preset for need in bashes] == ["ask" if is_asked else None]
