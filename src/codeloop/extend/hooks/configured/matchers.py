"""Decides whether a row of `hooks` is for a call: by its matcher (`Edit|Write`) and
its condition (`Bash(git *)`).
"""

import re
from collections.abc import Iterable
from functools import cache
from urllib.parse import urlsplit

from codeloop.kit.wildcard import matches, overlaps
from codeloop.schema.wire import JSON
from codeloop.shell.analysis import analyse

# Matches `Bash` and `Bash(git *)`.
_CONDITION = r"(?s)([^()\s]+?)(?:\((.*)\))?"
# Matches `Bash`, `Edit|Write`, `Edit | Write` and `Bash,PowerShell`: names, no expression.
_PLAIN_MATCHER = r"\s*[\w-]+(?:\s*[|,]\s*[\w-]+)*\s*"


def matches_name(matcher: str, names: Iterable[str]) -> bool:
    """Return whether a matcher matches any of the names: all of them (empty, `*`), `A|B`
    or `A, B`, or a regular expression.
    """
    if matcher.strip() in {"", "*"}:
        return True
    if re.fullmatch(_PLAIN_MATCHER, matcher):
        return not set(re.split(r"\s*[|,]\s*", matcher.strip())).isdisjoint(names)
    expression = _compile_matcher(matcher)
    return any(
        expression.fullmatch(name) if expression is not None else name == matcher for name in names
    )


def matches_call(condition: str, names: Iterable[str], tool_input: JSON) -> bool:
    """Return whether a condition such as `Bash(git *)` or `Edit(*.py)` matches a call;
    in doubt, True.

    It compares each simple command of a line, the path of a file tool, the host of an address.
    """
    match = re.fullmatch(_CONDITION, condition.strip())
    if not condition.strip() or match is None:
        return True
    if not matches_name(match[1], names):
        return False
    pattern = match[2]
    if pattern is None:
        return True
    if isinstance(command := tool_input.get("command"), str):
        # `git:*` is Claude Code's older form of `git *`.
        pattern = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
        analysis = analyse(command)
        # The whole line and each command in it: `cd x && git push` must not
        # slip past `Bash(git *)`.
        texts = (command, *analysis.commands)
        return any(matches(text, pattern) for text in texts) or any(
            overlaps(each, pattern) for each in analysis.possible_commands
        )
    if isinstance(url := tool_input.get("url"), str) and pattern.startswith("domain:"):
        try:
            host = urlsplit(url).hostname or ""
        # An address such as `https://[x`.
        except ValueError:
            return True
        return matches(host, pattern.removeprefix("domain:"))
    path = tool_input.get("file_path", tool_input.get("path"))
    # In doubt the hook runs: one that was left out could not refuse.
    if not isinstance(path, str):
        return True
    return matches(path, pattern) or matches(path, f"*/{pattern.removeprefix('./').lstrip('/')}")


@cache
def _compile_matcher(matcher: str) -> re.Pattern[str] | None:
    """Compile a matcher; None when it is invalid, so that it is compared literally."""
    try:
        return re.compile(matcher)
    except re.error:
        return None
