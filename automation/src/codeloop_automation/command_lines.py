"""Command lines of the programs that unattended runs start: codeloop itself, and git."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from codeloop.kit.git import (
    GitCall,
    explain_refused_folder,
    find_git,
    find_git_folder,
    make_git_call,
)
from codeloop.kit.git.own_folder import UnusableRepository, open_own_folder, read_real_folder
from codeloop.kit.git.user_filters import make_filter_variables
from codeloop.schema.errors import CodeloopError, UsageProblem

# With -P, Python does not look for modules in the current folder first: it may be a project
# with a file `codeloop.py`.
CODELOOP_COMMAND = (sys.executable, "-P", "-m", "codeloop")


@contextmanager
def open_git_call(
    *arguments: str,
    environment: Mapping[str, str],
    tree: Path | None = None,
    folder: Path | None = None,
    uses_filters: bool = True,
) -> Generator[GitCall]:
    """Yield a call of git with the user's own configuration, to be run while the context is open.

    `tree`: the top of a clone in which an agent works: what it configures is not read. `folder`: a
    bare repository of our own instead. Neither: the command makes one, or needs none.
    `uses_filters`: those of the user, and git-lfs, run in the tree. Raises CodeloopError: git is
    not installed, or the tree has no repository of its own.
    """
    program = find_git(environment)
    if program is None:
        raise UsageProblem("git was not found on the PATH. Install it, then try again.")

    def make(git_folder: Path | None, *words: str) -> GitCall:
        return make_git_call(
            git_folder,
            *words,
            environment=environment,
            uses_user_settings=True,
            is_online=True,
            program=program,
        )

    if tree is None:
        yield make(folder, *arguments)
        return
    git_folder = find_git_folder(tree)
    if git_folder is None:
        raise CodeloopError(
            explain_refused_folder(tree) or f"{tree} is no longer a git repository."
        )
    real = read_real_folder(git_folder, environment)
    try:
        with open_own_folder(real, environment) as own:
            call = make(own, f"--work-tree={tree}", "-C", str(tree), *arguments)
            filtering = (
                make_filter_variables(real, call.environment) if uses_filters else call.environment
            )
            yield GitCall(call.command, filtering)
    except UnusableRepository as error:
        raise CodeloopError(str(error)) from error
