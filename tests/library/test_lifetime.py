"""What is left when a project is closed: nothing. And what a program may do at once:
several projects, two threads.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import codeloop
import codeloop.sync
from codeloop.model.testing.script import ScriptedAnswer
from tests.library.opened import Open, descriptors, here, opened, script, work
from tests.support.programs import ROOT
from tests.support.scripted_project import make_answer, make_call, make_startup, wait_until

__all__ = ["opened"]
SAYS = ScriptedAnswer(text="It is done.", deltas=3)
SECONDS = f"61.{os.getpid()}"  # workers of pytest look at the same processes
SLEEPS = make_answer(make_call("bash", command=f"sleep {SECONDS}", description="wait"))


def sleeps() -> bool:
    """Return whether the command of `SLEEPS` runs on this machine."""
    found = False
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found = found or path.read_bytes() == f"sleep\0{SECONDS}\0".encode()
    return found


def wait_for_sleep(runs: bool) -> None:
    """Wait until the command of `SLEEPS` runs, or does not any more."""
    deadline = time.monotonic() + 60
    while sleeps() != runs:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
async def test_nothing_is_left_behind(opened: Open, tmp_path: Path) -> None:
    async with opened([SAYS]) as project:  # what is loaded and opened once in a process
        await project.ask("hello")
    tasks, files = asyncio.all_tasks(), descriptors()
    async with opened([SLEEPS, SAYS], profile="yolo") as project:
        session = await project.session()
        asking = asyncio.create_task(session.ask("wait"))
        await wait_until(sleeps)
        abandoned = (await project.session()).stream("never read to its end")
        async for _ in abandoned:
            break
    with pytest.raises(codeloop.CodeloopError, match="closed while the turn ran"):
        await asking
    await abandoned.aclose()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == tasks
    assert descriptors() - files == set()
    await wait_until(lambda: not sleeps())  # what was killed ends when it gets a core


SILENT = """
import asyncio, sys
from pathlib import Path
import codeloop
from codeloop.model.testing.script import ScriptedAnswer
from tests.library.opened import here
from tests.support.scripted_project import make_answer, make_call

def fails() -> None:
    '''Fail.'''
    raise ValueError("out of order")

async def main() -> None:
    answers = [make_answer(make_call("fails")), ScriptedAnswer(text="Too bad.")]
    async with here(Path(sys.argv[1]), answers, tools=[fails]) as project:
        print(await project.ask("go"))

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_function_that_raises_prints_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SILENT, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("Too bad.\n", "", 0)


async def test_two_projects_are_open_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with (
        here(tmp_path / "a", [ScriptedAnswer(text="in a", delay_ms=5, deltas=3)]) as first,
        here(tmp_path / "b", [ScriptedAnswer(text="in b", delay_ms=5, deltas=3)]) as second,
        here(tmp_path / "b", [ScriptedAnswer(text="in b again")]) as third,
    ):
        given = await asyncio.gather(first.ask("where?"), second.ask("where?"), third.ask("where?"))
        assert [answer.text for answer in given] == ["in a", "in b", "in b again"]
        assert len(await third.sessions()) == 2


async def test_without_asyncio_also_where_a_loop_runs(tmp_path: Path) -> None:
    start = make_startup(tmp_path / "home", work(tmp_path))
    path = script(tmp_path, [make_answer(make_call("twice", number=4)), SAYS, SAYS, SAYS])
    seen: list[str] = []

    def twice(number: int) -> int:
        """Double a number."""
        return 2 * number

    with codeloop.sync.open(
        start.directory, replay=path, environment=start.environment, tools=[twice]
    ) as project:
        session = project.session(title="From a notebook")
        answer = session.ask("what is twice four?")
        assert (answer.text, answer.tools[0].output) == ("It is done.", "8")
        for event in session.stream("again"):
            match event:
                case codeloop.TextAdded(text=text):
                    seen.append(text)
                case _:
                    pass
        for _ in session.stream("and again"):
            break
        assert project.last().id == session.id
        assert [each.role for each in session.messages()][:2] == ["user", "assistant"]
    assert "".join(seen) == "It is done."


@pytest.mark.slow
def test_ctrl_c_ends_a_program_and_all_that_it_started(tmp_path: Path) -> None:
    start = make_startup(tmp_path / "home", work(tmp_path))
    program = (
        "import codeloop.sync, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with codeloop.sync.open('.', replay=sys.argv[1], profile='yolo', environment={'CODELOOP_HOME': sys.argv[2],"
        " 'PATH': '/usr/local/bin:/usr/bin:/bin', 'HOME': sys.argv[2]}) as project:\n"
        "    project.ask('wait')\n"
    )
    command = [
        sys.executable,
        "-X",
        "dev",
        "-c",
        program,
        str(script(tmp_path, [SLEEPS])),
        str(tmp_path / "home"),
    ]
    with subprocess.Popen(
        command, cwd=start.directory, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for_sleep(True)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in said
    assert "was destroyed" not in said
    assert "never awaited" not in said
    wait_for_sleep(False)


async def test_a_project_whose_block_has_ended_says_so(opened: Open) -> None:
    async with opened([SAYS]) as project:
        session = await project.session()
    for use in (project.session, project.sessions, project.last, session.messages):
        with pytest.raises(codeloop.ProjectClosed, match="open it again"):
            await use()
    with pytest.raises(codeloop.ProjectClosed):
        await session.ask("still there?")
    with pytest.raises(codeloop.ProjectClosed):
        project.client.follow()


def test_another_framework_s_loop_is_told_that_asyncio_is_needed(tmp_path: Path) -> None:
    """A coroutine is driven here as trio drives it: asyncio runs no loop."""
    for opening in (codeloop.open(tmp_path), codeloop.connect("http://127.0.0.1:9")):
        with pytest.raises(codeloop.CodeloopError, match=r"codeloop\.sync"):
            opening.__aenter__().send(None)


async def test_what_can_not_be_opened_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(codeloop.CodeloopError, match=r"nowhere does not exist. Correct the name"):
        async with codeloop.open(tmp_path / "nowhere"):
            pass
    (tmp_path / "notes").touch()
    with pytest.raises(codeloop.CodeloopError, match=r"notes is a file. Correct the name"):
        async with codeloop.open(tmp_path / "notes"):
            pass
    with pytest.raises(
        codeloop.CodeloopError, match=r"aaa can't be opened: File name too long. Correct the name"
    ):
        async with codeloop.open(tmp_path / ("a" * 300)):
            pass
    with pytest.raises(codeloop.CodeloopError, match=r"Start a server there \(`codeloop serve`\)"):
        async with codeloop.connect("http://127.0.0.1:1"):
            pass
    with pytest.raises(codeloop.CodeloopError, match="exclude each other"):
        async with codeloop.open(tmp_path, record=tmp_path / "a", replay=tmp_path / "b"):
            pass


def test_importing_it_loads_next_to_nothing_and_its_names_are_those_of_the_stub() -> None:
    program = (
        "import sys; before = set(sys.modules); import codeloop; print(*sorted(set(sys.modules) - before));"
        "from codeloop import *; print(*sorted(name for name in dir() if name != 'before'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    loaded, names = done.stdout.splitlines()
    assert loaded.split() == ["codeloop", "codeloop.kit", "codeloop.kit.lazy"]
    stub = Path(str(codeloop.__file__)).with_suffix(".pyi").read_text()
    listed = stub[stub.index("__all__") :]
    assert set(dir(codeloop)) == {line.strip(' ",') for line in listed.splitlines()[1:-1]}
    assert {"open", "connect", "sync", "Answer"} <= set(names.split())
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        getattr(codeloop, "opne".lower())
