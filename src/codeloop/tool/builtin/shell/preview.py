"""Describes what the sandbox would allow a shell line, without running it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from codeloop.permission.shell.analyse import analyse
from codeloop.schema.wire import Wire
from codeloop.tool.builtin.shell.facts import gather_facts
from codeloop.tool.builtin.shell.line_needs import LineNeeds
from codeloop.tool.builtin.shell.touched_files import find_touched
from codeloop.workspace.process.sandboxed_program import make_policy, make_policy_input
from codeloop.workspace.process.shells import ShellContext
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.sandbox import SandboxRefused
from codeloop.workspace.workspace import Workspace

Fate = Literal["free", "opened", "blocked"]


class TouchedPath(Wire):
    """A path that the line names. `fate`: always accessible, accessible to this command once permitted, or never."""

    path: str
    access: Literal["read", "write"]
    fate: Fate
    why: str = ""


class SandboxPreview(Wire):
    """`backend`: what enforces it, "" for nothing; `reason`: why there is none, or what it lacks."""

    backend: str
    reason: str = ""
    network: str = ""
    writable: list[str] = []
    touches: list[TouchedPath] = []


async def preview(command: str, directory: Path, session: str, workspace: Workspace) -> SandboxPreview:
    """Describe the sandbox of a line that runs in a directory. Runs nothing."""
    config, shells = workspace.sandbox, workspace.shells
    if config.mode == "off":
        return SandboxPreview(backend="", reason="it is turned off")
    await shells.survey(make_policy_input(workspace), workspace.sandbox)
    policy = make_policy(workspace)
    try:
        sandbox = await shells.sandboxes.enter(policy)
    except SandboxRefused as error:
        return SandboxPreview(backend="", reason=str(error))
    context = ShellContext(session, workspace.directory, workspace.environment, workspace.scratch)
    analysis = analyse(command, gather_facts(command, directory, context, workspace))
    files = find_touched(analysis.touches, directory, workspace)
    files = files.map_paths(partial(shells.sandboxes.resolve_inside, sandbox))
    line = LineNeeds(command, analysis, files, directory)
    grants = line.grants(workspace)
    return SandboxPreview(
        backend=sandbox.backend,
        reason=sandbox.lack and f"{sandbox.lack}, so it does not count as one",
        network="off" if sandbox.backend == "landlock" and config.network == "hosts" else config.network,
        writable=[str(path) for path in policy.writable],
        touches=[
            *_judge_paths("write", (*files.writes, *files.fills), partial(_refuse_write, policy), grants.writable),
            *_judge_paths("read", files.reads, partial(_refuse_read, policy), grants.readable),
        ],
    )


def _judge_paths(
    access: Literal["read", "write"], paths: Iterable[Path], explain: Callable[[Path], str], open_paths: Iterable[Path]
) -> Iterator[TouchedPath]:
    for path in dict.fromkeys(paths):
        why = explain(path)
        fate: Fate = "free" if not why else "opened" if path in open_paths else "blocked"
        yield TouchedPath(path=str(path), access=access, fate=fate, why=why)


def _refuse_read(policy: SandboxPolicy, path: Path) -> str:
    return "" if policy.shows(path) else "hidden"


def _refuse_write(policy: SandboxPolicy, path: Path) -> str:
    if path in policy.writable:
        return ""
    if any(path.is_relative_to(each) for each in (*policy.protected, *policy.absent)):
        return "protected"
    if not any(path.is_relative_to(each) for each in policy.writable):
        return "outside the project"
    return _refuse_read(policy, path)
