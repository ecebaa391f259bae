"""The tool `bash`: runs a command in the session's shell,
in the foreground or in the background.
"""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from codeloop.schema.editor import EditorCommand
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop.tool.builtin.shell.command_plan import BashParams, CommandPlan, plan_command
from codeloop.tool.builtin.shell.command_result import (
    append_notes,
    format_result,
    make_metadata,
    note_folder,
)
from codeloop.tool.builtin.shell.stray_files import ask_to_keep
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool
from codeloop.workspace.files.saved_outputs import shorten_output
from codeloop.workspace.process.command_result import CommandResult
from codeloop.workspace.process.output_buffer import OutputBuffer
from codeloop.workspace.process.running_command import find_shell

TERMINAL_KEY = "terminal"
"""The metadata key for the id of the editor's terminal in which a command runs."""


@tool("bash", params=BashParams, traits=Traits(concurrent=False, keep="tail"))
async def bash(params: BashParams, ctx: ToolContext) -> ToolResult:
    """Run the command, or start it in the background."""
    plan = await plan_command(params, ctx)
    try:
        if params.run_in_background:
            return await _start_in_background(plan, params, ctx)
        texts = await _read_texts(plan) if plan.writes and not params.unchanged else {}
        outcome, terminal = await _run_command(plan, params, ctx)
    except OSError as error:
        place = f" ({os.fsdecode(error.filename)})" if error.filename else ""
        reason = f"{error.strerror or error}{place}"
        raise ToolFailure(f"The shell could not be started in {plan.folder}: {reason}") from error
    if texts:
        outcome = replace(outcome, notes=(*outcome.notes, *await _list_broken_files(ctx, texts)))
    return await _describe(plan, outcome, params, ctx, terminal)


async def _read_texts(plan: CommandPlan) -> dict[Path, str]:
    """Return the texts of the files that a line writes, before it runs.
    Imported late: most lines write none.
    """
    from codeloop.tool.builtin.shell.broken_files import read_code_files

    return await asyncio.to_thread(read_code_files, plan.writes)


async def _list_broken_files(ctx: ToolContext, texts: dict[Path, str]) -> list[str]:
    from codeloop.tool.builtin.shell.broken_files import describe_broken_files

    return await asyncio.to_thread(describe_broken_files, ctx, texts)


async def _run_command(
    plan: CommandPlan, params: BashParams, ctx: ToolContext
) -> tuple[CommandResult, str]:
    """Run a command to its end; return its result, and the id of the editor's terminal
    ("": it ran in our shell).
    """
    # The output so far, for the case that the call is cancelled.
    latest = ""

    def show(text: str) -> None:
        nonlocal latest
        latest = text
        ctx.report(metadata=make_metadata(text, params.description))

    try:
        return await _run_to_end(plan, params, ctx, show)
    except asyncio.CancelledError:
        output, marks = append_notes(
            latest, ["The command was aborted; all its processes were ended."]
        )
        ctx.report(metadata=make_metadata(output, params.description) | marks)
        raise


async def _run_to_end(
    plan: CommandPlan, params: BashParams, ctx: ToolContext, show: Callable[[str], None]
) -> tuple[CommandResult, str]:
    if params.unchanged:
        from codeloop.tool.builtin.shell.last_commit import run_unchanged

        return await run_unchanged(ctx, plan.context, plan.command, plan.sandbox, show), ""
    if plan.command.policy is None and (in_editor := await _run_in_editor(plan, ctx)) is not None:
        return in_editor
    return await ctx.workspace.shells.run(plan.context, plan.command, show), ""


async def _describe(
    plan: CommandPlan, outcome: CommandResult, params: BashParams, ctx: ToolContext, terminal: str
) -> ToolResult:
    """Return the result of a command that has ended,
    after the user was asked about files that it left behind.
    """
    decisions = await ask_to_keep(outcome.moved_files, ctx)
    for warning in outcome.warnings:
        ctx.session.warn(warning)
    outcome = replace(outcome, notes=(*outcome.notes, *decisions, *outcome.warnings))
    directory = ctx.workspace.shells.get_directory(plan.context)
    folder_notes = note_folder(ctx, plan.folder, directory, outcome, before=plan.directory)
    if (job := ctx.workspace.shells.jobs.find_job(outcome.job_id)) is not None:
        job.call_id = ctx.call_id
    result = await format_result(
        ctx,
        plan.command,
        outcome,
        description=params.description,
        folder=plan.folder,
        folder_notes=(*plan.notes, *folder_notes),
    )
    return (
        replace(result, metadata={**result.metadata, TERMINAL_KEY: terminal})
        if terminal
        else result
    )


async def _run_in_editor(plan: CommandPlan, ctx: ToolContext) -> tuple[CommandResult, str] | None:
    """Run a command in a terminal of the user's editor (an ACP client), without a sandbox.

    Returns its result and the terminal's id; None: the editor offers no terminal. The command has
    the editor's environment and the variables that earlier commands exported; a `cd` in it does not
    affect later commands. Raises ToolFailure if the editor refuses.
    """
    run = ctx.services.run_in_editor
    if run is None:
        return None
    context = plan.context
    variables = ctx.workspace.shells.list_changed_variables(context, is_unsandboxed=True)
    variables |= {name: context.environment[name] for name in context.pinned_variables}

    def show(terminal_id: str, output: str) -> None:
        ctx.report(metadata={"output": output, TERMINAL_KEY: terminal_id})

    began = time.monotonic()
    try:
        ending = await run(
            EditorCommand(
                session_id=context.session,
                arguments=(*find_shell(context.environment), "-c", plan.command.text),
                directory=plan.folder,
                variables=variables,
                timeout=plan.command.timeout,
                show=show,
            )
        )
    except CodeloopError as error:
        raise ToolFailure(f"The editor did not run the command in a terminal: {error}") from error
    if ending is None:
        return None
    buffer = OutputBuffer(context.scratch, ctx.workspace.bounds)
    buffer.feed(ending.output.encode())
    buffer.close()
    shown_output = buffer.take()
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
        line_count=buffer.line_ends
        + (bool(shown_output.screen_text) and not shown_output.screen_text.endswith("\n")),
    )
    return result, ending.terminal_id


async def _start_in_background(
    plan: CommandPlan, params: BashParams, ctx: ToolContext
) -> ToolResult:
    """Start a command in the background; the result has its id and the file of its output."""
    try:
        job = await ctx.workspace.shells.start(plan.context, plan.command)
    except ValueError as error:
        raise ToolFailure(f"The command was not started: {error}.") from error
    job.call_id = ctx.call_id
    log = job.running.buffer.path
    output = f"Started in the background as {job.id}. bash_output reads its output, and ends it with `stop`."
    output += f" All of its output goes to {shorten_output(log)}." if log else ""
    return ToolResult(
        title=plan.command.text,
        output=output,
        metadata=make_metadata("", params.description)
        | {"id": job.id, "exit": None, "truncated": False, "outputPath": str(log or "")},
    )
