"""What git ignores and a command removes or overwrites is named at its end,
if no snapshot has it.
"""

import subprocess

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.process.shells import ShellCommand
from codeloop.workspace.sandbox.protected_files import SandboxWatch
from tests.workspace.sandbox.conftest import Attacked

PYTHON = 'python3 -c "import os, shutil; {}"'
LOST = {
    PYTHON.format(
        "os.remove('data.db')"
    ): "1 ignored file or folder was removed and can't be brought back by undo: data.db.",
    PYTHON.format("os.remove('sub/local/x.conf')"): ": sub/local/x.conf.",
    PYTHON.format("shutil.rmtree('node_modules')"): ": node_modules/.",
    PYTHON.format(
        "[os.remove(f'many/{n}.db') for n in range(9)]"
    ): "9 ignored files and folders were removed",
    PYTHON.format("shutil.rmtree('sub')"): ": sub/local/",
    PYTHON.format(
        "open('over.db', 'w')"
    ): "1 ignored file or folder was changed and can't be brought back by undo: over.db.",
    PYTHON.format(
        "open('own/x.conf', 'a').write('1')"
    ): "was changed and can't be brought back by undo: own/x.conf.",
    # Another file takes its place, as programs do that write safely.
    PYTHON.format(
        "open('new', 'w'); os.replace('new', 'put.db')"
    ): "1 ignored file or folder was changed and can't be brought back by undo: put.db.",
    'python3 -c \'open("new", "w")\'; mv new put2.db': ": put2.db.",
    PYTHON.format("open('own/n', 'w'); os.rename('own/n', 'own/y.conf')"): ": own/y.conf.",
    PYTHON.format("os.symlink('x', 'new'); os.replace('new', 'put3.db')"): ": put3.db.",
    "mkdir d; echo 1 > d/put4.db; mv d/put4.db .": ": put4.db.",
    "sed -i s/x/y/ put5.db": ": put5.db.",
}
NOT_LOST = (
    "rm -rf build; rm -f a.pyc",
    "echo 1 > new.db; rm new.db",
    "cp data2.db x; rm data2.db; mv x data2.db",
    "rm kept.txt; rm untracked.txt",
    "git checkout -q kept.txt; rm forced.db",
    PYTHON.format("open('over.db', 'w')"),  # told once
    PYTHON.format("open('made.db', 'w'); open('made.db', 'w')"),
    PYTHON.format("open('made.db', 'w')"),  # a command's own
    PYTHON.format("open('n', 'w'); os.replace('n', 'made.db')"),
    PYTHON.format("open('n', 'w'); os.replace('n', 'made2.db')"),
    PYTHON.format("open('n', 'w'); os.replace('n', 'made2.db')"),
    PYTHON.format("os.rename('data2.db', 'moved.db'); os.rename('moved.db', 'data2.db')"),
    PYTHON.format("open('n', 'w'); os.replace('n', 'kept2.txt')"),
    PYTHON.format("open('n', 'w'); os.replace('n', 'build/x')"),
    PYTHON.format("open('x.pyc', 'w'); open('x.db-wal', 'w'); open('kept2.txt', 'w')"),
)


@pytest.mark.slow
async def test_what_no_snapshot_has_is_named_when_a_command_removes_it(it: Attacked) -> None:
    (it.root / ".gitignore").write_text("*.db\nnode_modules\nbuild\n*.pyc\nlocal/\nown\n*.db-wal\n")
    files = [
        "data.db",
        "data2.db",
        "node_modules/x/y",
        "build/x",
        "a.pyc",
        "kept.txt",
        "untracked.txt",
        "forced.db",
        "over.db",
    ]
    files += ["own/y.conf", *(f"put{number}.db" for number in ("", 2, 3, 4, 5))]
    files += ["own/x.conf", "x.pyc", "x.db-wal", "kept2.txt"]
    for name in (
        *files,
        "sub/local/x.conf",
        "sub/local/y.conf",
        *(f"many/{number}.db" for number in range(9)),
    ):
        (it.root / name).parent.mkdir(parents=True, exist_ok=True)
        (it.root / name).write_text("x")
    for words in (
        ["add", "kept.txt", ".gitignore"],
        ["add", "-f", "forced.db"],
        ["commit", "-qm", "1"],
    ):
        subprocess.run(["git", *words], cwd=it.root, env=it.place.environment, check=True)
    await it.shells.scan_work_tree(it.place, SandboxConfig(network="off"))
    for line, text in LOST.items():
        outcome = await it.run(line)
        assert text in " ".join(outcome.warnings), (line, outcome)
        assert (await it.run("true")).warnings == ()
    for line in NOT_LOST:
        assert "brought back" not in " ".join((await it.run(line)).warnings), line
    # The user's own.
    (it.root / "data2.db").unlink()
    assert (await it.run("true")).warnings == ()
    (it.root / "data3.db").write_text("x")
    policy = it.shells.make_policy(it.place, SandboxConfig(network="off"))
    kept = ShellCommand("rm data3.db", 60, None, policy, SandboxWatch(keeps_ignored=True))
    assert (await it.shells.run(it.context, kept, lambda _: None)).warnings == ()
