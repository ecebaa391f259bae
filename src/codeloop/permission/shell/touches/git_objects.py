"""Git subcommands that print contents of files without naming them: from objects, or as diffs."""

import re
from collections.abc import Sequence

from codeloop.permission.shell.touches.arguments import Arguments, Use

_LISTS = re.compile(
    r"--(stat|shortstat|numstat|name-only|name-status|no-patch|summary|raw|dirstat|quiet|compact-summary|check)\b.*|-s|-q"
)
_PATCHES = re.compile(
    r"-[pucmLUW].*|--(patch|cc|dd|unified|function-context|binary|word-diff|color-words|remerge-diff|diff-merges)\b.*|--pat?"
)
_DIFFERS = frozenset({"diff", "show", "difftool"})
_LOGS = frozenset({"log", "reflog", "whatchanged", "stash show", "stash list", "diff-tree", "diff-files", "diff-index"})
_WHOLE = frozenset({"archive", "fast-export", "format-patch", "range-diff"})


def contents(name: str, words: Sequence[str], arguments: Arguments) -> list[Use]:
    """Return the places whose tracked files a subcommand prints: `o` as git has them, `c` only where they changed.

    `v` is a word that is a place if there is one of that name, and a revision otherwise.
    """
    options = [word for word in words if word.startswith("-")]
    shows = any(map(_PATCHES.fullmatch, options))
    if name in _DIFFERS:
        shows = shows or not any(map(_LISTS.fullmatch, options))
    elif name == "grep":
        shows = len(arguments.operands) > 1 or "--cached" in options
    elif name == "cat-file":
        shows = any(option.startswith("--batch") and "check" not in option for option in options) or "-p" in options
    elif name not in _LOGS:
        shows = name in _WHOLE
    texts = arguments.operands[1:] if name == "grep" else arguments.operands
    object_names = [text for text, _ in texts if ":" in text]
    if not shows or "--no-index" in options or (object_names and len(object_names) == len(texts)):
        return []
    role = "c" if name == "diff" and not {"--cached", "--staged", "--merge-base"}.intersection(options) else "o"
    places: list[Use] = [(role, text) for text, is_ended in texts if is_ended] or [(role, ":/")]
    return [*places, *(("v", text) for text, is_ended in texts if not is_ended)]
