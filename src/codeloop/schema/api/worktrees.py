"""Requests and answers about further work trees of a project's repository, which have branches,
and about its copies.

A copy is a work tree without a branch, in a folder that the client names;
OpenCode's API knows both.
"""

from typing import Literal

from codeloop.schema.api.files import VcsFileDiff
from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.resources import Worktree
from codeloop.schema.wire import Wire


class CreateWorktree(Wire):
    """Creates a work tree with a branch of its own, from the commit that is checked out.

    `name`: becomes the folder's and the branch's name, shortened; `startCommand`: a shell line that
    is run there, after the project's own start command. The answer comes when both have ended.
    Beyond OpenCode's API: `base`, a branch or commit to begin from;
    `sparse`, the only folders that are checked out.
    """

    name: str | None = None
    start_command: str | None = None
    base: str | None = None
    sparse: list[str] | None = None


class RemoveWorktree(Wire):
    """Removes a work tree that was made here. Refused while it has changes or
    commits that would be lost.

    Beyond OpenCode's API: with `force`, what is uncommitted is committed to its branch first,
    and the branch stays.
    """

    directory: str
    force: bool = False


class ResetWorktree(Wire):
    """Sets a work tree that was made here back to the default branch.
    Refused while anything would be lost.
    """

    directory: str


class CreateProjectCopy(Wire):
    """Creates a work tree without a branch, in the folder that the client names;
    `strategy` is `git_worktree`.

    `directory`: an absolute path; `name`: of a new folder in it; if left out, two words.
    """

    project_id: str
    strategy: str
    directory: str
    name: str | None = None


class ProjectCopy(Wire):
    """The folder of a new copy."""

    directory: str


class RemoveProjectCopy(Wire):
    """Removes a copy. Changes that are nowhere else are lost only with `force`;
    a running session forbids it.
    """

    project_id: str
    directory: str
    force: bool


class RefreshProjectCopies(Wire):
    """Looks for copies of a project; every request does that anyway."""

    project_id: str


class GenerateCopyName(Wire):
    """Asks for a short name of a copy, from a text that tells what it is for."""

    project_id: str
    context: str | None = None


class CopyName(Wire):
    """A name for a folder or a branch: lower-case letters, digits and hyphens."""

    name: str


class WorktreeOverview(Wire):
    """A work tree that was created for the project, and what it holds that is nowhere else.

    `state`: `unfinished` is one whose creation was cut off, `removing` one whose removal was;
    `gone`: its folder is missing. `base`: the branch that it was made from, else the commit.
    `changed`: files that differ from its last commit, by path. `ahead`, `behind`: commits that its
    branch has and its base has not, and the reverse.
    `unmerged`: commits that no other branch, tag or remote has.
    `running`: ids of sessions in which a turn runs.
    `created`: the time in ms since 1970. `error`: what is wrong with it,
    or why git could not tell the rest.
    """

    name: str
    directory: str
    state: Literal["ready", "unfinished", "removing", "gone"]
    branch: str | None = None
    base: str | None = None
    changed: list[str] = []
    ahead: int = 0
    behind: int = 0
    unmerged: int = 0
    running: list[str] = []
    created: int = 0
    error: str | None = None


class WorktreeName(Wire):
    """Identifies a work tree by its name, its branch or its folder."""

    name: str


class WorktreeDiff(Wire):
    """What a work tree changed since it left its base, uncommitted and untracked files too.

    `base`: the branch or commit that it was made from;
    `commit`: the one of the base that it is compared with.
    """

    base: str
    commit: str
    files: list[VcsFileDiff]


class MergeWorktree(Wire):
    """Merges a work tree's branch into its base, or into the branch `into`.

    What is uncommitted there is committed first, with `message`.
    `files`: take the whole change of these files alone.
    """

    name: str
    into: str | None = None
    message: str | None = None
    files: list[str] | None = None


class MergeConflict(Wire):
    """A file that both sides changed. `text`: the file with the conflict marked;
    None where it is not text.
    """

    file: str
    text: str | None = None


class WorktreeMerge(Wire):
    """The result of a merge or a rebase.

    `into`: the branch that was merged into, or rebased onto. `commit`: where the changed branch is
    now, which is `into` or, after a rebase, the work tree's own; None: conflicts, nothing changed.
    `committed`: paths of the uncommitted files that were committed to the
    work tree's branch before.
    """

    into: str
    commit: str | None = None
    conflicts: list[MergeConflict] = []
    committed: list[str] = []


class CopyToWorktree(Wire):
    """Copies ignored files of the project (paths relative to its top) into a work tree."""

    name: str
    files: list[str]


_COPY = "/experimental/project/{projectID}/copy"
WORKTREE_LIST = Operation(
    "worktree.list",
    "GET",
    "/experimental/worktree",
    NoArguments,
    list[str],
    "worktrees.create:list_worktree_folders",
)
WORKTREE_CREATE = Operation(
    "worktree.create",
    "POST",
    "/experimental/worktree",
    CreateWorktree,
    Worktree,
    "worktrees.create:create_worktree",
)
WORKTREE_REMOVE = Operation(
    "worktree.remove",
    "DELETE",
    "/experimental/worktree",
    RemoveWorktree,
    bool,
    "worktrees.remove:remove_worktree",
    has_body=True,
)
WORKTREE_RESET = Operation(
    "worktree.reset",
    "POST",
    "/experimental/worktree/reset",
    ResetWorktree,
    bool,
    "worktrees.remove:reset_worktree",
)
WORKTREE_OVERVIEW = Operation(
    "worktree.overview",
    "GET",
    "/worktree",
    NoArguments,
    list[WorktreeOverview],
    "worktrees.overview:describe_worktrees",
)
WORKTREE_DIFF = Operation(
    "worktree.diff",
    "GET",
    "/worktree/{name}/diff",
    WorktreeName,
    WorktreeDiff,
    "worktrees.overview:diff_worktree",
)
WORKTREE_MERGE = Operation(
    "worktree.merge",
    "POST",
    "/worktree/{name}/merge",
    MergeWorktree,
    WorktreeMerge,
    "worktrees.merge:merge_worktree",
)
WORKTREE_REBASE = Operation(
    "worktree.rebase",
    "POST",
    "/worktree/{name}/rebase",
    WorktreeName,
    WorktreeMerge,
    "worktrees.merge:rebase_worktree",
)
WORKTREE_COPY = Operation(
    "worktree.copy",
    "POST",
    "/worktree/{name}/copy",
    CopyToWorktree,
    list[str],
    "worktrees.fill:copy_ignored_files",
)
COPY_CREATE = Operation(
    "v2.projectCopy.create",
    "POST",
    _COPY,
    CreateProjectCopy,
    ProjectCopy,
    "worktrees.copies:create_copy",
)
COPY_REMOVE = Operation(
    "v2.projectCopy.remove",
    "DELETE",
    _COPY,
    RemoveProjectCopy,
    type(None),
    "worktrees.copies:remove_copy",
    has_body=True,
)
COPY_REFRESH = Operation(
    "v2.projectCopy.refresh",
    "POST",
    f"{_COPY}/refresh",
    RefreshProjectCopies,
    type(None),
    "worktrees.copies:refresh_copies",
)
COPY_NAME = Operation(
    "experimental.projectCopy.generateName",
    "POST",
    f"{_COPY}/generate-name",
    GenerateCopyName,
    CopyName,
    "worktrees.copies:name_copy",
)
