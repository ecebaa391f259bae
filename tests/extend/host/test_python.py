"""The host of Python extensions keeps the contract of hosts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.extend.host.runtimes import find_host_command
from tests.support.host_contract import CONTRACT, Extensions, Host

TOOLS = '''
import asyncio


async def greet(name: str, ctx, times: int = 1) -> str:
    """Greet somebody."""
    ctx.report(title="greeting")
    await ctx.ask("greet", [name], always=["*"])
    return f"hello {name} x{times} in {ctx.directory}"


async def waits() -> None:
    await asyncio.Event().wait()


def structured() -> dict:
    print('{"type":"result","id":1,"value":"noise"}', flush=True)
    return {"title": "T", "output": "O", "metadata": {"x": 1}}


def fails() -> None:
    raise RuntimeError("broken")


def long() -> str:
    return "x" * 60_000_000
'''

PLUGIN = """
from codeloop.extension import hook, tool


@hook("event")
def follow(event):
    pass


@hook("tool.execute.before")
async def guard(input, output, ctx):
    if input["tool"] == "bad":
        raise PermissionError("not this one")
    output["args"]["seen"] = await ctx.operation("session.list")


@tool
async def look(ctx):
    return await ctx.operation("session.get", path={"sessionID": "ses_1"})
"""


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Callable[[Host, Extensions], None], tmp_path: Path) -> None:
    tools, plugin = tmp_path / "say.py", tmp_path / "guard.py"
    tools.write_text(TOOLS, encoding="utf-8")
    plugin.write_text(PLUGIN, encoding="utf-8")
    with Host(find_host_command("python", {}), tmp_path) as host:
        check(host, Extensions(tools, plugin))
