"""Each kind of sandbox that works here, attacked by real programs: nothing outside changes,
nothing hidden is read.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import PolicyInput, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import BACKENDS, Sandboxes
from tests.workspace.sandbox.conftest import SECRET, Attacked


async def test_what_a_project_needs_works_and_its_state_is_carried_over(it: Attacked) -> None:
    first = await it.run(
        "echo one > a && git add a && git commit -qm one && mkdir sub && cd sub && export A=5"
    )
    assert first.code == 0, first.output
    second = await it.run(
        'pwd; echo "$A"; git log --oneline | wc -l; mktemp >/dev/null && echo made'
    )
    assert second.output.split() == [str(it.root / "sub"), "5", "1", "made"]
    assert second.notes == ()


@pytest.mark.parametrize(
    "attack",
    [
        "echo x > {home}/.bashrc",
        "echo x > ../home/.bashrc",
        "ln -s {home}/.bashrc link; echo x > link",
        "ln {home}/.bashrc hard && echo x > hard",
        "echo x > /proc/self/root{home}/.bashrc",
        "for p in /proc/[0-9]*; do echo x > $p/root{home}/.bashrc; done",
        "for p in /proc/[0-9]*; do echo x > $p/cwd/../home/.bashrc; done",
        "rm -f {home}/.bashrc",
        "mv {home}/.bashrc gone",
        "mv {home} gone",
        "cp /bin/true {home}/evil",
        "mkdir {home}/evil",
        "mknod {home}/evil p",
        "python3 -c 'import os; os.truncate(\"{home}/.bashrc\", 0)'",
        "python3 -c 'import os; os.open(\"{home}/.bashrc\", os.O_RDONLY | os.O_TRUNC)'",
        "mount -o remount,rw / ; echo x > {home}/.bashrc",
        "mount --bind {root} {home}; umount {home}; umount -l {home}; umount -l /; echo x > {home}/.bashrc",
        "unshare -Urm sh -c 'mount -o remount,rw,bind {home}; echo x > {home}/.bashrc'",
        "unshare -r sh -c 'echo x > {home}/.bashrc'",
        "nsenter -t 1 -m sh -c 'echo x > {home}/.bashrc'",
        "chroot / sh -c 'echo x > {home}/.bashrc'",
        "su -c 'echo x > {home}/.bashrc'; sudo -n sh -c 'echo x > {home}/.bashrc'",
    ],
)
async def test_nothing_outside_is_changed(it: Attacked, attack: str) -> None:
    before = sorted(it.home.iterdir())
    await it.run(attack.format(home=it.home, root=it.root))
    assert (it.home / ".bashrc").read_text() == "kept"
    assert sorted(it.home.iterdir()) == before


@pytest.mark.parametrize(
    "attack",
    [
        "cat {home}/.ssh/id_ed25519 {home}/.local/share/codeloop/auth.json",
        "cat /proc/self/root{home}/.ssh/id_ed25519",
        "cat /proc/[0-9]*/root{home}/.ssh/id_ed25519",
        "ln -s {home}/.ssh keys; cat keys/*; cp -r {home}/.ssh copy; cat copy/*",
        "ln {home}/.ssh/id_ed25519 hard; cat hard",
        "mv {home}/.ssh keys; cat keys/*",
        "umount -l {home}/.ssh; umount {home}/.ssh; cat {home}/.ssh/*",
        "unshare -Urm sh -c 'umount -l {home}/.ssh; cat {home}/.ssh/*'",
        "tar cf - {home} 2>/dev/null | cat; grep -r secret {home}",
        "debugfs -R 'cat {home}/.ssh/id_ed25519' /dev/vda; head -c 1 /dev/vda /dev/sda /dev/mem",
        "timeout 2 cat /proc/[0-9]*/environ; timeout 2 cat /proc/[0-9]*/fd/*",
    ],
)
async def test_nothing_hidden_is_read(it: Attacked, attack: str) -> None:
    outcome = await it.run(
        f"({attack.format(home=it.home)}) 2>&1 < /dev/null | grep -a -o {SECRET[:12]}.* | head -5"
    )
    assert SECRET not in outcome.output


@pytest.mark.parametrize(
    "attack",
    [
        "echo '[core] fsmonitor = evil' >> .git/config",
        "printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
        "mv .git .git2; cp -r .git2 .git; echo '[core] x = y' >> .git/config",
        "mv .git/hooks .git/h; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
        "rm -rf .git/hooks; ln -s /bin .git/hooks",
        "git config core.fsmonitor evil",
        "mkdir .codeloop; echo '{}' > .codeloop/codeloop.json",
        "echo '{}' > opencode.json; ln -s /etc .opencode",
    ],
)
async def test_what_decides_what_runs_later_stays_as_it_was(it: Attacked, attack: str) -> None:
    config, hooks = (
        (it.root / ".git/config").read_text(),
        sorted((it.root / ".git/hooks").iterdir()),
    )
    outcome = await it.run(attack)
    assert (it.root / ".git/config").read_text() == config
    assert sorted((it.root / ".git/hooks").iterdir()) == hooks
    assert not any(
        os.path.lexists(it.root / name) for name in (".codeloop", ".opencode", "opencode.json")
    )
    assert outcome.notes or "busy" in outcome.output.lower() or outcome.code == 0


async def test_a_secret_of_the_project_is_hidden_unless_it_was_granted(it: Attacked) -> None:
    (it.root / ".env").write_text(SECRET)
    (it.root / ".env.example").write_text("plain")
    if it.backend == "landlock":
        policy = it.shells.make_policy(it.place, SandboxConfig(network="off"))
        assert not (await it.shells.sandboxes.enter(policy)).is_protective, "it says so"
        return
    outcome = await it.run(
        "cat .env.example; cat .env; mv .env e; cat e; git add -f .env; git show :.env"
    )
    assert "plain" in outcome.output
    assert SECRET not in outcome.output
    granted = await it.run("cat .env", SandboxGrants(readable=(it.root / ".env",)))
    assert granted.output == SECRET


async def test_a_secret_in_a_protected_folder_opens_none_of_it(it: Attacked) -> None:
    folder = it.root / ".codeloop/plugins"
    folder.mkdir(parents=True)
    (folder / ".env").write_text(SECRET)
    (folder / "program.py").write_text("kept")
    await it.run(
        "cd .codeloop/plugins; echo x > program.py; echo x > new; rm -f program.py; cat .env > out"
    )
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        ".env": SECRET,
        "program.py": "kept",
    }


@pytest.mark.parametrize("name", [".git/config", ".env"])
async def test_what_a_person_replaces_meanwhile_is_kept_all_the_same(
    it: Attacked, name: str
) -> None:
    path = it.root / name
    path.write_text("before\n")
    await it.run("true")
    (it.root / "new").write_text(SECRET)
    (it.root / "new").rename(path)
    outcome = await it.run(f"echo x >> {name}; cat .env")
    assert path.read_text() == SECRET or it.backend == "landlock"
    if name == ".env" and it.backend != "landlock":
        assert SECRET not in outcome.output


async def test_a_policy_that_went_wrong_does_not_end_the_use_of_its_kind(it: Attacked) -> None:
    policy = it.shells.make_policy(it.place, SandboxConfig(network="off"))
    gone = replace(policy, writable=(*policy.writable, it.home / "gone"))
    if it.backend != "landlock":
        with pytest.raises(OSError, match="No such file"):
            await it.shells.sandboxes.enter(gone)
    assert (await it.run("true")).code == 0
    assert it.shells.sandboxes.refused == {}


async def test_processes_of_others_are_out_of_reach(it: Attacked) -> None:
    with subprocess.Popen(["sleep", "300"]) as other:
        await it.run(
            f"kill -9 {other.pid}; kill -9 {os.getpid()}; gdb -p {other.pid} -batch; kill -9 -- -1"
        )
        assert other.poll() is None
        other.kill()


async def test_sockets_of_others_are_out_of_reach(it: Attacked) -> None:
    folder = it.home / ".docker/run"
    folder.mkdir(parents=True)
    opened = os.open(folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server, socket.socket() as machine:
        server.bind(f"/proc/self/fd/{opened}/s")
        os.close(opened)
        server.listen()
        machine.bind(("127.0.0.1", 0))
        machine.listen()
        it.shells._work_trees._policy_makers.clear()
        code = (
            f"import os, socket\nfor family, place in ((1, 's'), (2, {machine.getsockname()!r})):\n"
            f" try:\n  if family == 1: os.chdir({str(folder)!r})\n"
            "  socket.socket(family).connect(place); print('reached')\n except OSError as e: print(e)"
        )
        (it.root / "try.py").write_text(code)
        outcome = await it.run("python3 try.py")
    assert "reached" not in outcome.output
    assert (outcome.code, len(outcome.output.splitlines())) == (0, 2)


async def test_rights_terminals_and_keys_are_given_up(it: Attacked) -> None:
    code = (
        "import ctypes, fcntl, os, termios\n"
        "print(open('/proc/self/status').read())\n"
        "l = ctypes.CDLL(None, use_errno=True)\n"
        "for name, call in (('push', lambda: fcntl.ioctl(os.openpty()[1], termios.TIOCSTI, b'x')),):\n"
        " try: call(); print('done', name)\n except OSError as e: print(e)\n"
        "print('keyctl', l.syscall(250 if os.uname().machine == 'x86_64' else 219, 0, -3, 0))\n"
        "print('userns', l.unshare(0x10000000))\n"
    )
    (it.root / "try.py").write_text(code)
    outcome = await it.run("python3 try.py")
    assert "NoNewPrivs:\t1" in outcome.output
    assert "done" not in outcome.output
    assert "keyctl -1" in outcome.output
    assert "userns -1" in outcome.output


async def test_no_descriptor_of_ours_is_inherited(it: Attacked) -> None:
    assert (await it.run("ls /proc/self/fd")).output.split() == ["0", "1", "2", "3", "99"]


async def test_a_server_that_one_command_starts_is_reached_by_the_next(it: Attacked) -> None:
    if it.backend == "landlock":
        pytest.skip("without a network of its own there is none at all")
    policy = it.shells.make_policy(it.place, SandboxConfig(network="off"))
    server = ShellCommand("exec python3 -m http.server 8123 --bind 127.0.0.1", 120, None, policy)
    job = await it.shells.start(it.context, server)
    fetch = (
        "import urllib.request as u, time\nfor _ in range(1000):\n"
        " try: print(u.urlopen('http://127.0.0.1:8123').status); break\n except OSError: time.sleep(.05)"
    )
    (it.root / "fetch.py").write_text(fetch)
    assert (await it.run("python3 fetch.py")).output == "200\n"
    assert (await it.run("pkill -f '[h]ttp.server'; echo $?")).output == "0\n"
    while (await job.read(5)).status == "running":
        await asyncio.sleep(0.02)


async def test_a_daemon_ends_with_the_sandbox(it: Attacked) -> None:
    marker = f"900.{os.getpid()}125"
    await it.run(f"env -i setsid -f sleep {marker} >/dev/null 2>&1 99>&-")
    await it.shells.close()
    assert list_processes_with(marker) == []


def list_processes_with(word: str) -> list[str]:
    """Return the command lines of this machine's processes that have a word."""
    lines: list[str] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if word in line]


async def test_a_linked_work_tree_commits(it: Attacked) -> None:
    assert (await it.run("git commit -q --allow-empty -m first")).code == 0
    subprocess.run(["git", "worktree", "add", "-q", "../linked"], cwd=it.root, check=True)
    linked = it.root.parent / "linked"
    other = it._replace(
        root=linked,
        context=ShellContext("ses_2", linked, it.context.environment, it.context.scratch),
        place=PolicyInput(
            linked, linked, it.place.scratch, it.place.environment, it.place.own_folders
        ),
    )
    outcome = await other.run(
        "echo x > b && git add b && git commit -qm second && git log --oneline | wc -l"
    )
    assert outcome.output.strip() == "2"
    before = (it.root / ".git/config").read_text()
    await other.run(f"echo '[core] x = y' >> {it.root}/.git/config")
    assert (it.root / ".git/config").read_text() == before


async def test_bubblewrap_is_taken_where_namespaces_are_not_to_be_had(tmp_path: Path) -> None:
    shells = Shells()
    shells.sandboxes.refused["namespaces"] = "not on this machine"
    try:
        place = PolicyInput(
            tmp_path, tmp_path, tmp_path, {"PATH": os.defpath, "HOME": "/nonexistent"}
        )
        sandbox = await shells.sandboxes.enter(
            shells.make_policy(place, SandboxConfig(network="off"))
        )
        if reason := shells.sandboxes.refused.get("bubblewrap"):
            pytest.skip(reason)
        assert (sandbox.backend, sandbox.is_protective) == ("bubblewrap", True)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    finally:
        await shells.close()


async def test_bubblewrap_starts_while_a_hidden_socket_goes(tmp_path: Path) -> None:
    services, root = tmp_path / "services", tmp_path / "work"
    for folder in (services, root):
        folder.mkdir()
    shells = Shells()
    shells.sandboxes = Sandboxes(shells.launcher, ("bubblewrap",))
    try:
        try:
            await shells.sandboxes.enter(SandboxPolicy((root,), (), (services,), (), (), "off", ()))
        except SandboxUnavailable as error:
            pytest.skip(str(error))
        for number in range(4):
            gone = services / f"socket-{number}"
            gone.touch()
            policy = SandboxPolicy((root,), (), (services,), (gone,), (), "off", ())
            going = threading.Timer(0.01 * number, gone.unlink)
            going.start()
            await shells.sandboxes.enter(policy)
            going.join()
    finally:
        await shells.close()


def test_a_kind_of_sandbox_is_tried_here() -> None:
    if sys.platform == "linux" and shutil.which("git"):
        assert BACKENDS
