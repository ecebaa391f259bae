"""Parses the arguments of `/goal`, and describes a reached goal."""

import shlex

from codeloop.schema.api.goal import Goal, GoalEnd
from codeloop.schema.errors import UsageProblem

EXAMPLE = '/goal the tests pass --check "make test"'
_LISTS = {"--check": "checks", "--protect": "protect", "--unprotect": "unprotect"}


def parse_goal(words: str) -> tuple[str, Goal]:
    """Return the text of a goal and what it is checked by. Raises UsageProblem."""
    try:
        arguments = shlex.split(words)
    except ValueError as error:
        raise UsageProblem(f"The goal can't be read: {error}. Write it as in: {EXAMPLE}") from error
    text: list[str] = []
    lists: dict[str, list[str]] = {name: [] for name in _LISTS.values()}
    rounds: int | None = None
    while arguments:
        word = arguments.pop(0)
        if word not in {*_LISTS, "--rounds"}:
            text.append(word)
        elif not arguments:
            raise UsageProblem(f"{word} needs a value, as in: {EXAMPLE}")
        elif word == "--rounds":
            value = arguments.pop(0)
            if not value.isdecimal() or not int(value):
                raise UsageProblem(f"--rounds is a number from 1 on, not {value}.")
            rounds = int(value)
        else:
            lists[_LISTS[word]].append(arguments.pop(0))
    if not text:
        raise UsageProblem(f"The goal is missing. Write it as in: {EXAMPLE}")
    return " ".join(text), Goal(**lists, rounds=rounds)


def describe_reached(end: GoalEnd) -> str:
    """Say that a goal is reached, and by which checks."""
    rounds = "1 round" if end.rounds == 1 else f"{end.rounds} rounds"
    checks = ", ".join(f"`{check.command}`" for check in end.checks)
    return f"The goal is reached after {rounds}: {checks} {'passes' if len(end.checks) == 1 else 'pass'}."
