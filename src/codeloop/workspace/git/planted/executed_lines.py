"""Lines of files in a git directory that make git run a program."""

import re

LINES_BYTES = 4 * 1024 * 1024
"""The most bytes read of one such file; a rebase of ten thousand commits takes a quarter of it."""
_EXECUTES = re.compile(rb"^[ \t]*(?:x|exec)[ \t].*\n?", re.MULTILINE)
_GIT_STRATEGIES = rb"(?:ort|recursive|resolve|octopus|ours|subtree)"
"""Merge strategies of git itself. For any other, `x/y`, git runs a program `git-merge-x/y` of the project."""
_MERGES = re.compile(rb"^(?!" + _GIT_STRATEGIES + rb"$).+\n?", re.MULTILINE)
_OPTIONS = re.compile(
    rb"^(?!\tstrategy = " + _GIT_STRATEGIES + rb"$|\tstrategy-option = ).*strategy.*\n?", re.MULTILINE | re.IGNORECASE
)
EXECUTED_LINES = {
    "rebase-merge/git-rebase-todo": _EXECUTES,
    "rebase-apply/git-rebase-todo": _EXECUTES,
    "rebase-merge/strategy": _MERGES,
    "rebase-apply/strategy": _MERGES,
    "sequencer/opts": _OPTIONS,
}
"""Files of a git directory -> the lines that run a program when the operation is continued."""
UPDATES = re.compile(rb"^[ \t]*update[ \t]*=[ \t]*\"?!.*\n?", re.MULTILINE | re.IGNORECASE)
"""Lines of `.gitmodules` that run a program in versions of git still in use."""
