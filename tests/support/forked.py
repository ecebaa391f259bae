"""Starts the program many times for little: each is a real process, forked from one that has loaded all of it.

An interpreter and its imports are most of what a short command costs, and a suite starts hundreds. What such a child
can't show (what is loaded when, a terminal, a signal at any moment) is for tests that start the program whole.
"""

import atexit
import gc
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock

import codeloop

ROOT = Path(__file__).parents[2]
AT_START = ("LANG", "LC_", "PYTHON", "TZ", "CODELOOP_FAULT")
"""Variables that an interpreter, or the program as it is loaded, reads once."""
PIPE = 16_000
"""How many bytes any pipe holds that nobody reads yet."""


class Loaded:
    """A process that has the program loaded. It forks one child at a time, for as long as we live."""

    def __init__(self) -> None:
        self._channel, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from tests.support.forked import serve; exec(serve({other.fileno()}))"],
                cwd=ROOT,
                env={name: value for name, value in os.environ.items() if not name.startswith(AT_START)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # and no terminal: Python writes to one line by line
                pass_fds=[other.fileno()],
            )
        self._is_taken = Lock()
        atexit.register(self._close)

    def run(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], text: str, seconds: float
    ) -> subprocess.CompletedProcess[str] | None:
        """Run `python -c CODE ARGUMENT...` as `subprocess.run` does; None where it has to be started whole."""
        given = text.encode("utf-8", "surrogateescape")
        if len(given) > PIPE or any(name.startswith(AT_START) for name in env):
            return None
        if not self._is_taken.acquire(blocking=False):
            return None
        try:
            pid, out, err = self._fork(command, cwd, env, given)
            try:
                said = read_both(out, err, seconds)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
            finally:
                code = self._number()
            return subprocess.CompletedProcess(list(command), code, *said)
        finally:
            self._is_taken.release()

    def _fork(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], given: bytes) -> tuple[int, int, int]:
        """Start a child. Return its id and what to read its two outputs from."""
        (stdin, to), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
        os.write(to, given)
        os.close(to)
        asked = json.dumps({"code": command[2], "argv": command[3:], "cwd": str(cwd), "env": dict(env)}).encode()
        socket.send_fds(self._channel, [len(asked).to_bytes(4, "big")], [stdin, stdout, stderr])
        self._channel.sendall(asked)
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        return self._number(), out, err

    def _close(self) -> None:
        self._channel.close()
        self._process.wait()

    def _number(self) -> int:
        said = self._channel.recv(4, socket.MSG_WAITALL)
        assert len(said) == 4, "the process that has the program loaded is gone"
        return int.from_bytes(said, "big", signed=True)


def read_both(out: int, err: int, seconds: float) -> list[str]:
    """Read two pipes to their ends and close them."""
    until = time.monotonic() + seconds
    read = {out: bytearray(), err: bytearray()}
    with selectors.DefaultSelector() as waiting:
        for descriptor in read:
            waiting.register(descriptor, selectors.EVENT_READ)
        try:
            while waiting.get_map():
                if (left := until - time.monotonic()) < 0:
                    raise TimeoutError
                for key, _ in waiting.select(left):
                    if data := os.read(key.fd, 65_536):
                        read[key.fd] += data
                    else:
                        waiting.unregister(key.fd)
        finally:
            for descriptor in read:
                os.close(descriptor)
    return [data.decode().replace("\r\n", "\n").replace("\r", "\n") for data in read.values()]


def serve(descriptor: int) -> str:
    """Fork what is asked for over a socket, until it is closed. In a child: return the code that it is to run."""
    for module in pkgutil.walk_packages(codeloop.__path__, "codeloop."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as channel:
        while True:
            length, given, _, _ = socket.recv_fds(channel, 4, 3)
            if not length:
                return ""
            asked = json.loads(channel.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL))
            pid = os.fork()
            if pid == 0:
                break
            for each in given:
                os.close(each)
            channel.sendall(pid.to_bytes(4, "big", signed=True))
            status = os.waitpid(pid, 0)[1]
            channel.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    become(given, asked["argv"], asked["cwd"], asked["env"])
    return asked["code"]


def become(given: Sequence[int], argv: list[str], cwd: str, env: Mapping[str, str]) -> None:
    """Make this process what `python -c` would be, with these descriptors as its stdin, stdout and stderr."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, each in enumerate(given):
        os.dup2(each, number)
        os.close(each)
    os.chdir(cwd)
    own = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}  # as the interpreter set it
    os.environ.clear()
    os.environ.update({**env, **own})
    sys.argv = ["-c", *argv]
