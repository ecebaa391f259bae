"""A host with a real program: extensions are files of a temporary folder,
what it says to people is recorded.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.extend.host.extension import CallListener, Language
from codeloop.extend.host.host import ExtensionHost
from codeloop.extend.host.host_callbacks import ProcessCallbacks
from codeloop.extend.host.protocol import (
    VERSION,
    AskHook,
    CallOrigin,
    CallTool,
    ExtensionOffer,
    HostHello,
    LoadSpec,
    OperationCall,
    ToolAnswer,
)
from codeloop.extend.host.runtimes import find_host_command
from codeloop.kit.child_process import Launch
from codeloop.kit.program import Program
from codeloop.schema.bounds.extension import HOST_START
from codeloop.schema.limits import MCP_STOP
from codeloop.schema.wire import JSON, replace
from codeloop.workspace.workspace import Workspace

PLACE = CallOrigin("ses_1", "msg_1", "call_1", "build", "/", "/")


@dataclass
class HostWorld:
    """A host. `log`: what it wrote to its log, in order; `warned`: what a person was told;
    `asked`: of our API.
    """

    folder: Path
    workspace: Workspace
    log: list[str] = field(default_factory=list[str])
    warned: list[str] = field(default_factory=list[str])
    taken: list[int | None] = field(default_factory=list["int | None"])
    asked: list[OperationCall] = field(default_factory=list[OperationCall])
    command: tuple[str, ...] = ()
    failure: Exception | None = None
    """What an operation of our API raises."""
    host: ExtensionHost = field(init=False)

    def write(self, name: str, text: str) -> LoadSpec:
        """Write an extension's file: a plugin when its name begins with `plugin`, else tools."""
        file = self.folder / name
        file.write_text(text, encoding="utf-8")
        return LoadSpec(
            name, str(file), "plugin" if name.startswith("plugin") else "tool", {"colour": "red"}
        )

    async def offer(self, extension: LoadSpec) -> ExtensionOffer:
        return await self.host.load(extension)

    async def call(
        self,
        extension: LoadSpec,
        tool: str,
        given: JSON | None = None,
        *,
        seconds: float = 60,
        listener: CallListener | None = None,
    ) -> ToolAnswer:
        """Call a tool."""
        made = partial(_call, extension.name, tool, given or {})
        return msgspec.convert(await self.host.ask(extension, made, seconds, listener), ToolAnswer)

    async def hook(
        self, extension: LoadSpec, name: str, given: JSON, output: JSON, seconds: float = 60
    ) -> Any:
        """Ask an extension at a hook."""

        def made(number: int) -> AskHook:
            return AskHook(number, extension.name, name, given, output)

        return await self.host.ask(extension, made, seconds)


def _call(extension: str, tool: str, given: JSON, number: int) -> CallTool:
    return CallTool(number, extension, tool, given, PLACE)


async def until(holds: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def host_world(
    folder: Path, *command: str, language: Language = "python", version: int = VERSION
) -> AsyncGenerator[HostWorld]:
    """Open a host; it has ended afterwards, with all that it started.
    `command`: instead of the real program's.
    """
    root = folder / "work"
    root.mkdir()
    workspace = Workspace(
        root, root, folder / "scratch", {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    )
    world = HostWorld(
        folder, workspace, command=command or find_host_command(language, workspace.environment)
    )

    async def start() -> Program:
        launch = Launch(world.command, root, workspace.environment, {})

        def log(data: bytes) -> None:
            world.log.append(data.decode())

        return await workspace.program_sandboxes.open(
            launch, None, log, channel_variable="CODELOOP_HOST_FD"
        )

    async def serve(call: OperationCall) -> Any:
        world.asked.append(call)
        if world.failure is not None:
            raise world.failure
        return {"answered": call.operation}

    hello = HostHello(version, str(root), str(root), {"id": "p"})
    house = ProcessCallbacks(
        language, start, hello, world.log.append, world.warned.append, serve, world.taken.append
    )
    world.host = ExtensionHost(house)
    with pytest.MonkeyPatch.context() as patch:
        # Where much else runs, Python may take long to start,
        # and the exit code of a program may come late.
        patch.setattr("codeloop.extend.host.host.HOST_START", replace(HOST_START, value=60_000))
        patch.setattr(
            "codeloop.workspace.process.program_sandboxes.MCP_STOP", replace(MCP_STOP, value=60_000)
        )
        try:
            yield world
        finally:
            await world.host.close()
            await workspace.close()
