"""What every request carries stays small: the whole first request, as each protocol sends it."""

import re
from pathlib import Path

import msgspec
import pytest

from codeloop.agent.calls.call_rules import list_rulesets
from codeloop.agent.request.system_prompt import read_prompt
from codeloop.app.toolbox import list_builtin_tools
from codeloop.model.chat import ModelInfo
from codeloop.model.protocols.anthropic.request import AnthropicRequestEncoder
from codeloop.model.protocols.chat_completions.request import ChatCompletionsRequestEncoder
from codeloop.model.quirks import ANTHROPIC_QUIRKS, find_quirks
from codeloop.model.testing.script import ScriptedAnswer
from tests.support.sandbox_support import find_sandbox
from tests.support.scripted_project import open_scripted_project

FIRST_REQUEST, WEAK_SANDBOX = 9 * 1024, 128
"""Bytes of the JSON body: system prompt, environment, all default tools, a short prompt;
what a weak sandbox adds.
"""
MODELS = [
    ("anthropic", "claude-sonnet-4-5"),
    ("openai", "gpt-4.1"),
    ("openai", "gpt-5"),
    ("acme", "some-model"),
]
UNLESS_CONFIGURED = {"multiedit", "batch", "todoread"}


@pytest.mark.parametrize(("provider", "model"), MODELS)
async def test_the_first_request_with_all_default_tools_is_small(
    tmp_path: Path, provider: str, model: str
) -> None:
    for number in range(60):  # as much as is told of a project
        (tmp_path / "work" / f"{number:02}-a-long-name-of-a-folder").mkdir(parents=True)
    info = ModelInfo(provider_id=provider, id=model, name=model)
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="ok")], info=info) as it:
        await it.prompt("fix the bug in the parser")
        (request,) = it.model.requests
    assert {"bash", "read", "todowrite", "task", "question"} <= {
        spec.name for spec in request.tools
    }
    where = str(tmp_path).encode()
    for body in (
        ChatCompletionsRequestEncoder(info, find_quirks(info)),
        AnthropicRequestEncoder(info, ANTHROPIC_QUIRKS),
    ):
        encoded = body.encode(request)
        assert where in encoded
        # Without namespaces the model is told what its sandbox does without.
        limit = FIRST_REQUEST if find_sandbox() == "namespaces" else FIRST_REQUEST + WEAK_SANDBOX
        assert len(encoded.replace(where, b"/home/user/projects")) <= limit


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_what_parallel_calls_make_superfluous_is_offered_when_it_is_configured(
    tmp_path: Path, is_allowed: bool
) -> None:
    permission = dict.fromkeys(UNLESS_CONFIGURED, "allow") if is_allowed else {}
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="ok")], permission=permission
    ) as it:
        await it.prompt("go")
        offered = {spec.name for spec in it.model.requests[0].tools}
    assert offered & UNLESS_CONFIGURED == (UNLESS_CONFIGURED if is_allowed else set())


def words_in_a_row(text: str, count: int = 5) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[n : n + count]) for n in range(len(words) - count + 1)}


@pytest.mark.parametrize("prompt", ["build", "plan", "general", "explore", "shared"])
def test_what_a_tool_says_of_itself_no_system_prompt_repeats(prompt: str) -> None:
    described = set[tuple[str, ...]]().union(
        *(words_in_a_row(tool.description) for tool in list_builtin_tools())
    )
    assert len(described) > 200
    assert not words_in_a_row(read_prompt(prompt)) & described


async def test_the_order_of_the_tools_never_changes_inside_a_session(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as room:
        engine = room.project.engine
        rulesets, *_ = list_rulesets(engine, room.session_id, engine.get_agent("build"))
        first, second = (engine.toolbox.list_specs("m", *rulesets) for _ in range(2))
        assert msgspec.json.encode(first) == msgspec.json.encode(second)
