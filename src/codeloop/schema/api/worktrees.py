"""Further work trees of a project's repository: made, listed, set back, removed."""

from codeloop.schema.wire import Wire


class CreateWorktree(Wire):
    """Makes a work tree with a branch of its own, from the commit that is checked out.

    `name`: becomes the folder's and the branch's, made short; `startCommand`: a shell line that is run there, after
    the project's own start command. The answer comes when both have ended.
    """

    name: str | None = None
    start_command: str | None = None


class RemoveWorktree(Wire):
    """Removes a work tree that was made here. Refused while it has changes or commits that would be lost."""

    directory: str


class ResetWorktree(Wire):
    """Sets a work tree that was made here back to the default branch. Refused while anything would be lost."""

    directory: str


class CreateProjectCopy(Wire):
    """Makes a work tree without a branch in a folder that is named; `strategy` is `git_worktree`.

    `directory`: an absolute path; `name`: of a new folder in it, else two words.
    """

    project_id: str
    strategy: str
    directory: str
    name: str | None = None


class ProjectCopy(Wire):
    """The folder of a copy that was made."""

    directory: str


class RemoveProjectCopy(Wire):
    """Removes a copy. Changes that are nowhere else are lost only with `force`; a running session forbids it."""

    project_id: str
    directory: str
    force: bool


class RefreshProjectCopies(Wire):
    """Looks for copies of a project; they are looked for at each request anyway."""

    project_id: str


class GenerateCopyName(Wire):
    """Asks for a short name of a copy, from words that tell what it is for."""

    project_id: str
    context: str | None = None


class CopyName(Wire):
    """A name for a folder or a branch: lower-case letters, digits and hyphens."""

    name: str
