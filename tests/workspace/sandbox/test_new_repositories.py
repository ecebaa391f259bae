"""What a command makes that git or codeloop would run goes while the command still runs,
not at its end.
"""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import ShellCommand, Shells
from tests.workspace.sandbox.conftest import Attacked

pytestmark = pytest.mark.slow
SETTINGS = """
evil() { printf '[core]\\n\\tfsmonitor = x\\n\\tsshCommand = x\\n[alias]\\n\\tst = !x\\n' >> $1; }
hook() { mkdir -p $1; echo x > $1/pre-commit; chmod +x $1/pre-commit; }
"""
MADE = {
    "git init": ("git init -q r; evil r/.git/config", "r/.git/config"),
    "hooks": ("git init -q r; hook r/.git/hooks", "r/.git/hooks/pre-commit"),
    "hooks in no template": (
        "git init -q --template= r; hook r/.git/hooks",
        "r/.git/hooks/pre-commit",
    ),
    "attributes": (
        "git init -q r; mkdir -p r/.git/info; echo '* filter=x' > r/.git/info/attributes",
        "r/.git/info",
    ),
    "a clone": ("git clone -q . a/b/r; evil a/b/r/.git/config", "a/b/r/.git/config"),
    "a copy": ("git init -q x; evil x/.git/config; cp -r x r", "r/.git/config"),
    "a rename": (
        "mkdir x; cp -r .git x/g; evil x/g/config; mv x/g x/.git; mv x r",
        "r/.git/config",
    ),
    "a bare one": ("git init -q --bare r; sleep 0.3; evil r/config", "r/config"),
    "written later": ("git init -q r; sleep 0.3; evil r/.git/config", "r/.git/config"),
    "replaced later": ("git init -q r; sleep 0.3; evil n; mv n r/.git/config", "r/.git/config"),
    "config.worktree": ("git init -q r; evil r/.git/config.worktree", "r/.git/config.worktree"),
    "a commondir": (
        "git init -q x; evil x/.git/config; git init -q r; echo ../../x/.git > r/.git/commondir",
        "x/.git",
    ),
    "a .git file": (
        "git init -q --bare x; evil x/config; mkdir r; echo gitdir: ../x > r/.git",
        "x/config",
    ),
    "a module": (
        "git init -q r; git init -q --bare r/.git/modules/m; evil r/.git/modules/m/config",
        "r/.git/modules",
    ),
}


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.01)


def is_clean(folder: Path) -> bool:
    """Return whether no file below a folder, or the file itself, has something that runs."""
    texts: list[str] = []
    for path in [folder, *folder.rglob("*")]:
        with suppress(OSError):  # it is a folder, or gone by now
            texts += [] if path.suffix == ".sample" else [path.read_text()]
    return not any("fsmonitor" in text or "filter=x" in text or text == "x\n" for text in texts)


async def start(it: Attacked, text: str) -> None:
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    policy = it.shells.make_policy(it.place, SandboxConfig(network="off"))
    await it.shells.start(
        it.context, ShellCommand(f"{SETTINGS}{text}; touch done; sleep 600", 600, None, policy)
    )
    await wait_until((it.root / "done").exists)


@pytest.mark.parametrize("name", MADE)
async def test_a_new_repository_runs_nothing_while_the_command_runs(
    it: Attacked, name: str
) -> None:
    subprocess.run(
        ["git", "commit", "-qm", "1", "--allow-empty"],
        cwd=it.root,
        env=it.place.environment,
        check=True,
    )
    line, place = MADE[name]
    await start(it, line)
    await wait_until(lambda: is_clean(it.root / place))
    job = it.shells.jobs.list_jobs()[0]
    assert job.status == "running"
    await wait_until(lambda: "Set aside" in " ".join(job.running.take_warnings()))


async def test_one_that_is_written_again_and_again_is_set_aside_as_a_whole(it: Attacked) -> None:
    await start(
        it,
        "git init -q r; while [ -e r/.git ]; do evil r/.git/config; sleep 0.1; done 2> /dev/null",
    )
    assert not (it.root / "r/.git").exists()


async def test_names_that_may_not_appear_are_gone_at_once(it: Attacked) -> None:
    names = (
        "codeloop.json",
        "opencode.jsonc",
        ".codeloop/plugins/x.py",
        ".opencode/tool/y.ts",
        ".hg/hgrc",
    )
    lines = "; ".join(f"mkdir -p $(dirname {name}); echo x > {name}; sleep 0.1" for name in names)
    await start(it, lines)
    await wait_until(lambda: not any((it.root / name).exists() for name in names))


async def test_what_the_user_makes_meanwhile_stays_where_it_runs_nothing(it: Attacked) -> None:
    await start(it, "true")
    for words in (
        ["init", "-q", "mine"],
        ["-C", "mine", "remote", "add", "origin", "https://example.com/x"],
    ):
        subprocess.run(["git", *words], cwd=it.root, check=True)
    before = (it.root / "mine/.git/config").read_text()
    await asyncio.sleep(0.3)
    assert (it.root / "mine/.git/config").read_text() == before


KILLED = """
import asyncio, sys
from pathlib import Path
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput

async def main():
    root, own, home = map(Path, sys.argv[2:5])
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    place = PolicyInput(root, root, own, environment, (own.parent,))
    shells, config = Shells(), SandboxConfig(network="off")
    await shells.scan_work_tree(place, config)
    command = ShellCommand(sys.argv[1], 600, None, shells.make_policy(place, config))
    await shells.run(ShellContext("ses_2", root, environment, own), command, lambda _: None)

asyncio.run(main())
"""


async def test_what_a_command_makes_is_gone_after_codeloop_was_killed(it: Attacked) -> None:
    """It is killed when it can no longer look at what the command writes again and again."""
    line = (
        f"{SETTINGS} touch done; trap '' TERM HUP INT;"
        " while :; do git init -q r; git init -q --bare b; evil r/.git/config; evil b/config;"
        " echo x > codeloop.json; done 2> /dev/null"
    )
    (it.root / "mine").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=it.root / "mine", check=True)
    subprocess.run(["git", "config", "alias.mine", "!true"], cwd=it.root / "mine", check=True)
    await asyncio.sleep(0.05)
    words = (line, it.root, it.context.scratch, it.home)
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, *map(str, words)], cwd=Path(__file__).parents[3]
    )
    try:
        await wait_until((it.root / "done").exists)
        child.send_signal(signal.SIGSTOP)
        await wait_until(lambda: not is_clean(it.root / "r/.git") and not is_clean(it.root / "b"))
    finally:
        child.kill()
        child.wait()
    await wait_until(lambda: is_clean(it.root / "r/.git") and is_clean(it.root / "b"))
    await wait_until(lambda: not (it.root / "codeloop.json").exists())
    assert "!true" in (it.root / "mine/.git/config").read_text()
    # In the process that comes next.
    shells = Shells()
    try:
        await shells.scan_work_tree(it.place, SandboxConfig(network="off"))
        outcome = await it._replace(shells=shells).run("true")
    finally:
        await shells.close()
    assert "killed while a command ran" in outcome.warnings[0]
