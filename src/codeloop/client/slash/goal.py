"""`/goal`: parses its arguments, and describes a goal that was reached."""

import shlex

from codeloop.schema.api.session_inputs import Goal, GoalEnd
from codeloop.schema.errors import UsageProblem

EXAMPLE = '/goal the tests pass --check "make test"'
# Options that may be given several times, and the field of `Goal` that lists their values.
_LIST_OPTIONS = {"--check": "checks", "--protect": "protect", "--unprotect": "unprotect"}


def parse_goal(words: str) -> tuple[str, Goal]:
    """Parse a text with the options --check, --protect, --unprotect and --rounds;
    return the text and the goal.

    Raises UsageProblem.
    """
    try:
        arguments = shlex.split(words)
    except ValueError as error:
        raise UsageProblem(f"The goal can't be read: {error}. Write it as in: {EXAMPLE}") from error
    text: list[str] = []
    lists: dict[str, list[str]] = {name: [] for name in _LIST_OPTIONS.values()}
    rounds: int | None = None
    while arguments:
        word = arguments.pop(0)
        if word not in {*_LIST_OPTIONS, "--rounds"}:
            text.append(word)
        elif not arguments:
            raise UsageProblem(f"{word} needs a value, as in: {EXAMPLE}")
        elif word == "--rounds":
            value = arguments.pop(0)
            if not value.isdecimal() or not int(value):
                raise UsageProblem(f"--rounds is a number from 1 on, not {value}.")
            rounds = int(value)
        else:
            lists[_LIST_OPTIONS[word]].append(arguments.pop(0))
    if not text:
        raise UsageProblem(f"The goal is missing. Write it as in: {EXAMPLE}")
    return " ".join(text), Goal(**lists, rounds=rounds)


def describe_reached_goal(end: GoalEnd) -> str:
    """Return a sentence with the rounds and the checks of a reached goal."""
    rounds = "1 round" if end.rounds == 1 else f"{end.rounds} rounds"
    checks = ", ".join(f"`{check.command}`" for check in end.checks)
    return f"The goal is reached after {rounds}: {checks} {'passes' if len(end.checks) == 1 else 'pass'}."
