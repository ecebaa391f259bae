import asyncio
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from codeloop.extend.hooks.hooks import ExtensionRaised, HookFailed
from codeloop.extend.host.protocol import (
    CallProgress,
    EventBatch,
    HostQuestion,
    LoadSpec,
    OfferedHook,
    OfferedTool,
    encode_line,
)
from codeloop.kit.limit import Limit
from codeloop.schema.errors import OperationError
from tests.extend.host.world import host_world, until
from tests.support.scripted_project import advance_clock

TOOLS = '''
import os, sys, threading, time

print("noise on stdout", flush=True)
os.write(1, b'{"type":"result","id":1,"value":{}}\\n')

async def weather(city: str, ctx) -> str:
    """Tell the weather.

    Args:
        city: Which one.
    """
    ctx.report(title="looking", metadata={"at": city})
    found = await ctx.operation("session.list", query={"limit": 1})
    return f"sunny in {city} for {ctx.session_id}, {ctx.options['colour']}, {found['answered']}"

def sized(size: int) -> dict:
    return {"output": "x" * size, "title": "big"}

def talking(size: int, ctx):
    ctx.report(title="x" * size)

async def hanging(ctx):
    ctx.wait(ctx.ask("deploy"))

def asking(ctx):
    ctx.wait(ctx.ask("deploy", ["prod"], always=["*"]))
    return "deployed"

def failing():
    raise ValueError("there is no rain")

def leaving():
    sys.exit(3)

async def blocking(ctx):
    open(os.path.join(os.getcwd(), "began"), "w").close()
    time.sleep(600)

async def waiting(ctx):
    import asyncio
    open(os.path.join(os.getcwd(), "began"), "w").close()
    try:
        await asyncio.sleep(600)
    finally:
        open(os.path.join(os.getcwd(), "ended"), "w").close()

def dying():
    os._exit(5)

def shapeless():
    return object()

def _private():
    pass
'''


@pytest.mark.slow
async def test_tools_of_a_file_are_offered_called_and_bounded(tmp_path: Path) -> None:
    async with host_world(tmp_path) as world:
        tools = world.write("weather.py", TOOLS)
        offer = await world.offer(tools)
        names = [
            "weather",
            "sized",
            "talking",
            "hanging",
            "asking",
            "failing",
            "leaving",
            "blocking",
            "waiting",
        ]
        assert [tool.name for tool in offer.tools] == [*names, "dying", "shapeless"]
        assert offer.tools[0] == OfferedTool(
            "weather",
            "Tell the weather.",
            {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "Which one."}},
                "required": ["city"],
            },
        )
        heard = Listener()
        answer = await world.call(tools, "weather", {"city": "Oslo"}, listener=heard)
        assert answer.output == "sunny in Oslo for ses_1, red, session.list"
        assert heard.reports == [("looking", {"at": "Oslo"})]
        assert [(each.operation, each.query) for each in world.asked] == [
            ("session.list", {"limit": 1})
        ]
        assert "noise on stdout" in "".join(world.log)
        with pytest.raises(HookFailed, match=r"Expected `str`.*It takes weather\(city: string\)"):
            await world.call(tools, "weather", {"city": 3})
        with pytest.raises(ExtensionRaised, match="there is no rain") as raised:
            await world.call(tools, "failing")
        assert raised.value.name == "ValueError"
        assert raised.value.trace.count("File ") == 1, raised.value.trace
        with pytest.raises(ExtensionRaised, match="end of the program"):
            await world.call(tools, "leaving")
        with pytest.raises(ExtensionRaised, match="not object"):
            await world.call(tools, "shapeless")
        with pytest.raises(HookFailed, match="no tool snow"):
            await world.call(tools, "snow")
        with pytest.raises(HookFailed, match=r"it gave 51,0.* a message holds 50,000,000"):
            await world.call(tools, "sized", {"size": 51_000_000})
        with pytest.raises(ExtensionRaised, match="a message holds 50,000,000"):
            await world.call(tools, "talking", {"size": 51_000_000})
        with pytest.raises(ExtensionRaised, match="Use `await` in this one"):
            await world.call(tools, "hanging")
        assert (await world.call(tools, "sized", {"size": 10})).output == "x" * 10
        assert world.taken == [None], "it was started once"


class Listener:
    """Hears of a call. `refuses`: what it says to a question."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.reports: list[tuple[str | None, Any]] = []
        self.questions: list[HostQuestion] = []

    async def ask(self, question: HostQuestion) -> None:
        self.questions.append(question)
        if self.refuses:
            raise OperationError("BadRequest", self.refuses)

    def report(self, progress: CallProgress) -> None:
        self.reports.append((progress.title, progress.metadata))


async def test_a_tool_asks_and_reads_a_refusal(tmp_path: Path) -> None:
    async with host_world(tmp_path) as world:
        tools = world.write("weather.py", TOOLS)
        heard = Listener()
        assert (await world.call(tools, "asking", listener=heard)).output == "deployed"
        question = heard.questions[0]
        assert (question.permission, question.patterns, question.always) == (
            "deploy",
            ("prod",),
            ("*",),
        )
        with pytest.raises(ExtensionRaised, match="not today"):
            await world.call(tools, "asking", listener=Listener("not today"))


class SlowListener(Listener):
    """Leaves questions open, until they are withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self.withdrawn = 0

    async def ask(self, question: HostQuestion) -> None:
        self.questions.append(question)
        try:
            await asyncio.Event().wait()
        finally:
            self.withdrawn += 1


async def test_the_question_of_a_call_is_withdrawn_with_it(tmp_path: Path) -> None:
    async with host_world(tmp_path) as world:
        tools = world.write("weather.py", TOOLS)
        heard = SlowListener()
        call = asyncio.create_task(world.call(tools, "asking", listener=heard))
        await until(lambda: heard.questions)
        call.cancel()
        await until(lambda: heard.withdrawn)
        await until(lambda: not world.host.is_busy)


async def test_a_call_has_its_time_besides_what_a_person_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pondering(Listener):
        """Allows everything, in more time than a call has."""

        async def ask(self, question: HostQuestion) -> None:
            advance_clock(monkeypatch, 3_600)
            await asyncio.sleep(0.05)

    async with host_world(tmp_path) as world:
        tools = world.write("weather.py", TOOLS)
        assert (await world.call(tools, "asking", listener=Pondering())).output == "deployed"


async def test_an_operation_that_fails_unexpectedly_is_answered(tmp_path: Path) -> None:
    async with host_world(tmp_path) as world:
        world.failure = ValueError("nobody thought of this")
        with pytest.raises(
            ExtensionRaised, match=r"session\.list failed: ValueError: nobody thought of this"
        ):
            await world.call(world.write("weather.py", TOOLS), "weather", {"city": "Oslo"})


async def test_a_call_that_can_not_be_written_leaves_the_host_idle(tmp_path: Path) -> None:
    async with host_world(tmp_path) as world:
        tools = world.write("weather.py", TOOLS)
        with pytest.raises(HookFailed, match="can't be written as JSON"):
            await world.call(tools, "sized", {"size": object()})
        assert not world.host.is_busy


async def test_a_host_that_dies_is_idle_whatever_did_not_stop_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeloop.extend.host.host.HOST_STOP", Limit("host.stop", 10, "ms", ""))
    async with host_world(tmp_path) as world:
        tools, other = world.write("weather.py", TOOLS), world.write("other.py", TOOLS)
        began = world.workspace.root / "began"
        held = asyncio.create_task(world.call(other, "waiting"))
        await until(began.exists)
        began.unlink()
        blocked = asyncio.create_task(world.call(tools, "blocking"))
        await until(began.exists)
        blocked.cancel()
        await until(lambda: any("does not stop" in line for line in world.log))
        with pytest.raises(HookFailed, match="exit code 5"):
            await world.call(other, "dying")
        with pytest.raises(HookFailed, match="exit code 5"):
            await held
        assert not world.host.is_busy


@pytest.mark.slow
async def test_an_extension_that_blocks_keeps_no_other_from_working_and_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with host_world(tmp_path) as world:
        tools, other = (
            world.write("weather.py", TOOLS),
            world.write("other.py", "def fine() -> str:\n    return 'ok'\n"),
        )
        await world.offer(other)
        blocked = asyncio.create_task(world.call(tools, "blocking", seconds=600))
        await until((world.workspace.root / "began").exists)
        assert (await world.call(other, "fine")).output == "ok"
        advance_clock(monkeypatch, 600)
        with pytest.raises(HookFailed, match=r"did not answer in 600 s"):
            await blocked
        await until(lambda: world.warned)
        assert "an extension in it did not stop working" in world.warned[0]
        assert (await world.call(other, "fine")).output == "ok"
        assert world.taken == [None, None], "it was started anew"


async def test_a_cancelled_call_is_ended_in_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeloop.extend.host.host.HOST_STOP", Limit("host.stop", 60_000, "ms", ""))
    async with host_world(tmp_path) as world:
        tools = world.write("weather.py", TOOLS)
        await world.offer(tools)
        call = asyncio.create_task(world.call(tools, "waiting"))
        await until((world.workspace.root / "began").exists)
        call.cancel()
        await until((world.workspace.root / "ended").exists)
        await until(lambda: not world.host.is_busy)
        assert not world.warned


@pytest.mark.slow
async def test_a_host_that_dies_is_started_again_with_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "codeloop.extend.host.back_off.time", SimpleNamespace(monotonic=lambda: 0.0)
    )
    async with host_world(tmp_path) as world:
        tools = world.write("weather.py", TOOLS)
        for _ in range(3):
            with pytest.raises(HookFailed, match="exit code 5"):
                await world.call(tools, "dying")
        with pytest.raises(HookFailed, match="has failed 3 times and is started again in 2 s"):
            await world.call(tools, "sized", {"size": 1})
        assert len(world.warned) == 3


PLUGIN = """
from codeloop.extension import Context, hook, tool

@hook("tool.execute.before", policy=True)
async def guard(input, output, ctx: Context):
    if output["args"].get("command") == "rm":
        raise PermissionError("rm is not done here")
    output["args"]["seen"] = ctx.options["colour"]

@hook("tool.execute.after")
@hook("experimental.text.complete")
def shout(input, output):
    return {"text": output["text"].upper()}

@tool(name="word_count", description="Count words.")
def count(text: str) -> int:
    return len(text.split())

def helper():
    pass
"""


async def test_a_plugin_offers_its_marked_functions(tmp_path: Path) -> None:
    async with host_world(tmp_path) as world:
        plugin = world.write("plugin.py", PLUGIN)
        offer = await world.offer(plugin)
        assert [tool.name for tool in offer.tools] == ["word_count"]
        assert offer.hooks == (
            OfferedHook("tool.execute.before", policy=True),
            OfferedHook("experimental.text.complete"),
            OfferedHook("tool.execute.after"),
        )
        changed = await world.hook(
            plugin, "tool.execute.before", {"tool": "bash"}, {"args": {"command": "ls"}}
        )
        assert changed == {"args": {"command": "ls", "seen": "red"}}
        with pytest.raises(ExtensionRaised, match="rm is not done here"):
            await world.hook(
                plugin, "tool.execute.before", {"tool": "bash"}, {"args": {"command": "rm"}}
            )
        assert await world.hook(plugin, "experimental.text.complete", {}, {"text": "a"}) == {
            "text": "A"
        }
        assert (await world.call(plugin, "word_count", {"text": "a b"})).output == "2"


FOLLOWER = """
import asyncio
from codeloop.extension import hook

@hook("event")
async def follow(event):
    if event["number"] == 1:
        raise ValueError("not this one")
    await asyncio.sleep(0.05 if event["number"] == 0 else 0)
    with open("heard", "a") as file:
        file.write(f"{event['number']} ")
"""


async def test_events_are_heard_in_their_order_and_a_failure_costs_only_its_own(
    tmp_path: Path,
) -> None:
    async with host_world(tmp_path) as world:
        await world.offer(world.write("plugin.py", FOLLOWER))
        for batch in ((0, 1, 2), (3,)):
            world.host.notify(
                encode_line(
                    EventBatch(tuple(msgspec.Raw(b'{"number":%d}' % each) for each in batch))
                )
            )
        await until(lambda: sum(count or 0 for count in world.taken) == 4)
        assert (world.workspace.root / "heard").read_text() == "0 2 3 "
        assert "ValueError: not this one" in "".join(world.log)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("empty.py", "x = 1\n", "it defines no tool: it needs a public function"),
        (
            "plugin_empty.py",
            "def f(): ...\n",
            "neither a tool nor a hook: it needs a function marked",
        ),
        ("broken.py", "def f(:\n", "invalid syntax"),
        ("lost.py", "import nothing_like_this\n", "No module named"),
        ("leaving.py", "import sys\nsys.exit()\n", "end of the program"),
    ],
)
async def test_a_file_that_can_not_be_used_says_why(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    async with host_world(tmp_path) as world:
        with pytest.raises((HookFailed, ExtensionRaised), match=said):
            await world.offer(world.write(name, text))


async def test_what_is_installed_is_imported_by_the_name_of_its_module(tmp_path: Path) -> None:
    async with host_world(tmp_path) as world:
        with pytest.raises(ExtensionRaised, match="No module named 'not_there'"):
            await world.offer(LoadSpec("mine", "not_there.plugin", "plugin"))
        with pytest.raises(HookFailed, match="it needs a function marked"):
            await world.offer(LoadSpec("other", "email.message:Message", "plugin"))


async def test_functions_that_no_model_can_call_are_named_and_left_out(tmp_path: Path) -> None:
    async with host_world(tmp_path) as world:
        offer = await world.offer(world.write("tools.py", "def a(*b): ...\ndef c(): ...\n"))
        assert [tool.name for tool in offer.tools] == ["c"]
        assert len(offer.problems) == 1
        assert "a takes *b" in offer.problems[0]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("s.sendall(b'hello\\n')", "an invalid message"),
        (
            's.sendall(b\'{"type":"ready","version":7,"runtime":"x"}\\n\')',
            "speaks version 7 of the protocol, not 1",
        ),
        ("raise SystemExit(4)", "exit code 4"),
        ("s.sendall(b'x' * 50_100_000)", "a message of more than 50,000,000 bytes"),
    ],
)
async def test_a_program_that_does_not_speak_the_protocol_is_ended(
    tmp_path: Path, program: str, said: str
) -> None:
    begin = (
        "import os, socket, time; s = socket.socket(fileno=int(os.environ['CODELOOP_HOST_FD'])); "
    )
    async with host_world(
        tmp_path, sys.executable, "-c", f"{begin}{program}; time.sleep(60)"
    ) as world:
        with pytest.raises(HookFailed, match=said):
            await world.offer(world.write("tools.py", "def a(): ...\n"))


async def test_a_host_ends_with_us_and_with_what_it_started(tmp_path: Path) -> None:
    text = """
import subprocess, sys
def start() -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
"""
    async with host_world(tmp_path) as world:
        pid = int((await world.call(world.write("tools.py", text), "start")).output)
        assert Path(f"/proc/{pid}").exists() or os.getpgid(pid)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
