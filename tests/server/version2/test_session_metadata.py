"""What version 2 keeps with a session: clients' metadata is theirs and changes none of it."""

from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.calls.call_rules import Ceiling, read_ceilings
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import replace
from tests.server.support.serving import Served, served

CLIENTS = {
    "clientRules": 1,
    "instructions": "be brief",
    "environment": {"STAGE": 1, "LD_PRELOAD": "/x"},
    "viewed": "yes",
}
OWN = {"codeloop.environment": {"PATH": "/x"}, "codeloop.instructions": 3}
DENIED = PermissionRule(permission="bash", pattern="*", action="deny")
DENIED_ABOVE = [{"permission": "bash", "pattern": "*", "action": "deny"}]
RULES = [{"action": "shell", "resource": "*", "effect": "deny"}]


@pytest.mark.parametrize("version", [1, 2])
async def test_metadata_of_clients_is_only_metadata(version: int, tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        base = "/session" if version == 1 else "/api/session"
        made = await it.post(base, {"metadata": CLIENTS | OWN})
        session_id = made["id"] if version == 1 else made["data"]["id"]
        await it.http.put(
            f"/api/experimental/session/{session_id}/instructions/entries/key",
            json={"value": "mine"},
        )
        for more in ({}, {"more": True}):
            changed = await it.http.patch(
                f"{base}/{session_id}", json={"metadata": CLIENTS | OWN | more}
            )
            assert changed.status_code < 300, changed.text
            shown = (await it.get(f"/api/session/{session_id}"))["data"]
            assert shown["metadata"] == CLIENTS | more
            session = (await it.project()).store.get_session(session_id)
            assert session.variables == {}
            entries = await it.get(f"/api/experimental/session/{session_id}/instructions/entries")
            assert entries["data"] == [{"key": "key", "value": "mine"}]


async def read(it: Served, session_id: str) -> tuple[Any, tuple[Ceiling, ...]]:
    """Return the permissions of a session as clients see them, and its ceilings."""
    shown = (await it.get(f"/api/session/{session_id}"))["data"]
    return shown.get("permissions"), read_ceilings(
        (await it.project()).store.get_session(session_id)
    )


async def change(it: Served, session_id: str, **fields: Any) -> None:
    changed = await it.http.patch(f"/api/session/{session_id}", json=fields)
    assert changed.status_code == 204, changed.text


async def test_a_client_changes_its_own_ceiling_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        above = Ceiling(permission=(DENIED,))
        session = await it.session()
        (await it.project()).store.update_session(
            session,
            lambda one: replace(
                one,
                metadata={"within": [{"permission": DENIED_ABOVE}], "profile": "strict"},
            ),
        )
        # As if the rules of the parent were the client's.
        await change(it, session, metadata={"clientRules": DENIED_ABOVE, "within": []})
        await change(it, session, permissions=RULES)
        own = Ceiling(permission=(DENIED,), is_from_client=True)
        assert await read(it, session) == (RULES, (above, own))
        await change(it, session, metadata={"within": [], "codeloop.x": 1})
        assert await read(it, session) == (RULES, (above, own))
        await change(it, session, permissions=[])
        assert await read(it, session) == (None, (above,))
        stored = (await it.project()).store.get_session(session).metadata or {}
        assert stored["profile"] == "strict"


async def test_a_copy_keeps_the_ceiling_that_it_was_copied_with(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        session = (await it.post("/api/session", {"permissions": RULES}))["data"]["id"]
        copy = (await it.post(f"/api/session/{session}/fork"))["data"]["id"]
        await change(it, copy, permissions=[])
        _, ceilings = await read(it, copy)
        assert ceilings == (Ceiling(permission=(DENIED,)),)


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "BASH_ENV", "GIT_SSH_COMMAND", "ä", "a b"])
async def test_variables_that_change_what_programs_do_are_refused(
    name: str, tmp_path: Path
) -> None:
    async with served(tmp_path) as it:
        session = await it.session()
        path = f"/api/session/{session}/environment"
        refused = await it.http.put(path, json={"variables": {"STAGE": "x", name: "/x"}})
        assert refused.status_code == 400, refused.text
        assert name in refused.json()["message"]
        kept = await it.http.put(path, json={"variables": {"STAGE": "x"}})
        assert kept.status_code == 204, kept.text
        assert (await it.project()).store.get_session(session).variables == {"STAGE": "x"}
