"""`TurnFacts`: what the program itself found that a turn did, whatever its answer says."""

from typing import Literal

from codeloop.schema.wire import Wire

CheckState = Literal["passed", "failed", "unproven", "not run", "none"]
"""How the checks of a turn stand: unproven: nothing shows it, or files changed later;
not run: the project has checks.

`none`: the project has no check that can be run, or the turn changed no code.
"""


class TurnFacts(Wire):
    """What a turn did to the project: the files that differ at its end,
    with the sums of their lines.

    `git`: a phrase for each change of commits, branches and stashes. `lost_files`: files with
    uncommitted work of the user's that commands removed or put back to the last commit;
    `lost_count`: their number, as some are not named.
    `unrecorded`: files whose changes can't be undone. `false_claims`: what the answer says and
    nothing in the turn can have done, a clause each.
    """

    files: int
    additions: int
    deletions: int
    checks: CheckState
    git: tuple[str, ...] = ()
    lost_files: tuple[str, ...] = ()
    lost_count: int = 0
    unrecorded: tuple[str, ...] = ()
    false_claims: tuple[str, ...] = ()
