"""Ceilings: further rules that a session's calls must pass, inherited from the session that created it."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from codeloop.schema.message import Session
from codeloop.schema.permission import PermissionRule, Profile
from codeloop.schema.wire import JSON, Wire

CEILINGS_KEY = "within"
"""The key of the ceilings in a session's metadata."""


class Ceiling(Wire):
    """An agent with the rules of a session: a call below the ceiling is never allowed more than they allow.

    `agent` None: no agent was chosen. `profile` None: the profile of the session that the ceiling is for.
    """

    agent: str | None = None
    permission: tuple[PermissionRule, ...] = ()
    profile: Profile | None = None


DENY_ALL = Ceiling(permission=(PermissionRule(permission="*", pattern="*", action="deny"),))


def read_ceilings(session: Session) -> tuple[Ceiling, ...]:
    """Return a session's stored ceilings: of the agent that called it, and of the session that it was copied from."""
    try:
        return msgspec.convert((session.metadata or {}).get(CEILINGS_KEY, []), tuple[Ceiling, ...])
    except msgspec.ValidationError:
        # Unreadable ceilings must not widen what the session may do.
        return (DENY_ALL,)


def set_ceilings(metadata: JSON | None, ceilings: tuple[Ceiling, ...]) -> JSON | None:
    """Return a session's metadata with these ceilings."""
    other_metadata = {name: value for name, value in (metadata or {}).items() if name != CEILINGS_KEY}
    return {**other_metadata, CEILINGS_KEY: msgspec.to_builtins([*ceilings])} if ceilings else other_metadata or None


def collect_ceilings(
    lineage: Sequence[Session], find_profile: Callable[[Sequence[Session]], Profile]
) -> Iterator[Ceiling]:
    """Yield every ceiling of a session: its own, and its parents with theirs.

    `lineage`: the session and its parents, the nearest first. `find_profile`: returns the profile of the first session
    of a lineage.
    """
    for number, session in enumerate(lineage):
        if number:
            rules = tuple(session.permission or ())
            yield Ceiling(agent=session.agent, permission=rules, profile=find_profile(lineage[number:]))
        yield from read_ceilings(session)
