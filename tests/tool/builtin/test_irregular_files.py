"""Every file tool refuses what is no regular file at once, by its kind: pipes, sockets, devices,
link loops.
"""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from codeloop.tool.builtin.files.apply_patch import PatchParams, apply_patch
from codeloop.tool.builtin.files.edit import EditParams, edit
from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.builtin.files.write import WriteParams, write
from codeloop.tool.builtin.search.grep import GrepParams, grep
from codeloop.tool.tool import ToolFailure
from tests.tool.context import make_context

KINDS = {
    "pipe": "a named pipe",
    "socket": "a socket",
    "device": "a device",
    "loop": "a symbolic link that leads nowhere|Too many levels of symbolic links",
}
UPDATE = "*** Begin Patch\n*** Update File: {}\n@@\n-old\n+new\n*** End Patch"
ADD = "*** Begin Patch\n*** Add File: {}\n+new\n*** End Patch"
DELETE = "*** Begin Patch\n*** Delete File: {}\n*** End Patch"


def make_files(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        # The path of a socket is short.
        os.chdir(folder)
        server.bind("socket")
        os.chdir(here)
    (folder / "device").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")


def list_calls(name: str) -> list[tuple[Any, Any]]:
    return [
        (read, ReadParams(file_path=name)),
        (write, WriteParams(file_path=name, content="new\n")),
        (edit, EditParams(file_path=name, old_string="old", new_string="new")),
        (edit, EditParams(file_path=name, old_string="", new_string="new")),
        *(
            (apply_patch, PatchParams(patch_text=text.format(name)))
            for text in (UPDATE, ADD, DELETE)
        ),
        (grep, GrepParams(pattern="old", path=name)),
    ]


@pytest.mark.parametrize("name", KINDS)
async def test_what_is_no_regular_file_is_refused_by_its_kind(tmp_path: Path, name: str) -> None:
    context = make_context(tmp_path)
    make_files(context.workspace.directory)
    async with asyncio.timeout(60):
        for tool, params in list_calls(name):
            with pytest.raises(ToolFailure, match=KINDS[name]):
                await tool.run(params, context)


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="there is no such file here")
async def test_a_file_that_would_keep_its_reader_waiting_is_refused(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    for tool, params in (
        (write, WriteParams(file_path="/proc/kmsg", content="new\n")),
        (edit, EditParams(file_path="/proc/kmsg", old_string="", new_string="new")),
    ):
        with pytest.raises(ToolFailure, match=r"unavailable|permission denied|exists"):
            await tool.run(params, context)
