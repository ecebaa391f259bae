"""The further workspace roots of a session, which the editor names: its tools reach them as they do the project."""

from collections.abc import Sequence
from typing import Any, cast

from codeloop.client.client import Client
from codeloop.schema.api.session_requests import UpdateSession
from codeloop.schema.message import Session
from codeloop.schema.operation import SESSION_UPDATE
from codeloop.schema.permission import PermissionRule

_ROOTS = "additionalDirectories"
"""The key of the session's metadata that holds them."""


def roots_of(session: Session) -> list[str]:
    """Return the further roots of a session, absolute."""
    roots: Any = (session.metadata or {}).get(_ROOTS)
    return [str(each) for each in cast("list[object]", roots)] if isinstance(roots, list) else []


async def set_roots(client: Client, session: Session, roots: Sequence[str]) -> Session:
    """Let a session reach these folders, instead of those of an earlier call; return it. Raises CodeloopError."""
    before = roots_of(session)
    if before == list(roots):
        return session
    other_rules = [rule for rule in session.permission or () if rule not in _rules_of(before)]
    metadata = {key: value for key, value in (session.metadata or {}).items() if key != _ROOTS}
    update = UpdateSession(
        session_id=session.id,
        metadata={**metadata, _ROOTS: list(roots)} if roots else metadata,
        permission=[*other_rules, *_rules_of(roots)],
    )
    return await client.call(SESSION_UPDATE, update)


def _rules_of(roots: Sequence[str]) -> list[PermissionRule]:
    """Return the rules by which tools reach folders outside of the project without a question."""
    patterns = (pattern for root in roots for pattern in (root, f"{root.rstrip('/')}/*"))
    return [PermissionRule(permission="external_directory", pattern=pattern, action="allow") for pattern in patterns]
