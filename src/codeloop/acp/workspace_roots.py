"""The additional directories of an editor's workspace,
which the tools of a session may use like the project.
"""

from collections.abc import Sequence
from typing import Any, cast

from codeloop.client.client import Client
from codeloop.schema.api.session_requests import SESSION_UPDATE, UpdateSession
from codeloop.schema.message import Session
from codeloop.schema.permission import PermissionRule

_ROOTS_KEY = "additionalDirectories"
"""The key of the session's metadata that lists them."""


def list_roots(session: Session) -> list[str]:
    """Return the absolute paths of a session's additional directories."""
    roots: Any = (session.metadata or {}).get(_ROOTS_KEY)
    return [str(each) for each in cast("list[object]", roots)] if isinstance(roots, list) else []


async def set_roots(client: Client, session: Session, roots: Sequence[str]) -> Session:
    """Note the additional directories of a session, and return it. Raises CodeloopError.

    The note only shows them. They are open in the turns that the editor begins, which name them
    (`RunLimits`): not for the session itself, which a terminal may continue later,
    nor for its copies.
    """
    before = list_roots(session)
    # Earlier versions stored rules.
    stored_rules = _make_rules(before)
    other_rules = [rule for rule in session.permission or () if rule not in stored_rules]
    if before == list(roots) and len(other_rules) == len(session.permission or ()):
        return session
    metadata = {key: value for key, value in (session.metadata or {}).items() if key != _ROOTS_KEY}
    update = UpdateSession(
        session_id=session.id,
        metadata={**metadata, _ROOTS_KEY: list(roots)} if roots else metadata,
        permission=other_rules,
    )
    return await client.call(SESSION_UPDATE, update)


def _make_rules(roots: Sequence[str]) -> list[PermissionRule]:
    """Make the permission rules by which earlier versions opened the directories."""
    patterns = (pattern for root in roots for pattern in (root, f"{root.rstrip('/')}/*"))
    return [
        PermissionRule(permission="external_directory", pattern=pattern, action="allow")
        for pattern in patterns
    ]
