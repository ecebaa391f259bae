"""Finding a text in one session, wherever it stands."""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_search import SESSION_FIND, FindInSession, TextMatch
from codeloop.schema.errors import OperationError
from tests.support.scripted_project import (
    ScriptedProject,
    both_clients,
    make_answer,
    make_call,
    open_scripted_project,
)

__all__ = ["both_clients"]


async def find(it: ScriptedProject, query: str) -> list[TextMatch]:
    result = await it.client.call(
        SESSION_FIND, FindInSession(session_id=it.session_id, query=query)
    )
    assert result.complete
    return result.found


async def test_prompts_answers_thinking_and_tools_are_found_in_their_order(tmp_path: Path) -> None:
    made = make_answer(
        make_call("bash", command="echo 'a sec''ret Größe'"), text="I look for a secret."
    )
    last = ScriptedAnswer(text="A Secret it is.", reasoning="Hm, secret.")
    async with open_scripted_project(tmp_path, [made, last]) as it:
        await it.prompt("the secret, the secret")
        found = await find(it, "secret")
        assert [each.kind for each in found] == [
            "prompt",
            "prompt",
            "answer",
            "tool",
            "reasoning",
            "answer",
        ]
        assert [each.ordinal for each in found[:2]] == [0, 1]
        assert found[3].tool == "bash"
        assert found[3].text.startswith("…") or "a secret Größe" in found[3].text
        # A capital: case counts.
        assert [each.text for each in await find(it, "Secret")] == ["A Secret it is."]
        assert [each.kind for each in await find(it, "secret  größe")] == ["tool"]
        assert await find(it, "nobody said this") == []
        assert await find(it, "prt_") == []


@pytest.mark.parametrize(("session", "query"), [("ses_none", "x"), ("", "  ")])
async def test_what_can_not_be_found_in_is_refused(
    tmp_path: Path, session: str, query: str
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        with pytest.raises(OperationError):
            await it.client.call(
                SESSION_FIND, FindInSession(session_id=session or it.session_id, query=query)
            )
