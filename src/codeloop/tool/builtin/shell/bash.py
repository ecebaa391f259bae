"""The tool `bash`: runs a command in the session's shell, in the foreground or in the background."""

import asyncio
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from codeloop.permission.shell.analysis import analyse, make_need
from codeloop.permission.shell.touched_paths import Touches
from codeloop.schema.limits import SHELL_TIMEOUT_MAX
from codeloop.schema.part import MODEL_NOTES_KEY, SHELL_NOTES_SEPARATOR
from codeloop.schema.permission import Need, Trait
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.store.permission_records import WORKDIR_KEY
from codeloop.tool.builtin.shell.denied_paths import add_denied_paths, has_denials, move_denied_files
from codeloop.tool.builtin.shell.editor_terminal import TERMINAL_KEY, run_in_editor
from codeloop.tool.builtin.shell.failure_notes import explain_failure
from codeloop.tool.builtin.shell.line_needs import LineNeeds
from codeloop.tool.builtin.shell.machine_facts import gather_facts
from codeloop.tool.builtin.shell.stray_files import ask_to_keep
from codeloop.tool.builtin.shell.touched_files import find_touched_files
from codeloop.tool.builtin.shell.unsandboxed_line import UnsandboxedLineCheck
from codeloop.tool.files.file_access import describe_missing_file, find_folder, format_path
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool
from codeloop.workspace.files.saved_outputs import expand_outputs, shorten_output
from codeloop.workspace.process.sandboxed_program import make_policy, make_policy_input
from codeloop.workspace.process.shells import CommandResult, ShellCommand, ShellContext, Shells
from codeloop.workspace.sandbox.policy import NO_GRANTS, SandboxGrants
from codeloop.workspace.sandbox.refusals import ASK_OUTSIDE
from codeloop.workspace.sandbox.sandboxes import Sandbox, SandboxRefused

_NO_TOUCHES = Touches()
# A line's files are looked up again after each question, as they may have changed; then the call fails.
_MAX_LOOKUPS = 3
# A sooner answer was a rule's, not the user's; the disk is not read again after it.
_AUTOMATIC_ANSWER_SECONDS = 0.05
# A shorter line is analysed within a few ms, which is not worth a thread.
_SHORT_LINE_CHARACTERS = 4_096
_NO_SANDBOX_WARNING = (
    "No sandbox can be had on this machine, so commands run without one, and the profile auto asks about those that "
    "are not proved to change nothing. `codeloop debug sandbox` says why."
)
_WEAK_SANDBOX_WARNING = (
    "The sandbox does not count here: {}. So the profile auto asks about commands that are not proved to change "
    "nothing. `codeloop debug sandbox` says what it holds."
)


class BashParams(Wire, rename=None):
    """Arguments of the tool `bash`.

    `unchanged`: run on a copy of the last commit. `outside`: the reason to run without the sandbox.
    """

    command: str
    timeout: Annotated[int, Meta(gt=0, description="ms; default 120000, at most 600000")] | None = None
    workdir: Annotated[str, Meta(description="for this call only")] | None = None
    description: Annotated[str, Meta(description="5 to 10 words")] | None = None
    run_in_background: Annotated[bool, Meta(description="return an id at once")] = False
    reset: Annotated[bool, Meta(description="forget cd and exports")] = False
    unchanged: bool = False
    outside: (
        Annotated[str, Meta(description="why not in the sandbox; keys (git push, ssh, publish) are outside")] | None
    ) = None


@tool("bash", params=BashParams, traits=Traits(concurrent=False, keep="tail"))
async def bash(params: BashParams, ctx: ToolContext) -> ToolResult:
    """Run the command, or start it in the background."""
    _check_params(params)
    shells = ctx.workspace.shells
    if params.reset:
        shells.reset(ctx.session_id)
    context = await _make_context(ctx, shells, is_outside=bool(params.outside))
    directory = shells.get_directory(context)
    workdir = None if params.workdir is None else ctx.workspace.resolve(params.workdir, directory).path
    denials, denials_read_at = add_denied_paths(ctx.workspace, ctx.session), time.monotonic()
    params = replace(params, command=expand_outputs(params.command, ctx.workspace.scratch, workdir or directory))
    sandbox = await _enter_sandbox(ctx, denials)
    is_outside = sandbox is not None and bool(params.outside)
    sandbox = None if is_outside else sandbox
    line = await _ask_permission(params, workdir or directory, ctx, context, sandbox, is_outside=is_outside)
    grants = line.make_grants(ctx.workspace) if sandbox is not None and not params.unchanged else NO_GRANTS
    limits = add_denied_paths(ctx.workspace, ctx.session, grants)
    policy = sandbox.policy if sandbox is not None else None
    # If the user may have been asked, the files that rules deny can be others by now.
    if policy is not None and (limits != denials or time.monotonic() - denials_read_at > _AUTOMATIC_ANSWER_SECONDS):
        policy = make_policy(ctx.workspace, limits)
    if workdir is not None and find_folder(workdir) != workdir:
        where = "the working directory" if directory == ctx.workspace.directory else str(directory)
        text = f"The workdir {{}} is not a folder. Leave it out to run in {where}."
        raise ToolFailure(await describe_missing_file(ctx, ctx.workspace.resolve(str(workdir)), text))
    timeout = min(params.timeout or shells.choose_timeout(context, params.command), SHELL_TIMEOUT_MAX.value) / 1000
    command = ShellCommand(params.command, timeout, workdir, policy, has_grants=grants != NO_GRANTS)
    # The output so far, for the case that the call is cancelled.
    latest = ""

    def show(text: str) -> None:
        nonlocal latest
        latest = text
        ctx.report(metadata=_make_metadata(params, text))

    try:
        if params.run_in_background:
            return await _start_in_background(params, context, command, ctx)
        outcome, terminal = await _run_to_end(params, ctx, context, (command, workdir or directory), sandbox, show)
    except asyncio.CancelledError:
        output, marks = append_notes(latest, ["The command was aborted; all its processes were ended."])
        ctx.report(metadata=_make_metadata(params, output) | marks)
        raise
    except OSError as error:
        raise ToolFailure(f"The shell could not be started in {workdir or directory}: {error}") from error
    decisions = await ask_to_keep(outcome.moved_files, ctx)
    warnings = [*outcome.warnings, *(move_denied_files(ctx.workspace, ctx.session, limits) if sandbox else ())]
    for warning in warnings:
        ctx.session.warn(warning)
    outcome = replace(outcome, notes=(*outcome.notes, *decisions, *warnings))
    where = _note_folder(ctx, workdir or directory, shells.get_directory(context), outcome, before=directory)
    result = await _format_result(params, outcome, timeout, ctx, (workdir or directory, where))
    return replace(result, metadata={**result.metadata, TERMINAL_KEY: terminal}) if terminal else result


async def _make_context(ctx: ToolContext, shells: Shells, *, is_outside: bool) -> ShellContext:
    """Return the shell context of the session, with the variables that extensions set for the command."""
    work = ctx.workspace
    context = ShellContext(ctx.session_id, work.directory, work.environment, work.scratch)
    arguments = {"cwd": str(shells.get_directory(context)), "sessionID": ctx.session_id, "callID": ctx.call_id}
    arguments |= {"outside": True} if is_outside else {}
    variables = await ctx.session.hooks.collect_shell_variables(arguments)
    if not variables:
        return context
    return replace(context, environment={**work.environment, **variables}, pinned_variables=frozenset(variables))


def _check_params(params: BashParams) -> None:
    if not params.command.strip():
        raise ToolFailure("The command is empty.", advice="Give the command to run.")
    if "\0" in params.command or "\0" in (params.workdir or ""):
        raise ToolFailure(
            "The command contains a NUL character, which no shell can take.", advice="Write it as \\0 for printf."
        )
    if params.unchanged and (params.outside or params.run_in_background):
        text = "unchanged: true runs in the sandbox, to its end: it goes with neither outside nor run_in_background."
        raise ToolFailure(text, advice="Leave one out.")


async def _enter_sandbox(ctx: ToolContext, limits: SandboxGrants) -> Sandbox | None:
    """Return the sandbox to run in; None: run without one. `limits`: the paths that rules deny.

    Raises ToolFailure if the configuration requires a sandbox and this machine has none.
    """
    workspace = ctx.workspace
    config = workspace.sandbox
    if config.mode == "off":
        return None
    shells = workspace.shells
    await shells.scan_work_tree(make_policy_input(workspace), workspace.sandbox)
    try:
        policy = make_policy(workspace, limits)
        # A sandbox that is found may be older than the project's files: the start of the command compares them.
        sandbox = shells.sandboxes.find_sandbox(policy) or await shells.sandboxes.enter(policy)
    except SandboxRefused as error:
        if config.mode == "required":
            raise ToolFailure(f"{error} The configuration requires one (sandbox), so no command can be run.") from error
        _warn_once(ctx, _NO_SANDBOX_WARNING)
        return None
    if sandbox.weakness:
        _warn_once(ctx, _WEAK_SANDBOX_WARNING.format(sandbox.weakness))
    return sandbox


def _warn_once(ctx: ToolContext, note: str) -> None:
    """Show a note to the user, each note once in a work tree."""
    shown_notes = ctx.workspace.shells.warned
    if note not in shown_notes:
        shown_notes.add(note)
        ctx.session.warn(note)


async def _ask_permission(
    params: BashParams,
    directory: Path,
    ctx: ToolContext,
    context: ShellContext,
    sandbox: Sandbox | None,
    *,
    is_outside: bool,
) -> LineNeeds:
    """Ask for permission for the command, and for the files that it touches, in one question; return all its needs.

    `is_outside`: the command is to run outside the sandbox. An answer may take days, in which a file can become a link.
    So the files are looked up again after it, and if they differ from those of the question, it is asked again.
    """
    earlier: list[Need] = []
    for _ in range(_MAX_LOOKUPS):
        line = await _find_line_needs(params.command, directory, ctx, context, sandbox)
        must_ask = _may_evade(line, sandbox) and has_denials(ctx.session)
        needs = line.list_needs(ctx.workspace, ctx.session.judge, must_ask=must_ask)
        if is_outside:
            metadata: JSON = {"command": params.command, "reason": params.outside}
            metadata |= {WORKDIR_KEY: str(directory)} if directory != ctx.workspace.directory else {}
            need = make_need(params.command, line.analysis)
            if not need.unproven:
                work = ctx.workspace
                checks = UnsandboxedLineCheck(work.root, work.environment, make_policy(work).writable)
                need = replace(need, unproven=await asyncio.to_thread(checks.find_doubt, line.analysis.commands))
            if need.unproven and not ctx.session.judge("sandbox", [*need.patterns]):
                metadata |= {"doubt": need.unproven}
            needs.insert(0, replace(need, permission="sandbox", always=(), metadata=metadata, traits=()))
        # The line touches nothing but what the user was asked about: the answer holds.
        if earlier and all(need in earlier for need in needs):
            return line
        if not await ctx.ask(*needs):
            return line
        earlier = needs
    raise ToolFailure(
        "What the command touches changed each time it was allowed, so it was not run.", advice="Look at it again."
    )


def _may_evade(line: LineNeeds, sandbox: Sandbox | None) -> bool:
    """Return whether a line could reach a denied path by another name (a link), with no sandbox to prevent it."""
    return (sandbox is None or not sandbox.is_protective) and not line.analysis.is_read_only and not line.is_plain


async def _find_line_needs(
    command: str, directory: Path, ctx: ToolContext, context: ShellContext, sandbox: Sandbox | None
) -> LineNeeds:
    """Return the permissions that a command needs, as the files are now."""
    shells = ctx.workspace.shells
    facts = gather_facts(command, directory, context, ctx.workspace, outside=sandbox is None)
    traits: tuple[Trait, ...] = ("sandboxed",) if sandbox is not None and sandbox.is_protective else ()
    is_short = len(command) < _SHORT_LINE_CHARACTERS
    analysis = analyse(command, facts) if is_short else await asyncio.to_thread(analyse, command, facts)
    # Without touched paths, a thread would cost more than the lookup.
    if analysis.touches == _NO_TOUCHES:
        files = find_touched_files(_NO_TOUCHES, directory, ctx.workspace)
    else:
        files = await asyncio.to_thread(find_touched_files, analysis.touches, directory, ctx.workspace)
    if sandbox is not None:
        files = files.map_paths(partial(shells.sandboxes.resolve_inside, sandbox))
    if sandbox is not None and ctx.workspace.sandbox.network == "off":
        # Nothing in the sandbox reaches the network, so there is no remote host to ask about.
        analysis = replace(analysis, remote_commands=())
    return LineNeeds(command, analysis, files, directory, traits)


async def _run_to_end(
    params: BashParams,
    ctx: ToolContext,
    context: ShellContext,
    command: tuple[ShellCommand, Path],
    sandbox: Sandbox | None,
    show: Callable[[str], None],
) -> tuple[CommandResult, str]:
    """Run a command to its end; return its result, and the id of the editor's terminal ("": it ran in our shell)."""
    line, directory = command
    if params.unchanged:
        from codeloop.tool.builtin.shell.last_commit import run_unchanged

        return await run_unchanged(ctx, context, line, sandbox, show), ""
    if line.policy is None and (in_editor := await run_in_editor(ctx, context, line, directory)) is not None:
        return in_editor
    return await ctx.workspace.shells.run(context, line, show), ""


async def _start_in_background(
    params: BashParams, context: ShellContext, command: ShellCommand, ctx: ToolContext
) -> ToolResult:
    """Start a command in the background; the result has its id and the file of its output."""
    try:
        job = await ctx.workspace.shells.start(context, command)
    except ValueError as error:
        raise ToolFailure(f"The command was not started: {error}.") from error
    log = job.running.capture.path
    output = f"Started in the background as {job.id}. Read its output with bash_output, stop it with bash_kill."
    output += f" All of its output goes to {shorten_output(log)}." if log else ""
    return ToolResult(
        title=params.command,
        output=output,
        metadata=_make_metadata(params, "")
        | {"id": job.id, "exit": None, "truncated": False, "outputPath": str(log or "")},
    )


def _note_folder(
    ctx: ToolContext, folder: Path, next_folder: Path, outcome: CommandResult, *, before: Path
) -> list[str]:
    """Return a note on the working directory if `cd` changed it, or if the command failed in an unusual one."""
    shown = next_folder if next_folder != before else folder
    name = format_path(ctx.workspace, shown)
    name = str(shown) if name in {".", ""} else name
    if next_folder != before:
        return [f"The working directory is now {name}."]
    return [f"It ran in {name}."] if outcome.code != 0 and folder != ctx.workspace.directory else []


async def _format_result(
    params: BashParams, outcome: CommandResult, timeout: float, ctx: ToolContext, location: tuple[Path, list[str]]
) -> ToolResult:
    """Return the result of a command. `timeout`: in seconds. `location`: its directory, and notes on the next one."""
    folder, where = location
    notes: list[str] = []
    screen_notes: list[str] = []
    if outcome.timed_out:
        timeout_note = f"The command was ended with all its processes after its timeout of {timeout * 1000:.0f} ms."
        screen_notes.append(timeout_note)
        notes.append(
            f"{timeout_note} It needs longer, or it hangs: what it printed last, such as a traceback, may say where. "
            f"Give a timeout (at most {SHELL_TIMEOUT_MAX.value} ms) or use run_in_background where it only takes long."
        )
    if outcome.signal:
        screen_notes.append(f"The shell was ended by {outcome.signal}.")
        notes.append(screen_notes[-1])
    elif outcome.code:
        notes.append(f"exit code {outcome.code}{_format_signal(outcome.code)}")
        explanation, is_for_screen = await explain_failure(params.command, outcome, folder, ctx)
        notes += [explanation] if explanation else []
        screen_notes += [explanation] if is_for_screen else []
    notes += where
    if outcome.leftover_processes:
        remainder = (
            "1 process that it left running was"
            if outcome.leftover_processes == 1
            else f"{outcome.leftover_processes} processes that it left were"
        )
        screen_notes.append(f"{remainder} ended.")
        notes.append(f"{screen_notes[-1]} Use run_in_background for what should keep running.")
    notes += outcome.notes
    screen_notes += map(strip_advice, outcome.notes)
    metadata = _make_metadata(params, outcome.screen_text) | {
        "exit": outcome.code,
        "truncated": outcome.is_cut,
        "lines": outcome.line_count,
        "duration": round(outcome.duration * 1000),
    }
    if screen_notes:
        metadata["notes"] = screen_notes
    if outcome.signal:
        metadata["signal"] = outcome.signal
    if outcome.timed_out:
        metadata["timedOut"] = True
    if outcome.output_file is not None:
        metadata["outputPath"] = str(outcome.output_file)
    output, marks = append_notes(outcome.output or ("(no output)" if notes else "(no output, exit code 0)"), notes)
    return ToolResult(title=params.command, output=output, metadata=metadata | marks)


def _format_signal(code: int) -> str:
    """Return the signal that an exit code above 128 stands for, as ` (SIGKILL)`; "" for other codes."""
    try:
        return f" ({signal.Signals(code - 128).name})" if code > 128 else ""
    except ValueError:
        return ""


def strip_advice(note: str) -> str:
    """Return a note of the sandbox without its advice for the model."""
    return note.removesuffix(ASK_OUTSIDE).rstrip()


def append_notes(output: str, notes: list[str]) -> tuple[str, JSON]:
    """Append notes for the model to a command's output; return it, and metadata that marks them for screens."""
    if not notes:
        return output, {MODEL_NOTES_KEY: ""}
    text = "\n".join(notes)
    block = f"{SHELL_NOTES_SEPARATOR}{text}\n</shell_metadata>"
    return output.rstrip() + block, {MODEL_NOTES_KEY: block}


def _make_metadata(params: BashParams, output: str) -> JSON:
    return {"output": output} | ({"description": params.description} if params.description else {})
