"""A program in `tool/` is a tool: in any language, described by `--schema`,
called by JSON on its input.
"""

import asyncio
import contextlib
import os
from functools import partial
from pathlib import Path

import pytest

from codeloop.extend.hooks.hooks import ExtensionRaised, HookFailed
from codeloop.extend.host.protocol import LoadSpec
from tests.extend.host.world import host_world, until

SCHEMA = '{"description": "Say words.", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}'
PROGRAM = f"""#!/bin/sh
if [ "$1" = --schema ]; then echo '{SCHEMA}'; exit; fi
read -r given
case $given in
*fail*) echo "no such word" >&2; exit 3;;
*wait*) sleep 77 & echo $! > "$(dirname "$0")/pid"; wait;;
*whole*) echo '{{"title": "T", "output": "O", "metadata": {{"x": 1}}}}';;
*) echo "got $given in $CODELOOP_SESSION_ID";;
esac
"""


def written(folder: Path, text: str = PROGRAM) -> LoadSpec:
    file = folder / "say.sh"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    return LoadSpec("say.sh", str(file), "tool", None)


async def test_a_program_is_described_called_and_ended(tmp_path: Path) -> None:
    async with host_world(tmp_path) as it:
        say = written(it.folder)
        (tool,) = (await it.offer(say)).tools
        assert (tool.name, tool.description, list(tool.parameters["properties"])) == (
            "say",
            "Say words.",
            ["word"],
        )
        assert (await it.call(say, "say", {"word": "hi"})).output == 'got {"word":"hi"} in ses_1'
        whole = await it.call(say, "say", {"word": "whole"})
        assert (whole.title, whole.output, whole.metadata) == ("T", "O", {"x": 1})
        with pytest.raises(HookFailed, match=r"no such word \(exit code 3\)"):
            await it.call(say, "say", {"word": "fail"})
        waiting = asyncio.create_task(it.call(say, "say", {"word": "wait"}))
        await until(lambda: (it.folder / "pid").exists() and (it.folder / "pid").read_text())
        waiting.cancel()
        child = int((it.folder / "pid").read_text())
        await until(partial(is_gone, child))
        with contextlib.suppress(asyncio.CancelledError):
            await waiting


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/sh\necho hello\n", "for --schema it has to print one JSON object"),
        (
            '#!/bin/sh\nprintf \'{"description": "\\377"}\'\n',
            "for --schema it has to print one JSON object",
        ),
        (
            '#!/bin/sh\necho \'{"description": "d", "parameters": {}}\'\n',
            "JSON Schema of an object",
        ),
        ("#!/bin/sh\necho broken >&2; exit 2\n", "broken"),
        ("#!/nowhere\n", "can't be started"),
    ],
)
async def test_what_answers_no_schema_is_said(tmp_path: Path, text: str, why: str) -> None:
    async with host_world(tmp_path) as it:
        with pytest.raises((HookFailed, ExtensionRaised), match=why):
            await it.offer(written(it.folder, text))


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
        return "State:\tZ" in Path(f"/proc/{process}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):  # the process may end before its state is read
        return True
