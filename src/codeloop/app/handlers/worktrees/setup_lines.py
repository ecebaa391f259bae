"""Runs the setup commands of new work trees: those that the project,
the configuration and a request name.
"""

import asyncio
from pathlib import Path

from codeloop.app.handlers.project.details import read_details
from codeloop.app.project import Project
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import SHELL_TIMEOUT_MAX
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import ShellCommand, ShellContext
from codeloop.workspace.process.work_tree_policies import make_watch
from codeloop.workspace.workspace import Workspace

_MAX_OUTPUT_CHARS = 1_000
"""The end of a failed setup command's output that its error quotes."""


async def run_setup_lines(
    project: Project, folder: Path, requested_line: str | None, *, is_trusted: bool
) -> None:
    """Run the setup commands of a work tree: the project's, the configuration's,
    and the `requested_line`.

    Those of the configuration only if the work tree is trusted.
    Raises OperationError when one fails.
    """
    details = await asyncio.to_thread(read_details, project.settings.home)
    configured = project.settings.config.worktree.setup if is_trusted else ()
    for line in (details.commands.start if details.commands else None, *configured, requested_line):
        if line is not None and line.strip():
            await _run_setup_line(project, folder, line)


def explain_skipped_setup(project: Project, *, is_trusted: bool) -> list[str]:
    """Return a note when the configuration's setup commands are not run, and why."""
    if is_trusted or not project.settings.config.worktree.setup:
        return []
    return [
        "The commands of `worktree.setup` were not run: the work tree is not trusted (`codeloop trust` there)."
    ]


async def _run_setup_line(project: Project, folder: Path, line: str) -> None:
    """Run a setup command in a new work tree, in the sandbox for commands of that tree.

    A command like `npm ci` runs what files of the commit say, which the agent or a stranger may
    have written. On a machine without a sandbox it runs without one.
    Raises OperationError when it fails.
    """
    workspace, project_root = project.workspace, project.settings.project_root
    scratch = replace(project_root, root=folder, directory=folder).get_scratch_folder(
        project.settings.home
    )
    tree = Workspace(
        folder, folder, scratch, workspace.environment, workspace.sandbox, workspace.own_folders
    )
    tree.rules = workspace.rules
    context = ShellContext("setup", folder, workspace.environment, scratch)
    seconds = SHELL_TIMEOUT_MAX.seconds
    try:
        sandbox = await tree.program_sandboxes.enter_command_sandbox()
        policy = sandbox.policy if sandbox is not None else None
        command = ShellCommand(line, seconds, policy=policy, watch=make_watch(tree))
        program = await tree.shells.run(context, command, lambda _output: None)
    except (OSError, ValueError) as error:
        raise OperationError("WorktreeStartCommandFailedError", f"{line}: {error}") from error
    finally:
        await tree.close()
    if program.code != 0:
        output = " ".join(program.screen_text.split())[-_MAX_OUTPUT_CHARS:]
        ending = f"code {program.code}" if program.signal is None else program.signal
        what = f"was ended after {seconds:g} s" if program.timed_out else f"ended with {ending}"
        notes = " ".join(program.notes)
        raise OperationError(
            "WorktreeStartCommandFailedError",
            f"The work tree {folder} is made, but `{line}` {what}: {output} {notes}".rstrip(),
        )
