"""Describes the sandbox that a shell line would run in, and the paths that the line could reach,
without running it.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from codeloop.schema.wire import Wire
from codeloop.shell.analysis import analyse
from codeloop.tool.builtin.shell.line_needs import LineNeeds
from codeloop.tool.builtin.shell.machine_facts import gather_facts
from codeloop.tool.builtin.shell.touched_files import find_touched_files
from codeloop.workspace.process.shells import ShellContext
from codeloop.workspace.process.work_tree_policies import make_policy, make_policy_input
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.workspace import Workspace

Accessibility = Literal["free", "opened", "blocked"]
"""Whether a path is accessible to every command, to this command after the user permits it,
or to none.
"""


class TouchedPath(Wire):
    """A path that the line reads or writes. `why`: the reason that commands can't access it;
    "": they can.
    """

    path: str
    access: Literal["read", "write"]
    accessibility: Accessibility = msgspec.field(name="fate")
    why: str = ""


class SandboxPreview(Wire):
    """The sandbox of a line. `backend`: its mechanism, "" for none.
    `reason`: why there is none, or what it lacks.
    """

    backend: str
    reason: str = ""
    network: str = ""
    writable: list[str] = []
    touches: list[TouchedPath] = []


async def preview_sandbox(
    command: str, directory: Path, session: str, workspace: Workspace
) -> SandboxPreview:
    """Describe the sandbox for a line in a directory,
    with the shell state of a session (given by its id).
    """
    config, shells = workspace.sandbox, workspace.shells
    if config.mode == "off":
        return SandboxPreview(backend="", reason="it is turned off")
    await shells.scan_work_tree(make_policy_input(workspace), workspace.sandbox)
    policy = make_policy(workspace)
    try:
        sandbox = await shells.sandboxes.enter(policy)
    except SandboxUnavailable as error:
        return SandboxPreview(backend="", reason=str(error))
    context = ShellContext(session, workspace.directory, workspace.environment, workspace.scratch)
    analysis = analyse(command, gather_facts(command, directory, context, workspace))
    files = find_touched_files(analysis.touches, directory, workspace)
    files = files.map_paths(partial(shells.sandboxes.resolve_inside, sandbox))
    line = LineNeeds(command, analysis, files, directory)
    grants = line.make_grants(workspace)
    return SandboxPreview(
        backend=sandbox.backend,
        reason=sandbox.weakness and f"{sandbox.weakness}, so it does not count as one",
        # Landlock can't tell hosts apart, so it allows none.
        network="off"
        if sandbox.backend == "landlock" and config.network == "hosts"
        else config.network,
        writable=[str(path) for path in policy.writable],
        touches=[
            *_judge_paths(
                "write",
                (*files.writes, *files.filled_folders),
                partial(_explain_write, policy),
                grants.writable,
            ),
            *_judge_paths("read", files.reads, partial(_explain_read, policy), grants.readable),
        ],
    )


def _judge_paths(
    access: Literal["read", "write"],
    paths: Iterable[Path],
    explain: Callable[[Path], str],
    granted: Iterable[Path],
) -> Iterator[TouchedPath]:
    """Yield each path with its accessibility. `granted`: paths that the sandbox opens
    after the line is permitted.
    """
    for path in dict.fromkeys(paths):
        why = explain(path)
        accessibility: Accessibility = "free"
        if why:
            accessibility = "opened" if path in granted else "blocked"
        yield TouchedPath(path=str(path), access=access, accessibility=accessibility, why=why)


def _explain_read(policy: SandboxPolicy, path: Path) -> str:
    """Return why commands can't read a path; "": they can."""
    return "" if policy.shows(path) else "hidden"


def _explain_write(policy: SandboxPolicy, path: Path) -> str:
    """Return why commands can't write a path; "": they can."""
    if path in policy.writable:
        return ""
    if any(path.is_relative_to(each) for each in (*policy.protected, *policy.absent)):
        return "protected"
    if not any(path.is_relative_to(each) for each in policy.writable):
        return "outside the project"
    return _explain_read(policy, path)
