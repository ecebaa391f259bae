"""Runs the real program in a home and a directory of its own,
against a model server of this test's own.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tests.support.answers import Answer, Call
from tests.support.fork_server import CLIENT_FILE, ForkServer, is_read_at_start
from tests.support.http_connection import ReceivedRequest
from tests.support.model_server import ModelServer
from tests.support.patient_limits import PATIENT_LIMITS, make_limit_code
from tests.support.sandbox_support import allow_commands

COMMAND = [sys.executable, "-c", "from codeloop.cli.main import main; main()"]
KEY = "sk-test-0123456789abcdefghij"
HANGING = 600.0
"""Seconds after which a program counts as hanging: on a slow machine with other work,
a review takes minutes.
"""
UNCONFINED: dict[str, Any] = {"sandbox": "off", "permission": {"bash": "allow"}}
"""For tests that look at a command's processes: in a sandbox they have other ids."""
Protocol = Literal["openai", "anthropic"]
SEES = {"input": ["text", "image"], "output": ["text"]}
ADAPTER = {"openai": "@ai-sdk/openai-compatible", "anthropic": "@ai-sdk/anthropic"}


def codeloop(
    folder: Path, *arguments: str, stdin: bytes | str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `codeloop` in `folder/work` with its files below `folder/home`;
    no key of the test's own environment.
    """
    return Desk(folder).run(*arguments, stdin=stdin, **environment)


@dataclass(frozen=True)
class Desk:
    """A folder with a project in `work` and our own files in `home`.
    `wrapper` goes before the command.

    `limits`: by their names in `schema/limits.py`, other values (ms, counts) than the rows have
    there; those of `schema/bounds/MODULE.py` by `MODULE.NAME`.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    wrapper: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def command(self) -> list[str]:
        """What starts the program."""
        python, option, _ = COMMAND
        # Set once the program catches signals, and before it loads what uses them: one that came
        # while the limits' own modules are loaded could end the interpreter in any way.
        code = make_limit_code({**PATIENT_LIMITS, **self.limits})
        start = f"program.catch_signals = lambda words: (catch(words), exec({code!r}, {{}})); program.main()"
        load = "from codeloop.cli import main as program; catch = program.catch_signals"
        return [*self.wrapper, python, option, f"{load}; {start}"]

    @property
    def quick_command(self) -> list[str]:
        """What starts the program for little, where that can be: a process that hands
        on signals and ends with it.
        """
        can_fork = (
            not self.wrapper
            and not self.limits
            and not any(map(is_read_at_start, self.environment))
        )
        front = [sys.executable, "-I", "-S", str(CLIENT_FILE), str(loaded().socket), COMMAND[2]]
        return front if can_fork else self.command

    @property
    def work(self) -> Path:
        """The project."""
        path = self.folder / "work"
        path.mkdir(exist_ok=True)
        return path

    @property
    def home(self) -> Path:
        """Our own files."""
        return self.folder / "home"

    def options(self, **environment: str) -> dict[str, Any]:
        """What every process of this desk is started with."""
        base = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CODELOOP_HOME": str(self.home),
        }
        base |= {"CODELOOP_DISABLE_MODELS_FETCH": "1"}
        return {"cwd": self.work, "env": {**base, **self.environment, **environment}}

    def run(
        self, *arguments: str, stdin: bytes | str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        text = stdin.decode("utf-8", "replace") if isinstance(stdin, bytes) else stdin
        command, options = [*self.command, *arguments], self.options(**environment)
        can_fork = not self.wrapper and not self.limits
        forked = [*COMMAND, *arguments]
        if can_fork and (
            done := loaded().run(forked, options["cwd"], options["env"], text, seconds=HANGING)
        ):
            return done
        return subprocess.run(
            command,
            **options,
            input=text,
            capture_output=True,
            text=True,
            timeout=HANGING,
            check=False,
        )

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start the program in a session of its own, without stdin."""
        return subprocess.Popen(
            [*self.command, *arguments],
            **self.options(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def configure(self, **settings: Any) -> None:
        """Write the global configuration."""
        path = self.home / "config" / "codeloop.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))

    def use(self, server: ModelServer, protocol: Protocol = "openai", **more: Any) -> None:
        """Make the server's model the one that is used; `more` is further configuration."""
        options = {"baseURL": server.url, "apiKey": KEY, **more.pop("options", {})}
        cost = {"input": 1.0, "output": 2.0}
        limit = {"context": 200_000, "output": 8_000}
        models = {
            "m": {
                "cost": cost,
                "limit": limit,
                "tool_call": True,
                "attachment": True,
                "modalities": SEES,
            }
        }
        provider = {"npm": ADAPTER[protocol], "options": options, "models": models}
        self.configure(provider={"local": provider}, model="local/m", **allow_commands(more))

    def database(self) -> Path:
        """The one database there is."""
        (path,) = (self.home / "data").rglob("codeloop.db")
        return path

    def git(self, *arguments: str) -> str:
        """Run git in the project."""
        who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        return subprocess.run(
            ["git", *who, *arguments], cwd=self.work, check=True, capture_output=True, text=True
        ).stdout


@cache
def loaded() -> ForkServer:
    """Return the process that forks the programs of this one's tests."""
    return ForkServer()


@contextmanager
def serving(
    answers: Sequence[Answer] | Callable[[ReceivedRequest], Answer], **options: Any
) -> Generator[ModelServer, None, None]:
    """Serve in a thread of its own, so that a test can wait for processes."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = ModelServer(answers, **options)
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(60)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def steps(*answers: Answer, title: str = "A short title") -> Callable[[ReceivedRequest], Answer]:
    """Choose by how many answers the turn already holds, as a real model would;
    the last one serves all that follow.
    """

    def choose(received: ReceivedRequest) -> Answer:
        if b'"tools"' not in received.body:
            return Answer(text=title)
        messages = received.json["messages"]
        last = max(at for at, message in enumerate(messages) if is_prompt(message))
        done = sum(message["role"] == "assistant" for message in messages[last:])
        return answers[min(done, len(answers) - 1)]

    return choose


def one_after_another(
    *answers: Answer, title: str = "A short title"
) -> Callable[[ReceivedRequest], Answer]:
    """Give each request of a turn the next answer; the last one serves all that follow."""
    waiting = list(answers)

    def choose(received: ReceivedRequest) -> Answer:
        if b'"tools"' not in received.body:
            return Answer(text=title)
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return choose


def last_work(server: ModelServer) -> ReceivedRequest:
    """Return the last request of a turn: a program that goes on asks for a title after it."""
    return [received for received in server.requests if b'"tools"' in received.body][-1]


def is_prompt(message: dict[str, Any]) -> bool:
    """Return whether a message is what a person said,
    and neither a result nor how a command ended by itself.
    """
    content: str | list[dict[str, Any]] = message.get("content") or ""
    blocks = [{"text": content}] if isinstance(content, str) else content
    results = any(block.get("type") == "tool_result" for block in blocks)
    # When that is told depends on who is quicker.
    is_told = all(block.get("text", "").startswith("<system-reminder>bash_") for block in blocks)
    return message["role"] == "user" and not results and not is_told


def call(tool: str, /, *, call_id: str = "call_1", **arguments: Any) -> Answer:
    """An answer that makes one call."""
    return Answer(calls=(Call(tool, json.dumps(arguments), call_id),))


def bash(command: str, call_id: str = "call_1") -> Answer:
    """An answer that runs a command."""
    return call("bash", call_id=call_id, command=command, description="Runs it")


def events(stdout: str) -> list[dict[str, Any]]:
    """Read JSON Lines; every line must be one."""
    assert stdout.endswith("\n")
    return [json.loads(line) for line in stdout.splitlines()]


def result(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the last line, which is the result and says what the process's exit code is."""
    last = events(done.stdout)[-1]
    assert last["type"] == "result"
    assert last["exitCode"] == done.returncode
    assert "Traceback" not in done.stderr
    return last


def without_privileges() -> tuple[str, ...]:
    """Return what starts a program that can't write where the mode forbids it,
    also when the tests run as root.
    """
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    assert setpriv, "setpriv (util-linux) is needed to run these tests as root"
    return (
        setpriv,
        "--bounding-set=-dac_override,-dac_read_search",
        "--inh-caps=-dac_override,-dac_read_search",
    )


def lives(pid: int) -> bool:
    """Return whether a process runs; one that has ended and that nobody has collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False
