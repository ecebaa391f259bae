"""What a coordinator and its worker on another machine say to each other: a line of JSON, then bytes of git bundles.

The coordinator sends one Order and its bundle on the worker's stdin, then a byte every FLEET_BEAT. The worker answers
with one Reply and its bundle on stdout; lines before it are those of the other machine's shell.
"""

from collections.abc import Sequence

from msgspec import Struct

from codeloop.automation.fleet.jobs import FleetJob
from codeloop.schema.wire import JSON


class Order(Struct, frozen=True):
    """A job to do from `commit` on. `flags`: of `codeloop run`; `size`: bytes of the bundle that is to be cloned.

    0: the job's repository is an address to clone. `environment`: what the user wants the agent to have of theirs.
    """

    job: FleetJob
    commit: str
    flags: Sequence[str]
    environment: dict[str, str]
    size: int


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """What came of it. `size`: bytes of the bundle with its commits; 0: there are none."""

    result: JSON
    size: int
