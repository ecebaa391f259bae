"""The goal of a prompt, and its outcome."""

from typing import Literal

from codeloop.schema.wire import Count, Wire


class Goal(Wire):
    """What a prompt must reach: its checks exit with 0; without checks a model judges what the turn's commands show.

    OpenCode's API has no goals. `checks`: command lines. `protect`, `unprotect`: globs of further files that a check
    consists of, and of those that may be changed. `rounds`: how often the model is told to continue, at most.
    """

    checks: list[str] = []
    protect: list[str] = []
    unprotect: list[str] = []
    rounds: Count | None = None


class GoalCheck(Wire):
    """A check as it was run last, after the last edit. `problem`: why it does not count as passed; empty: it did.

    `exit_code`: None if the check was stopped, as by its timeout.
    """

    command: str
    exit_code: int | None
    problem: str = ""


class GoalEnd(Wire):
    """Whether a goal was reached.

    `left`: what is missing, a phrase each; `reason`: why the work ended before it was reached.
    """

    status: Literal["done", "not_done"]
    rounds: int
    checks: list[GoalCheck] = []
    left: list[str] = []
    reason: str = ""
