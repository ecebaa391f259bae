"""Ways out that have been found in sandboxes, tried by one program from inside each
kind: none leads anywhere.
"""

import json
import shlex
import socket
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.sandbox.policy import SandboxGrants
from tests.workspace.sandbox.conftest import SECRET, Attacked

TRY = r"""
import ctypes, errno, fcntl, glob, json, os, platform, socket, struct, subprocess, sys, termios
libc = ctypes.CDLL(None, use_errno=True)
COLUMN = 0 if platform.machine() == "x86_64" else 1
home, secret, victim = sys.argv[1], sys.argv[2], int(sys.argv[3])
done = []


def attempt(what):
    def run(function):
        try:
            if function():
                done.append(what)
        except (OSError, subprocess.SubprocessError, ValueError):
            pass
    return run


def call(numbers, *arguments):
    ctypes.set_errno(0)
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return libc.syscall(numbers[COLUMN], *words) >= 0


def writes(path):
    with open(path, "r+b", buffering=0) as file:
        return file.write(b"1") == 1


def runs(*words):
    return not subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=5).returncode


attempt("TIOCSTI")(lambda: fcntl.ioctl(os.openpty()[1], termios.TIOCSTI, b"x") == 0)
HIGH = ctypes.c_ulong(termios.TIOCSTI | 1 << 32)
attempt("TIOCSTI with high bits set")(lambda: libc.ioctl(os.openpty()[1], HIGH, b"x") == 0)
attempt("TIOCLINUX")(lambda: libc.ioctl(os.openpty()[1], ctypes.c_ulong(0x541C), b"\3") == 0)
CLONE = ctypes.create_string_buffer(struct.pack("Q", 0x10000000) + bytes(80))
for numbers, name, arguments in (
    ((101, 117), "ptrace attach of the launcher", (16, 1, 0, 0)),
    ((101, 117), "ptrace seize of a process outside", (0x4206, victim, 0, 0)),
    ((425, 425), "io_uring", (8, ctypes.create_string_buffer(512))),
    ((323, 282), "userfaultfd", (0,)),
    ((250, 219), "keyctl", (0, -3, 0)),
    ((248, 217), "add_key", (b"user", b"x", b"y", 1, -3)),
    ((321, 280), "bpf", (0, ctypes.create_string_buffer(128), 128)),
    ((298, 241), "perf_event_open", (ctypes.create_string_buffer(struct.pack("II", 1, 128), 128), 0, -1, -1, 0)),
    ((304, 265), "open_by_handle_at", (3, ctypes.create_string_buffer(136), 0)),
    ((435, 435), "clone3 with a user namespace", (CLONE, 88)),
    ((272, 97), "unshare of a user namespace", (0x10000000,)),
    ((272, 97), "unshare of a mount namespace", (0x20000,)),
    ((308, 268), "setns", (os.open("/proc/self/ns/net", os.O_RDONLY), 0)),
    ((165, 40), "mount", (b"none", b".", b"tmpfs", 0, 0)),
    ((428, 428), "open_tree", (-100, b"/", 1)),
    ((430, 430), "fsopen", (b"tmpfs", 0)),
    ((161, 51), "chroot", (b"/",)),
    ((175, 105), "init_module", (b"", 0, b"")),
    ((246, 104), "kexec_load", (0, 0, None, 0)),
    ((434, 434), "pidfd_open of a process outside", (victim, 0)),
    ((103, 116), "syslog", (3, ctypes.create_string_buffer(64), 64)),
):
    attempt(name)(lambda: call(numbers, *arguments))
if platform.machine() == "x86_64":
    attempt("calls of the x32 kind")(lambda: libc.syscall(ctypes.c_long(0x40000000 | 39)) > 0)
data = ctypes.create_string_buffer(8)
vector = struct.pack("PN", ctypes.addressof(data), 8)
there = struct.pack("PN", ctypes.addressof(data), 8)
attempt("process_vm_readv of the launcher")(lambda: call((310, 270), 1, vector, 1, there, 1, 0))
attempt("process_vm_writev of a process outside")(lambda: call((311, 271), victim, vector, 1, there, 1, 0))
for pid in (1, victim):
    attempt(f"memory of another process")(lambda: open(f"/proc/{pid}/mem", "r+b", buffering=0))
    attempt("environment of another process")(lambda: SECRET in open(f"/proc/{pid}/environ").read())
for pattern in ("/proc/[0-9]*/root", "/proc/[0-9]*/cwd", "/proc/self/task/*/root", "/proc/self/fd/*"):
    for root in glob.glob(pattern):
        attempt(f"a secret by {pattern}")(lambda: open(f"{root}/{secret}").read())
for path in sys.argv[4].split():
    attempt(f"write {path}")(lambda: os.close(os.open(path, os.O_WRONLY)) is None)
HARMLESS = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "console", "stdin", "stdout", "stderr")
for path in glob.glob("/dev/*") + glob.glob("/dev/[!fp]*/**", recursive=True):
    if not os.path.isdir(path) and os.path.basename(path) not in HARMLESS and not path.startswith("/dev/shm/"):
        attempt(f"device {path}")(lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) is None)
attempt("make a device")(lambda: os.mknod("device", 0o060600, os.makedev(8, 0)) is None)
attempt("set-user-ID programs")(lambda: "NoNewPrivs:\t1" not in open("/proc/self/status").read())
for line in sys.argv[5].split(";"):
    attempt(line)(lambda: runs(*line.split()))
if os.getuid():
    attempt("su")(lambda: runs("su", "-c", "true") or runs("sudo", "-n", "true"))
FAMILIES = ((16, 3, "netlink"), (17, 3, "packet"), (40, 1, "vsock"), (38, 5, "alg"), (2, 3, "raw"))
for family, kind, name in FAMILIES:
    def opened():
        with socket.socket(family, kind) as made:
            if family != 16:
                return True
            made.sendall(struct.pack("IHHIIBxHiII", 32, 16, 5, 1, 0, 0, 0, 1, 0, 1))  # a change: take lo down
            return struct.unpack_from("i", made.recv(200), 16)[0] == 0
    attempt(f"{name} sockets")(opened)
for host in ("127.0.0.1", "::1", "0.0.0.0", "::ffff:127.0.0.1"):
    for port in map(int, sys.argv[6:]):
        attempt(f"{host} of the machine")(lambda: socket.create_connection((host, port), 1))
for server in ("8.8.8.8", "127.0.0.1"):
    def asks():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.settimeout(0.2)
            made.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1", (server, 53))
            return made.recv(100)
    attempt(f"DNS by {server}")(asks)
deep = "d" * 200
top = os.open(".", os.O_RDONLY)
for _ in range(30):
    os.makedirs(deep, exist_ok=True)
    os.chdir(deep)
attempt("a secret by an overlong path")(lambda: open("/".join([".."] * 400) + secret).read())
attempt("a file outside by an overlong path")(lambda: open("/".join([".."] * 400) + "/codeloop-overlong", "w"))
os.fchdir(top)
attempt("a name with a NUL")(lambda: open(secret + "\0.txt").read())
attempt("hard link of a secret")(lambda: os.link(secret, "hard") or open("hard").read())
attempt("hard link of a protected file")(lambda: os.link(".git/config", "hard-config") or writes("hard-config"))
attempt("rename of what holds a protected file")(lambda: os.rename(".git", "m") is None and open("m/config", "a"))
attempt("exchange of a protected file")(lambda: call((316, 276), -100, b".git/config", -100, b"README", 2))
attempt("owner outside")(lambda: os.chown(home + "/.bashrc", os.getuid(), os.getgid()) is None)
attempt("attributes outside")(lambda: os.setxattr(home + "/.bashrc", "user.x", b"1") is None)
attempt("descriptors of others")(lambda: [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 99])
print(json.dumps(sorted(set(done))))
"""
FILES = """
    /sys/power/state
    /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/vm/drop_caches /sys/kernel/uevent_helper
    /proc/sys/kernel/modprobe /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/release_agent /proc/sys/fs/binfmt_misc/register
    /sys/kernel/debug/tracing/trace_marker /dev/kmsg /dev/mem /etc/ld.so.preload /etc/passwd /etc/crontab /usr/bin/env
"""
PROGRAMS = (
    *(
        "at now -f /dev/null",
        "crontab /dev/null",
        "systemd-run --user true",
        "unshare -Ur true",
        "unshare -r true",
    ),
    *("nsenter -t 1 -a true", "docker ps", "dbus-send --session / a.b"),
)
LANDLOCK = {
    "hard link of a protected file",
    "rename of what holds a protected file",
    "exchange of a protected file",
    "pidfd_open of a process outside",
    "owner outside",
    "attributes outside",
    "syslog",
}
"""What Landlock alone does not keep a command from: files that are put back after it,
names and modes.
"""


@pytest.mark.slow
async def test_none_of_many_ways_out_leads_anywhere(it: Attacked) -> None:
    (it.root / "try.py").write_text(f"SECRET = {SECRET!r}\n{TRY}")
    (it.root / "README").write_text("one")
    secret = it.home / ".ssh/id_ed25519"
    with subprocess.Popen(["sleep", "300"], env={"KEY": SECRET}) as victim, listening() as ports:
        words = (
            "python3",
            "try.py",
            str(it.home),
            str(secret),
            str(victim.pid),
            FILES,
            ";".join(PROGRAMS),
        )
        outcome = await it.run(f"{shlex.join(words)} {ports}")
        victim.kill()
    found = json.loads(outcome.output.splitlines()[-1])
    assert [each for each in found if it.backend != "landlock" or each not in LANDLOCK] == [], (
        outcome.output
    )
    assert not Path("/codeloop-overlong").exists()
    assert "one" not in (it.root / ".git/config").read_text()


@contextmanager
def listening() -> Generator[str, None, None]:
    """Listen at a port of this machine for each kind of address; yield the ports."""
    with ExitStack() as stack:
        made = [stack.enter_context(socket.create_server(("127.0.0.1", 0)))]
        with suppress(OSError):
            made.append(
                stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
            )
        yield " ".join(str(each.getsockname()[1]) for each in made)


@pytest.mark.parametrize("target", ["file", "folder"])
async def test_a_link_that_comes_after_the_grant_leads_nowhere(it: Attacked, target: str) -> None:
    granted = it.home.parent / "elsewhere" / "granted"
    granted.mkdir() if target == "folder" else granted.touch()
    grants = SandboxGrants(writable=(granted,))
    it.shells.make_policy(it.place, SandboxConfig(network="off"), grants)
    granted.rmdir() if target == "folder" else granted.unlink()
    granted.symlink_to(it.home if target == "folder" else it.home / ".bashrc")
    await it.run(
        f"echo x > {granted}; echo x > {granted}/.bashrc; echo x > {it.home}/.bashrc", grants
    )
    assert (it.home / ".bashrc").read_text() == "kept"


@pytest.mark.slow
async def test_hooks_of_nested_repositories_and_submodules_stay_as_they_were(it: Attacked) -> None:
    inner = it.root / "vendor/inner"
    inner.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True)
    module = it.root / ".git/modules/lib"
    module.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare"], cwd=module, check=True)
    it.shells._work_trees._policy_makers.clear()
    before = (module / "config").read_text()
    await it.run(
        "echo x > .git/modules/lib/hooks/post-checkout; echo '[core] x = y' >> .git/modules/lib/config"
    )
    assert (module / "config").read_text() == before
    assert not (module / "hooks/post-checkout").exists()
