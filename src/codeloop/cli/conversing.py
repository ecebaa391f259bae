"""A conversation from its beginning to its end: the terminal, the server, and what is told when there is none."""

import asyncio
import os
import sys

from codeloop.cli.conversation import Conversation
from codeloop.cli.editor import Editor
from codeloop.cli.lines import Plain, Typing
from codeloop.cli.output import Outlet, Output, standard
from codeloop.cli.run import Options
from codeloop.cli.there import there


async def converse(options: Options) -> int:
    """Hold a conversation as the flags say and give the exit code. Raises CodeloopError when it can't begin."""
    outlet = Outlet(asyncio.get_running_loop())
    try:
        async with there(options, None) as reached:
            stdout, stderr = standard(outlet)
            typing, outputs = _typing(stdout, stderr)
            code = await Conversation(reached, options, outputs, typing).run()
            await outlet.drain()
            return code
    finally:
        outlet.abandon()


def _typing(stdout: Output, stderr: Output) -> tuple[Typing, tuple[Output, Output]]:
    """Give where lines come from, and where answers and notes go: a terminal takes both, in their order."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return Plain(stdout, None), (stdout, stderr)
    if os.environ.get("TERM", "dumb") == "dumb":
        return Plain(stdout, stdout), (stdout, stdout)
    return Editor(stdout), (stdout, stdout)
