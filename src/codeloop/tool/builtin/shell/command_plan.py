"""`CommandPlan`: what is settled before a command of the tool `bash` runs: permission, sandbox,
folder, time.
"""

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from codeloop.kit.paths import find_folder
from codeloop.schema.permission import Need, Trait
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.shell.analysis import analyse, make_need
from codeloop.shell.touched_paths import Touches
from codeloop.store.permission_records import WORKDIR_KEY
from codeloop.tool.builtin.shell.command_result import shows_what_comes
from codeloop.tool.builtin.shell.line_needs import LineNeeds
from codeloop.tool.builtin.shell.machine_facts import gather_facts
from codeloop.tool.builtin.shell.touched_files import find_touched_files
from codeloop.tool.builtin.shell.unsandboxed_line import UnsandboxedLineCheck
from codeloop.tool.files.file_access import describe_missing_file, resolve_path
from codeloop.tool.json_schema import UNSENT
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.files.saved_outputs import expand_outputs
from codeloop.workspace.process.shells import ShellCommand, ShellContext, Shells
from codeloop.workspace.process.work_tree_policies import make_policy, make_policy_input, make_watch
from codeloop.workspace.sandbox.paths.denied_paths import has_denials
from codeloop.workspace.sandbox.policy import NO_GRANTS
from codeloop.workspace.sandbox.sandbox import Sandbox, SandboxUnavailable
from codeloop.workspace.sandbox.shortcomings import describe_for_user

_NO_TOUCHES = Touches()
# A line's files are looked up again after each question, as they may have changed;
# after so many the call fails.
_MAX_LOOKUPS = 3
# A sooner answer was a rule's, not the user's: the policy of the sandbox is
# not made again after it.
_AUTOMATIC_ANSWER_SECONDS = 0.05
# A shorter line is analysed within a few ms, which is not worth a thread.
_SHORT_LINE_CHARACTERS = 4_096
_WEAK_SANDBOX_WARNING = (
    "The sandbox does not count here: {}. So the profile auto asks about commands that are not proved to change "
    "nothing. `codeloop debug sandbox` says what it holds."
)


_OUTSIDE_IN_TREE = (
    "--auto does not let a command out of the sandbox in a work tree: nothing would keep it out of the other trees. "
    'A user can allow it when asked, or by `"permission": {"sandbox": "allow"}` in their own settings.'
)


class BashParams(Wire, rename=None):
    """Arguments of the tool `bash`.

    `unchanged`: run on a copy of the last commit. `outside`: the reason to run without the sandbox.
    """

    command: str
    timeout: Annotated[int, Meta(gt=0, description="ms, up to 600000")] | None = None
    workdir: (
        Annotated[str, Meta(description="for this call only", extra_json_schema=UNSENT)] | None
    ) = None
    description: (
        Annotated[str, Meta(description="5 to 10 words", extra_json_schema=UNSENT)] | None
    ) = None
    run_in_background: bool = False
    reset: Annotated[bool, Meta(description="forget cd and exports", extra_json_schema=UNSENT)] = (
        False
    )
    unchanged: bool = False
    outside: (
        Annotated[
            str,
            Meta(description="why not in the sandbox; keys (git push, ssh, publish) are outside"),
        ]
        | None
    ) = None


class CommandPlan(Struct, frozen=True):
    """A command that may run. `context`: the session's shell;
    `sandbox`: None: the command runs without one.

    `directory`: the shell's directory before it; `folder`: where it runs.
    `notes`: on arguments that were changed.
    `writes`: the files that it changes, as far as its text says.
    """

    command: ShellCommand
    context: ShellContext
    sandbox: Sandbox | None
    directory: Path
    folder: Path
    notes: tuple[str, ...] = ()
    writes: tuple[Path, ...] = ()


async def plan_command(params: BashParams, ctx: ToolContext) -> CommandPlan:
    """Settle how a command runs, and ask for all its permissions.

    Raises ToolFailure if it can't run like that, Denied or Rejected if it may not.
    """
    _check_params(params)
    work, shells = ctx.workspace, ctx.workspace.shells
    if params.reset:
        shells.reset(ctx.session_id)
    context = await _make_context(ctx, shells, is_outside=bool(params.outside))
    directory = shells.get_directory(context)
    workdir = None if params.workdir is None else resolve_path(ctx, params.workdir or ".").path
    folder = workdir or directory
    entered_at = time.monotonic()
    params = replace(params, command=expand_outputs(params.command, work.scratch, folder))
    sandbox = await _enter_sandbox(ctx)
    is_outside = sandbox is not None and bool(params.outside)
    sandbox = None if is_outside else sandbox
    line = await _ask_permission(params, folder, ctx, context, sandbox, is_outside=is_outside)
    grants = line.make_grants(work) if sandbox is not None and not params.unchanged else NO_GRANTS
    if ctx.session.private_home:
        grants = replace(grants, home_name=ctx.session.private_home)
        context = _keep_compiled_files_apart(context, sandbox)
    policy = sandbox.policy if sandbox is not None else None
    # If the user may have been asked, the files that rules deny can be others by now.
    if policy is not None and (
        grants != NO_GRANTS or time.monotonic() - entered_at > _AUTOMATIC_ANSWER_SECONDS
    ):
        policy = make_policy(work, grants, ctx.session)
    if workdir is not None and find_folder(workdir) != workdir:
        where = "the working directory" if directory == work.directory else str(directory)
        text = f"The workdir {{}} is not a folder. Leave it out to run in {where}."
        raise ToolFailure(await describe_missing_file(ctx, work.resolve(str(workdir)), text))
    timeout_ms, notes = _choose_timeout(params, context, ctx)

    def find_more_time() -> float:
        """Return the seconds that a build, a test or an installation may take
        longer than other commands.
        """
        may_take_long = params.timeout is None and ctx.services.takes_long(params.command)
        return (work.bounds.max_timeout_ms - timeout_ms) / 1000 if may_take_long else 0

    command = ShellCommand(
        params.command,
        timeout_ms / 1000,
        directory=workdir,
        policy=policy,
        watch=make_watch(
            work,
            ctx.session,
            keeps_ignored=line.analysis.is_destructive,
            # A file that the line names was stored before.
            is_kept=lambda path: path in line.files.writes or ctx.session.is_kept(path),
        ),
        has_grants=grants != NO_GRANTS,
        goes_on=not (params.unchanged or shows_what_comes(params.command)),
        publishes_ports=work.sandbox.ports,
        find_more_time=find_more_time,
    )
    return CommandPlan(command, context, sandbox, directory, folder, notes, line.files.writes)


def _choose_timeout(
    params: BashParams, context: ShellContext, ctx: ToolContext
) -> tuple[float, tuple[str, ...]]:
    """Return the timeout of a command in ms, and a note if it is shorter than the call's."""
    work = ctx.workspace
    wanted_ms = params.timeout or work.shells.choose_timeout_ms(context, params.command)
    timeout_ms = min(wanted_ms, work.bounds.max_timeout_ms)
    is_lowered = (
        params.timeout is not None and timeout_ms < params.timeout and not params.run_in_background
    )
    notes = (f"Its timeout was lowered to {timeout_ms} ms, the longest.",) if is_lowered else ()
    return timeout_ms, notes


def _keep_compiled_files_apart(context: ShellContext, sandbox: Sandbox | None) -> ShellContext:
    """Return the context of a command in whose environment Python compiles anew what
    other commands compiled.
    """
    home = sandbox.policy.home if sandbox is not None and sandbox.has_private_folders else None
    variables = {"PYTHONPYCACHEPREFIX": f"{home or '/nonexistent'}/.cache/compiled-python"}
    # Without a home of its own, it would leave them where other commands write, too.
    variables |= {} if home is not None else {"PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**context.environment, **variables}
    return replace(
        context,
        environment=environment,
        pinned_variables=context.pinned_variables | variables.keys(),
    )


async def _make_context(ctx: ToolContext, shells: Shells, *, is_outside: bool) -> ShellContext:
    """Return the shell context of the session, with the variables that extensions
    set for the command.
    """
    work = ctx.workspace
    context = ShellContext(ctx.session_id, work.directory, work.environment, work.scratch)
    arguments = {
        "cwd": str(shells.get_directory(context)),
        "sessionID": ctx.session_id,
        "callID": ctx.call_id,
    }
    arguments |= {"outside": True} if is_outside else {}
    variables = {
        **ctx.session.variables,
        **await ctx.session.hooks.collect_shell_variables(arguments),
    }
    if not variables:
        return context
    return replace(
        context,
        environment={**work.environment, **variables},
        pinned_variables=frozenset(variables),
    )


def _check_params(params: BashParams) -> None:
    if not params.command.strip():
        raise ToolFailure("The command is empty.", advice="Give the command to run.")
    if "\0" in params.command or "\0" in (params.workdir or ""):
        raise ToolFailure(
            "The command contains a NUL character, which no shell can take.",
            advice="Write it as \\0 for printf.",
        )
    if params.unchanged and (params.outside or params.run_in_background):
        text = "unchanged: true runs in the sandbox, to its end: it goes with neither outside nor run_in_background."
        raise ToolFailure(text, advice="Leave one out.")


async def _enter_sandbox(ctx: ToolContext) -> Sandbox | None:
    """Return the sandbox to run in; None: run without one.

    Raises ToolFailure if the configuration requires a sandbox and this machine has none.
    """
    workspace = ctx.workspace
    config = workspace.sandbox
    if config.mode == "off":
        return None
    shells = workspace.shells
    await shells.scan_work_tree(make_policy_input(workspace), workspace.sandbox)
    try:
        policy = make_policy(workspace, rules=ctx.session)
        # A sandbox that is found may be older than the project's files: the start of
        # the command compares them.
        sandbox = shells.sandboxes.find_sandbox(policy) or await shells.sandboxes.enter(policy)
    except SandboxUnavailable as error:
        if config.mode == "required":
            raise ToolFailure(
                f"{error} The configuration requires one (sandbox), so no command can be run."
            ) from error
        _warn_once(ctx, describe_for_user(None, config, workspace.root))
        return None
    except OSError as error:
        # Sandboxes work here: a file of this one's policy is gone, for example.
        raise ToolFailure(
            f"The sandbox could not be made: {error}.", advice="Call it again."
        ) from error
    # Before the first prompt the user was told only where something hinted at it.
    _warn_once(ctx, describe_for_user(sandbox, config, workspace.root))
    if sandbox.weakness:
        _warn_once(ctx, _WEAK_SANDBOX_WARNING.format(sandbox.weakness))
    return sandbox


def _warn_once(ctx: ToolContext, note: str) -> None:
    """Show a note to the user, if there is one, each note once in a work tree."""
    shown_notes = ctx.workspace.shells.warned
    if note and note not in shown_notes:
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
    """Ask for permission for the command, and for the files that it touches, in one question;
    return all its needs.

    `is_outside`: the command is to run outside the sandbox. An answer may take days, in which a
    file can become a link. So the files are looked up again after it, and if they differ from those
    of the question, it is asked again.
    """
    earlier: list[Need] = []
    for _ in range(_MAX_LOOKUPS):
        line = await _find_line_needs(params.command, directory, ctx, context, sandbox)
        must_ask = _may_evade(line, sandbox) and has_denials(ctx.session)
        needs = line.list_needs(ctx.workspace, ctx.session.judge, must_ask=must_ask)
        if is_outside:
            needs.insert(0, await _make_outside_need(params, directory, ctx, context, line))
        # The line touches nothing but what the user was asked about: the answer holds.
        if earlier and all(need in earlier for need in needs):
            return line
        if not await ctx.ask(*needs):
            return line
        earlier = needs
    raise ToolFailure(
        "What the command touches changed each time it was allowed, so it was not run.",
        advice="Look at it again.",
    )


async def _make_outside_need(
    params: BashParams, directory: Path, ctx: ToolContext, context: ShellContext, line: LineNeeds
) -> Need:
    """Return the permission to run a line outside the sandbox,
    with the doubt that keeps a rule from allowing it.
    """
    work = ctx.workspace
    metadata: JSON = {"command": params.command, "reason": params.outside}
    metadata |= {WORKDIR_KEY: str(directory)} if directory != work.directory else {}
    need = make_need(params.command, line.analysis)
    if not need.unproven:
        check = UnsandboxedLineCheck(work.root, context.environment, make_policy(work).writable)
        need = replace(
            need, unproven=await asyncio.to_thread(check.find_doubt, line.analysis.commands)
        )
    # A rule allows the line and the doubt overrules it: the user is told why it is asked about.
    if need.unproven and not ctx.session.judge("sandbox", [*need.patterns]):
        metadata |= {"doubt": need.unproven}
    not_by_auto = _OUTSIDE_IN_TREE if need.unproven and work.other_trees.exist else ""
    return replace(
        need, permission="sandbox", always=(), metadata=metadata, traits=(), not_by_auto=not_by_auto
    )


def _may_evade(line: LineNeeds, sandbox: Sandbox | None) -> bool:
    """Return whether a line could reach a denied path by another name (a link),
    with no sandbox to prevent it.
    """
    return (
        (sandbox is None or not sandbox.is_protective)
        and not line.analysis.is_read_only
        and not line.is_plain
    )


async def _find_line_needs(
    command: str, directory: Path, ctx: ToolContext, context: ShellContext, sandbox: Sandbox | None
) -> LineNeeds:
    """Return the permissions that a command needs, as the files are now."""
    shells = ctx.workspace.shells
    facts = gather_facts(command, directory, context, ctx.workspace, outside=sandbox is None)
    traits: tuple[Trait, ...] = (
        ("sandboxed",) if sandbox is not None and sandbox.is_protective else ()
    )
    is_short = len(command) < _SHORT_LINE_CHARACTERS
    analysis = (
        analyse(command, facts) if is_short else await asyncio.to_thread(analyse, command, facts)
    )
    # Without touched paths, a thread would cost more than the lookup.
    if analysis.touches == _NO_TOUCHES:
        files = find_touched_files(_NO_TOUCHES, directory, ctx.workspace)
    else:
        files = await asyncio.to_thread(
            find_touched_files, analysis.touches, directory, ctx.workspace
        )
    if sandbox is not None:
        files = files.map_paths(partial(shells.sandboxes.resolve_inside, sandbox))
    if sandbox is not None and ctx.workspace.sandbox.network == "off":
        # Nothing in the sandbox reaches the network, so there is no remote host to ask about.
        analysis = replace(analysis, remote_commands=())
    return LineNeeds(command, analysis, files, directory, traits)
