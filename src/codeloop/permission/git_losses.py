"""Which commands of git discard work: the rule `<loss>` of the profile auto asks about them."""

import re
from collections.abc import Sequence

# By subcommand of git, an expression for an option with which it discards work, rewrites a commit
# or passes over the checks of hooks: short ones also within others (`-qf`), long ones also
# shortened, as git accepts them. `""`: it does so with any words. What the agent has made itself is
# not an exception: nobody knows which of its commits others have seen.
_FORCE = "-[a-zA-Z]*f|--force"
_OPTIONS = {
    # The letters before are those of options without a value: `-mnew` has a message.
    "commit": "-[abeiopqsvz]*n|--am|--no-v",
    "merge": "--no-verif",
    "am": "--no-verif",
    "rebase": "--no-verif",
    "reset": "--h",
    "checkout": "-[ac-z]*[fB]|--force",
    "switch": "-[a-z]*[fC]|--force|--discard",
    "clean": _FORCE,
    "branch": "-[a-tv-z]*[DfMC]|--force",
    "tag": "-[a-tv-z]*[fd]|--force|--delete",
    "worktree remove": _FORCE,
    "update-ref": "-d",
    "read-tree": "--reset",
    "stash drop": "",
    "stash clear": "",
    "reflog expire": "",
    "reflog delete": "",
    "filter-branch": "",
    "filter-repo": "",
}
_OTHER_HOOKS = "core.hookspath"


def discards_work(text: str, spellings: Sequence[str] = ()) -> bool:
    """Return whether a command of git discards work,
    rewrites a commit or passes over the checks of hooks.

    `spellings`: the same command in other words, such as `git reset --hard` of `git
    -C folder reset --hard`.
    """
    texts = [each for each in (text, *spellings) if each.startswith("git ")]
    return any(_OTHER_HOOKS in each.lower() or _has_option(each) for each in texts)


def _has_option(text: str) -> bool:
    for subcommand, options in _OPTIONS.items():
        start = f"git {subcommand}"
        rest = text.removeprefix(start)
        if text.startswith(start) and (not rest or rest[0] == " "):
            return re.search(f" (?:{options})", rest) is not None if options else True
    return False
