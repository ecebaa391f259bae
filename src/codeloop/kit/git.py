"""How git is called: it runs nothing that a repository or a variable configures, fetches nothing, asks nothing."""

from collections.abc import Mapping

# A repository's own configuration can name programs; none of them may run.
GIT_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.sshCommand=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "gc.auto=0"),
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
)
"""What stands between `git` and its command."""


def git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which no variable leads git elsewhere; the user's own configuration is read."""
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


def bare_git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git reads no configuration but its command line."""
    return {
        **git_environment(environment),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
