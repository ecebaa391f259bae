"""A conversation from its beginning to its end: the terminal, and the project or server that it works with."""

import asyncio
import os
import sys

from codeloop.cli.chat.conversation import Conversation
from codeloop.cli.chat.input import Plain, Typing
from codeloop.cli.chat.line_editor import Editor
from codeloop.cli.output.streams import Outlet, Output, standard
from codeloop.cli.run.options import Options
from codeloop.cli.target.target import Reach


async def converse(options: Options, reach: Reach) -> int:
    """Hold a conversation as the flags say and return the exit code. Raises CodeloopError when it can't begin."""
    outlet = Outlet(asyncio.get_running_loop())
    stdout, stderr = standard(outlet)
    typing, outputs = _typing(stdout, stderr)
    try:
        async with reach(options, typing.terminal) as reached:
            code = await Conversation(reached, options, outputs, typing).run()
            await outlet.drain()
            return code
    finally:
        outlet.abandon()


def _typing(stdout: Output, stderr: Output) -> tuple[Typing, tuple[Output, Output]]:
    """Return where lines come from, and where answers and notes go: a terminal takes both, in their order."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return Plain(stdout, None), (stdout, stderr)
    if os.environ.get("TERM", "dumb") == "dumb":
        return Plain(stdout, stdout), (stdout, stdout)
    return Editor(stdout), (stdout, stdout)
