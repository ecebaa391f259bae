"""What fills a session's window, what it has cost, and which rules count in it."""

from pathlib import Path

import pytest

from codeloop.client.slash.reports import (
    format_context_report,
    format_cost_report,
    format_permission_report,
)
from codeloop.model.chat import Prices, PriceTier
from codeloop.model.testing.replay import SCRIPT_INFO
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.answers import PERMISSION_REVOKE, PERMISSION_RULES
from codeloop.schema.api.session_reports import SESSION_CONTEXT, SESSION_COST
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.permission import Grant, PermissionQuery, RevokeGrant
from codeloop.schema.wire import replace
from tests.support.scripted_project import (
    both_clients,
    make_answer,
    make_call,
    open_scripted_project,
)

__all__ = ["both_clients"]


async def test_a_new_session_has_the_rules_that_are_shown_before_it(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [], permission={"bash": {"git push*": "deny"}}
    ) as it:
        for agent in ("build", "plan", "explore"):
            shown, real = [
                await it.client.call(
                    PERMISSION_RULES, PermissionQuery(session_id=session_id, agent=agent)
                )
                for session_id in (None, it.session_id)
            ]
            assert shown.rules == real.rules


async def test_the_window_is_told_by_part_and_adds_up(tmp_path: Path) -> None:
    made = make_answer(make_call("bash", command="seq 1 400"))
    async with open_scripted_project(
        tmp_path, [made, ScriptedAnswer(text="Counted. " * 50, reasoning="Hm.")]
    ) as it:
        (it.work / "AGENTS.md").write_text("Be brief.\n" * 40)
        await it.prompt("count, please")
        found = await it.client.call(SESSION_CONTEXT, SessionId(session_id=it.session_id))
        names = {(part.group, part.name) for part in found.parts}
        assert {
            ("tools", "built-in"),
            ("conversation", "results of bash"),
            ("conversation", "answers"),
        } <= names
        assert ("instructions", str(it.work / "AGENTS.md")) in names
        total = sum(part.tokens for part in found.parts)
        assert total == pytest.approx(found.used, abs=len(found.parts))
        text = "\n".join(format_context_report(found))
        assert "results of bash" in text


@pytest.mark.parametrize(
    ("prices", "shown"),
    [
        (Prices(), "price unknown"),
        (Prices(is_known=True), "free"),
        (Prices(is_known=True, tiers=(PriceTier(0, Prices()),)), "price unknown"),
        (Prices(input=1_000_000, output=1_000_000, is_known=True), "$"),
    ],
)
async def test_cost_is_told_by_model_and_free_ones_are_no_unknown_ones(
    tmp_path: Path, prices: Prices, shown: str
) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Hello.")], info=replace(SCRIPT_INFO, prices=prices)
    ) as it:
        empty = await it.client.call(SESSION_COST, SessionId(session_id=it.session_id))
        assert format_cost_report(empty) == ["Nothing was used yet."]
        await it.prompt("hello")
        found = await it.client.call(SESSION_COST, SessionId(session_id=it.session_id))
        (model,) = found.models
        assert (model.steps, model.tokens.output) == (1, found.tokens.output)
        lines = format_cost_report(found)
        assert [shown in line for line in lines[:3]] == [False, True, True]
        assert ("set cost of the model" in "\n".join(lines)) == (shown == "price unknown")


async def test_figures_fit_a_narrow_screen(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command="seq 9")), ScriptedAnswer(text="Hello.")]
    ) as it:
        (it.work / "AGENTS.md").write_text("Be brief.\n" * 40)
        await it.prompt("hello")
        session = SessionId(session_id=it.session_id)
        cost = format_cost_report(await it.client.call(SESSION_COST, session), 36)
        assert cost[0] == "scripted/script"
        assert cost[1].strip().startswith("cost price unknown · ")
        context = await it.client.call(SESSION_CONTEXT, session)
        rows = [line for line in format_context_report(context, 36)[1:] if " about " in line]
        assert len(rows) == len(context.parts)
        assert max(map(len, rows)) <= 36


async def test_rules_and_what_is_always_allowed_are_told_and_revoked(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [], permission={"bash": {"git push*": "deny"}}
    ) as it:
        grant = Grant(
            id="per_1",
            session_id=it.session_id,
            directory="",
            time=1,
            permission="bash",
            patterns=["npm test*"],
        )
        it.project.store.permissions.add_grants([grant])
        for session_id in (it.session_id, None):
            found = await it.client.call(PERMISSION_RULES, PermissionQuery(session_id=session_id))
            (own,) = [rule for rule in found.rules if rule.pattern == "git push*"]
            assert (own.action, own.list) == ("deny", 0)
            assert own.origin
            # Of a file with secrets, the rules that no profile lifts decide, also in a new session.
            guard = next(rule for rule in found.rules if rule.pattern == "<secret>" and rule.list)
            assert (guard.permission, guard.action, guard.origin) == ("read", "ask", "built-in")
            assert sum("decides:" in line for line in format_permission_report(found)) == 2
        text = "\n".join(format_permission_report(found))
        assert "npm test*" in text
        assert "git push*" in text
        assert await it.client.call(PERMISSION_REVOKE, RevokeGrant(grant_id="per_1"))
        with pytest.raises(OperationError, match="per_1"):
            await it.client.call(PERMISSION_REVOKE, RevokeGrant(grant_id="per_1"))
        assert not it.project.store.permissions.list_all_grants()
