"""Which commands of git discard work: the rule `<loss>` of the profile auto asks about them."""

from collections.abc import Iterator, Sequence
from functools import cache

from codeloop.kit.wildcard import matches

# By subcommand of git, the options with which it discards work, rewrites a commit or passes over
# the checks of hooks; git accepts the long ones shortened. `""`: it does so with any words. What
# the agent has made itself is not
# an exception: nobody knows which of its commits others have seen.
_OPTIONS = {
    "commit": ("--am", "-n", "--no-v"),
    "merge": ("--no-verif",),
    "am": ("--no-verif",),
    "rebase": ("--no-verif",),
    "reset": ("--h",),
    "checkout": ("-f", "--force"),
    "switch": ("-f", "--force", "--discard"),
    "clean": ("-f", "-df", "-xf", "-dxf", "-xdf", "--force"),
    "branch": ("-D", "-f", "-M", "-C", "--force"),
    "tag": ("-f", "-d", "--force", "--delete"),
    "worktree remove": ("-f", "--force"),
    "update-ref": ("-d",),
    "stash drop": ("",),
    "stash clear": ("",),
    "reflog expire": ("",),
    "reflog delete": ("",),
    "filter-branch": ("",),
}


def _list_patterns() -> Iterator[str]:
    """Yield the patterns of the commands of `_OPTIONS`, with the option first or behind others."""
    for subcommand, options in _OPTIONS.items():
        for option in options:
            if option:
                yield f"git {subcommand} {option}*"
                yield f"git {subcommand} * {option}*"
            else:
                yield f"git {subcommand} *"


@cache
def _list_all_patterns() -> tuple[str, ...]:
    return tuple(_list_patterns())


def discards_work(text: str, spellings: Sequence[str] = ()) -> bool:
    """Return whether a command of git discards work,
    rewrites a commit or passes over the checks of hooks.

    `spellings`: the same command in other words, such as `git reset --hard` of `git
    -C folder reset --hard`.
    """
    texts = [each for each in (text, *spellings) if each.startswith("git ")]
    return any(matches(each, pattern) for each in texts for pattern in _list_all_patterns())
