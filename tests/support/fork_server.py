"""Starts the program cheaply: as a real process that is forked from one in which
the whole program is loaded.

The interpreter and the imports are most of the cost of a short command, and the tests start
hundreds. Tests of things that differ in such a child (when modules are loaded, the controlling
terminal, a signal at any moment) start a new interpreter.
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
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module, reload
from pathlib import Path
from typing import Any

import codeloop
from codeloop.kit import fault_injection
from tests.support.patient_limits import PATIENT_LIMITS, make_limit_code

ROOT = Path(__file__).parents[2]
START_PREFIXES = ("LANG", "LC_", "PYTHON", "TZ")
"""Prefixes of variables that the interpreter reads only once."""
CLIENT_FILE = Path(__file__).with_name("fork_client.py")
"""A script that is started in place of the program;
its arguments name the code that the forked child runs.
"""
MAX_INPUT_BYTES = 16_000
"""So many bytes fit into a pipe whose other end nobody reads yet;
with more, the write would block.
"""


class ForkServer:
    """A process in which the program is loaded. It forks children, also concurrently,
    until this process ends.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="codeloop-", ignore_cleanup_errors=True)
        self.socket = Path(self._folder.name) / "loaded"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.socket))
            listener.listen(64)
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    f"from tests.support.fork_server import serve_forks; exec(serve_forks({listener.fileno()}))",
                ],
                cwd=ROOT,
                env={
                    name: value
                    for name, value in os.environ.items()
                    if not name.startswith(START_PREFIXES)
                },
                # The server ends when this pipe is closed, also if this process is killed.
                stdin=subprocess.PIPE,
                # Not a terminal, to which Python would write line by line.
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )
        atexit.register(self._close)

    def run(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], text: str, seconds: float
    ) -> subprocess.CompletedProcess[str] | None:
        """Run `python -c CODE ARGUMENT...` as `subprocess.run` does;
        None: that needs a new interpreter.
        """
        given = text.encode("utf-8", "surrogateescape")
        if len(given) > MAX_INPUT_BYTES or any(map(is_read_at_start, env)):
            return None
        (stdin, to), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
        os.write(to, given)
        os.close(to)
        asked = json.dumps(
            {"code": command[2], "argv": command[3:], "cwd": str(cwd), "env": dict(env)}
        ).encode()
        with socket.socket(socket.AF_UNIX) as channel:
            channel.connect(str(self.socket))
            socket.send_fds(channel, [len(asked).to_bytes(4, "big")], [stdin, stdout, stderr])
            channel.sendall(asked)
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)
            receive_number(channel)
            said = read_outputs(out, err, seconds)
            return subprocess.CompletedProcess(list(command), receive_number(channel), *said)

    def _close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def is_read_at_start(name: str) -> bool:
    """Return whether a variable is read only once, so that a forked child would not use it."""
    return name.startswith(START_PREFIXES)


def receive_number(channel: socket.socket) -> int:
    """Return the next number that a channel receives: the child's process id,
    then its exit code.
    """
    said = channel.recv(4, socket.MSG_WAITALL)
    assert len(said) == 4, "the process that has the program loaded is gone"
    return int.from_bytes(said, "big", signed=True)


def read_outputs(out: int, err: int, seconds: float) -> list[str]:
    """Read two pipes to their ends and close them. Raises TimeoutError after `seconds`."""
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


def serve_forks(descriptor: int) -> str:
    """Fork a child for each request to a socket, until stdin ends.
    In a child, return the code that it has to run.
    """
    exec(make_limit_code(PATIENT_LIMITS))
    for module in pkgutil.walk_packages(codeloop.__path__, "codeloop."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    # A collection in a child would write to the pages that it shares with this process.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, socket.socket] = {}
    with socket.socket(fileno=descriptor) as listener, selectors.DefaultSelector() as waiting:
        for source in (sys.stdin.fileno(), ended, listener):
            waiting.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fd == sys.stdin.fileno():
                    for pid in children:
                        os.kill(pid, signal.SIGKILL)
                    return ""
                if key.fd == ended:
                    os.read(ended, 512)
                elif key.fileobj is listener:
                    if (request := accept_request(listener)) is None:
                        continue
                    channel, asked, given = request
                    pid = os.fork()
                    if pid == 0:
                        signal.set_wakeup_fd(-1)
                        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                        waiting.close()
                        for each in (
                            ended,
                            wake,
                            *(other.detach() for other in (channel, *children.values())),
                        ):
                            os.close(each)
                        set_up_child(given, asked["argv"], asked["cwd"], asked["env"])
                        return asked["code"]
                    for each in given:
                        os.close(each)
                    children[pid] = channel
                    send_number(channel, pid)
                    waiting.register(channel, selectors.EVENT_READ, pid)
                elif key.data in children:  # the process that requested it has ended
                    os.kill(key.data, signal.SIGKILL)
                    waiting.unregister(key.fileobj)
            report_ended(children, waiting)


def accept_request(
    listener: socket.socket,
) -> tuple[socket.socket, dict[str, Any], list[int]] | None:
    """Accept a request; return its connection, its content, and the descriptors for the child.

    None: the process that was about to request a child has been killed.
    """
    channel, _ = listener.accept()
    length, given, _, _ = socket.recv_fds(channel, 4, 3)
    size = int.from_bytes(length, "big")
    content = channel.recv(size, socket.MSG_WAITALL)
    if not size or len(content) < size:
        for each in (channel.detach(), *given):
            os.close(each)
        return None
    return channel, json.loads(content), given


def report_ended(children: dict[int, socket.socket], waiting: selectors.BaseSelector) -> None:
    """Send the exit codes of the children that have ended to the processes that requested them."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        channel = children.pop(pid)
        if channel in waiting.get_map():
            waiting.unregister(channel)
        send_number(channel, os.waitstatus_to_exitcode(status))
        channel.close()


def send_number(channel: socket.socket, number: int) -> None:
    """Send a number, unless the receiver has ended."""
    with suppress(OSError):
        channel.sendall(number.to_bytes(4, "big", signed=True))


def set_up_child(given: Sequence[int], argv: list[str], cwd: str, env: Mapping[str, str]) -> None:
    """Set this process up like `python -c`, with these descriptors as its stdin,
    stdout and stderr.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, each in enumerate(given):
        os.dup2(each, number)
        os.close(each)
    os.chdir(cwd)
    # The interpreter sets LC_CTYPE when it starts; a new one would set it, too.
    own = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}
    os.environ.clear()
    os.environ.update({**env, **own})
    # Reads its variable at the import; all others use what it has by the module's name.
    if fault_injection.FAULT_VARIABLE in env:
        reload(fault_injection)
    sys.argv = ["-c", *argv]
