"""Handlers of version 2: git's branches and changes, and work trees."""

from codeloop.app.handlers.workspace.vcs import list_file_diffs, list_work_trees, open_git
from codeloop.schema.api.files import VCS_DIFF, VCS_GET, VcsDiffQuery
from codeloop.schema.api.project import PROJECT_LIST
from codeloop.schema.api.worktrees import (
    COPY_CREATE,
    COPY_REMOVE,
    WORKTREE_CREATE,
    WORKTREE_LIST,
    WORKTREE_REMOVE,
    CreateProjectCopy,
    CreateWorktree,
    RemoveProjectCopy,
    RemoveWorktree,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2.request import Request2, TaggedError, make_not_found, make_refusal
from codeloop.server.version2.session_forms import make_object, translate_diffs

_STRATEGY = "git_worktree"
_MAX_BRANCHES = 1000


async def get_vcs(request: Request2, _args: NoArguments) -> JSON:
    """Return the branches of a directory."""
    project = await request.get_project()
    info = await request.call(VCS_GET, NoArguments())
    return make_object(
        provider=project.settings.project_root.vcs,
        branch=make_object(current=info.branch, default=info.default_branch),
    )


async def get_base(request: Request2, _args: NoArguments) -> JSON | None:
    """Return the branch that the present one left; None: there is no other."""
    git = open_git(await request.get_project())
    default = None if git is None else await git.find_default_branch()
    if git is None or default is None or default.name == await git.read_branch():
        return None
    return {"name": default.name, "ref": default.ref, "source": "default"}


async def diff_work_tree(request: Request2, args: takes.DiffVcs) -> list[JSON]:
    """Return the changed files of the work tree."""
    if args.mode == "working":
        query = VcsDiffQuery(mode="git", context=args.context)
        return translate_diffs(await request.call(VCS_DIFF, query))
    git = open_git(await request.get_project())
    if git is None:
        return []
    default = await git.find_default_branch()
    name = args.base or (default.ref if default is not None else None)
    base = None if name is None else await git.find_merge_base("HEAD", name)
    if base is None:
        raise make_refusal(f"There is no branch {name or 'to compare with'}. Name one as `base`.")
    return translate_diffs(await list_file_diffs(git, base, args.context or 3))


async def list_branches(request: Request2, args: takes.ListBranches) -> list[str]:
    """Return the names of branches, the latest commit first."""
    git = open_git(await request.get_project())
    if git is None:
        return []
    output = await git.run(
        "for-each-ref", "--sort=-committerdate", "--format=%(refname:short)", "refs/heads"
    )
    found = [line for line in output.lines if args.search.casefold() in line.casefold()]
    return found[: args.limit or _MAX_BRANCHES]


async def _at_project(request: Request2, project_id: str) -> Request2:
    """Return the request for the directory of a project. Raises TaggedError: there is none."""
    project = await request.get_project()
    if project.settings.project_root.project_id == project_id:
        return request
    for each in await request.call(PROJECT_LIST, NoArguments()):
        if each.id == project_id:
            return request.at(each.worktree)
    raise make_not_found("Project", project_id, projectID=project_id)


async def list_worktrees(request: Request2, args: takes.ProjectId2) -> list[JSON]:
    """Return the further work trees of a project."""
    there = await _at_project(request, args.project_id)
    found = await list_work_trees(await there.get_project())
    return [make_object(directory=each.directory, strategy=each.strategy) for each in found]


async def create_worktree(request: Request2, args: takes.CreateWorktree2) -> JSON:
    """Make a work tree: in a folder that the client names, or with a branch among ours."""
    there = await _at_project(request, args.project_id)
    try:
        if args.directory is not None:
            copy = CreateProjectCopy(
                project_id=args.project_id,
                strategy=_STRATEGY,
                directory=args.directory,
                name=args.name,
            )
            made = await there.call(COPY_CREATE, copy)
            return {"directory": made.directory}
        create = CreateWorktree(name=args.name or args.branch, base=args.start)
        return {"directory": (await there.call(WORKTREE_CREATE, create)).directory}
    except CodeloopError as error:
        raise _make_error(error) from error


async def remove_worktree(request: Request2, args: takes.RemoveWorktree2) -> None:
    """Remove a work tree, as long as nothing is lost by that."""
    there = await _at_project(request, args.project_id)
    try:
        if args.directory in await there.call(WORKTREE_LIST, NoArguments()):
            remove = RemoveWorktree(directory=args.directory, force=args.force)
            await there.call(WORKTREE_REMOVE, remove)
            return
        copy = RemoveProjectCopy(
            project_id=args.project_id, directory=args.directory, force=args.force
        )
        await there.call(COPY_REMOVE, copy)
    except CodeloopError as error:
        raise _make_error(error) from error


async def refresh_worktrees(request: Request2, args: takes.ProjectId2) -> None:
    """Do nothing for a project: its work trees are read anew for each request."""
    await _at_project(request, args.project_id)


def _make_error(error: CodeloopError) -> CodeloopError:
    """Return an error of git in the form that version 2 has for work trees."""
    if isinstance(error, TaggedError):
        return error
    data = make_object(message=str(error))
    return TaggedError("WorktreeError", 400, str(error), name="WorktreeError", data=data)
