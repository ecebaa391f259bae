"""Opens the work trees of a project's repository: what git does with them is in
`workspace/git/worktrees.py`.
"""

from codeloop.app.handlers.workspace.vcs import open_git
from codeloop.app.project import Project
from codeloop.schema.errors import ErrorKind, OperationError
from codeloop.workspace.git.worktrees import Worktrees


def open_worktrees(project: Project, kind: ErrorKind) -> Worktrees:
    """Return the work trees of a project's repository.
    Raises OperationError (`kind`) outside of a repository.
    """
    git = open_git(project)
    if git is None:
        project_root = project.settings.project_root
        reason = f"{project_root.root} is in no git repository; `git init` makes one."
        raise OperationError(kind, project_root.warning or reason)
    return Worktrees(git, is_trusted=project.settings.trusted)
