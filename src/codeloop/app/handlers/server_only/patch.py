"""Handlers that return the changes of the work tree as a patch, and apply a patch to it."""

import asyncio

from codeloop.app.handlers.workspace.vcs import DIFF_CONTEXT_LINES, open_git
from codeloop.app.project import Project
from codeloop.kit.remove_tree import temporary_folder
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.api.server_operations import AppliedPatch, ApplyPatch
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.workspace.git.repository import GitFailed
from codeloop.workspace.git.working_diff import list_changes


async def make_patch(project: Project, _args: NoArguments) -> str:
    """Return the changes since the last commit as one patch; "" outside a repository.
    Raises GitFailed.
    """
    git = open_git(project)
    if git is None:
        return ""
    changes = await list_changes(git, await git.resolve_commit("HEAD"), DIFF_CONTEXT_LINES)
    # A part of the changes must not pass for all of them.
    files_without_patch = [each.file for each in changes if each.patch is None]
    if files_without_patch:
        name = replace_undecodable(files_without_patch[0])
        raise GitFailed(
            f"The patch would be too large: {name} and others are left out. Use /vcs/diff."
        )
    return "\n".join(replace_undecodable(each.patch or "") for each in changes)


async def apply_patch(project: Project, args: ApplyPatch) -> AppliedPatch:
    """Apply a patch to the work tree, completely or not at all. Raises OperationError."""
    git = open_git(project)
    if git is None:
        raise OperationError(
            "VcsApplyError",
            "The project is in no git repository, so no patch can be applied.",
            reason="non-git",
        )
    with temporary_folder("codeloop-patch-") as folder:
        file = folder / "patch"
        await asyncio.to_thread(file.write_bytes, args.patch.encode("utf-8", "surrogatepass"))
        output = await git.run("apply", "--whitespace=nowarn", str(file))
    if output.code != 0:
        problem = replace_undecodable(
            " ".join(output.stderr.split()).replace(str(file), "the patch")
        )
        raise OperationError(
            "VcsApplyError",
            f"The patch does not apply; nothing was changed: {problem}",
            reason="not-clean",
        )
    return AppliedPatch(applied=True)
