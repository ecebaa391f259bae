"""Makes the sandbox policies of a work tree from its configuration, its rules and what lies in it,
and examines its sandbox before the first prompt.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.files.permission_name import NamedTree
from codeloop.workspace.files.read_log import ReadLog
from codeloop.workspace.git.other_trees import OtherTrees
from codeloop.workspace.process.shells import Shells
from codeloop.workspace.sandbox.paths.denied_paths import (
    NO_RULES,
    DenyRules,
    add_denied_paths,
    has_denials,
    list_unwritable_files,
)
from codeloop.workspace.sandbox.policy import NO_GRANTS, PolicyInput, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.protected_files import SandboxWatch
from codeloop.workspace.sandbox.sandbox import SandboxUnavailable
from codeloop.workspace.sandbox.shortcomings import describe_for_model, describe_for_user


class WorkTree(NamedTree, Protocol):
    """The parts of a Workspace from which the sandboxes of its programs are made."""

    directory: Path
    scratch: Path
    environment: dict[str, str]
    sandbox: SandboxConfig
    own_folders: tuple[Path, ...]
    read_log: ReadLog
    rules: DenyRules | None
    sandbox_note: str | None

    @property
    def shells(self) -> Shells:
        """The shells of the model's commands, with the sandbox of these."""
        ...

    @property
    def other_trees(self) -> OtherTrees:
        """The other work trees of the repository, if this is a linked one."""
        ...


def make_policy_input(workspace: WorkTree) -> PolicyInput:
    """Return the input for a work tree's sandbox policies."""
    return PolicyInput(
        workspace.root,
        workspace.directory,
        workspace.scratch,
        workspace.environment,
        workspace.own_folders,
    )


def add_limits(
    workspace: WorkTree, rules: DenyRules, grants: SandboxGrants = NO_GRANTS
) -> SandboxGrants:
    """Return grants extended by the paths that rules deny,
    and by other work trees that lie in this one.
    """
    limits = add_denied_paths(workspace, rules, grants)
    trees_inside = workspace.other_trees.list_trees_inside()
    return (
        replace(limits, unwritable=(*limits.unwritable, *trees_inside)) if trees_inside else limits
    )


def make_policy(
    workspace: WorkTree, grants: SandboxGrants = NO_GRANTS, rules: DenyRules | None = None
) -> SandboxPolicy:
    """Return the sandbox policy of a work tree's commands. Reads the disk.
    `rules`: as in ProgramSandbox.
    """
    limits = add_limits(workspace, rules or workspace.rules or NO_RULES, grants)
    return workspace.shells.make_policy(make_policy_input(workspace), workspace.sandbox, limits)


def make_watch(
    workspace: WorkTree,
    rules: DenyRules | None = None,
    *,
    keeps_ignored: bool = False,
    is_kept: Callable[[Path], bool] = lambda _: False,
) -> SandboxWatch:
    """Return the files that are looked for after a program in the sandbox: see SandboxWatch.
    `rules`: as in ProgramSandbox.
    """
    binding = rules or workspace.rules or NO_RULES
    find_denied = (
        (lambda: list_unwritable_files(workspace, binding)) if has_denials(binding) else tuple
    )
    return SandboxWatch(workspace.read_log.expected_files, find_denied, keeps_ignored, is_kept)


async def examine_sandbox(workspace: WorkTree) -> str:
    """Make the sandbox of a work tree's commands before the first prompt,
    and note for the model what it can't do.

    Returns a notice for the user, who gets it only once; "": it is a full one.
    """
    config, shells = workspace.sandbox, workspace.shells
    try:
        sandbox = await shells.sandboxes.enter(make_policy(workspace))
    except SandboxUnavailable:
        sandbox = None
    except OSError:
        # Something is wrong with this policy alone, which the first command will tell.
        workspace.sandbox_note = ""
        return ""
    workspace.sandbox_note = describe_for_model(sandbox, config)
    notice = describe_for_user(sandbox, config, workspace.root)
    if notice in shells.warned:
        return ""
    shells.warned.add(notice)
    return notice
