"""Runs a command of the tool `bash` in a terminal of the user's editor (an ACP client), if the editor offers one."""

import time
from pathlib import Path

from codeloop.schema.editor import EditorCommand
from codeloop.schema.errors import CodeloopError
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.process.output.output_buffer import OutputBuffer
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, find_shell

TERMINAL_KEY = "terminal"
"""The metadata key for the id of the editor's terminal in which a command runs."""


async def run_in_editor(
    ctx: ToolContext, context: ShellContext, command: ShellCommand, directory: Path
) -> tuple[CommandResult, str] | None:
    """Run a command in the editor's terminal, without a sandbox; return its result and the terminal's id.

    Returns None if the editor offers no terminal. The command has the editor's environment and the variables that
    earlier commands exported; a `cd` in it does not affect later commands. Raises ToolFailure if the editor refuses.
    """
    run = ctx.services.run_in_editor
    if run is None:
        return None
    shells = ctx.workspace.shells
    variables = shells.list_changed_variables(context, is_unsandboxed=True)
    variables |= {name: context.environment[name] for name in context.pinned_variables}

    def show(terminal_id: str, output: str) -> None:
        ctx.report(metadata={"output": output, TERMINAL_KEY: terminal_id})

    began = time.monotonic()
    arguments = (*find_shell(context.environment), "-c", command.text)
    try:
        ending = await run(EditorCommand(context.session, arguments, directory, variables, command.timeout, show))
    except CodeloopError as error:
        raise ToolFailure(f"The editor did not run the command in a terminal: {error}") from error
    if ending is None:
        return None
    capture = OutputBuffer(context.scratch)
    capture.feed(ending.output.encode())
    capture.close()
    shown_output = capture.take()
    result = CommandResult(
        output=shown_output.text,
        screen_text=shown_output.screen_text,
        code=ending.code,
        signal=ending.signal,
        timed_out=ending.timed_out,
        leftover_processes=0,
        is_cut=shown_output.is_cut,
        output_file=shown_output.path,
        duration=time.monotonic() - began,
        # A last line without a line end counts, too.
        line_count=capture.line_ends + (bool(shown_output.screen_text) and not shown_output.screen_text.endswith("\n")),
    )
    return result, ending.terminal_id
