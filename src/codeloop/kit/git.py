"""Builds git commands that run no program named by a repository or a variable."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from codeloop.kit.programs import find_program, make_safe_environment

_MISSING_GIT = "/nonexistent/git"
"""The program named in the error when git is not installed."""

# A repository's own configuration can name programs; none of them may run.
_SAFE_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.sshCommand=false"),
    *("-c", "core.alternateRefsCommand=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "gc.auto=0"),
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
)
_SAFE_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_CEILING_DIRECTORIES": "/",
    "GIT_NO_LAZY_FETCH": "1",
    # Stronger than the repository's own settings: before 2.45 git fetches missing objects of a partial clone.
    "GIT_ALLOW_PROTOCOL": "",
    "LC_ALL": "C",
}
_IGNORE_USER_SETTINGS = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_GLOBAL": "/dev/null"}


class GitCall(Struct, frozen=True):
    """A command that runs git, and the environment to run it in."""

    command: list[str]
    environment: dict[str, str]


def make_git_call(
    folder: Path, *arguments: str, environment: Mapping[str, str], uses_user_settings: bool = False, program: str = ""
) -> GitCall:
    """Return a call of git on a git directory. By itself it runs no other program, fetches nothing and writes nothing.

    No variable of `environment` leads git elsewhere. `uses_user_settings`: the user's own configuration is read as
    well. `program`: the path of git; if left out, the git on the PATH, never one in the folder that it runs in.
    """
    program = program or find_program("git", environment.get("PATH")) or _MISSING_GIT
    safe_environment = make_safe_environment(environment)
    variables = {name: value for name, value in safe_environment.items() if not name.startswith("GIT_")}
    variables |= _SAFE_ENVIRONMENT
    if not uses_user_settings:
        variables |= _IGNORE_USER_SETTINGS
    return GitCall([program, *_SAFE_OPTIONS, f"--git-dir={folder}", *arguments], variables)


def make_git_settings(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that add settings (name -> value) to those that `environment` already has for git."""
    count = environment.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isascii() and count.isdecimal() else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings.items(), first):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
