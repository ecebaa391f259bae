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
from codeloop.schema.api.project import TOOL_IDS
from codeloop.schema.operation import NoArguments
from codeloop.tool.toolbox import PreparedCall
from tests.support.sandbox_support import find_sandbox
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

FIRST_REQUEST, WEAK_SANDBOX, PROJECT = 6_500, 128, 700
"""Bytes of system prompt and all default tools; what a weak sandbox adds;
facts of a large project, and the prompt.
"""
MODELS = [
    ("anthropic", "claude-sonnet-4-5"),
    ("openai", "gpt-4.1"),
    ("openai", "gpt-5"),
    ("acme", "some-model"),
]
UNSENT_ARGUMENTS = {
    "bash": {"workdir": "src", "description": "Lists", "reset": True},
    "grep": {"before": 1, "after": 2, "multiline": True},
    "webfetch": {"format": "text", "timeout": 5},
}
UNLESS_CONFIGURED = {
    "multiedit",
    "batch",
    "todoread",
    "list",
    "bash_output",
    "bash_kill",
    "task_output",
}


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
        assert len(encoded.replace(where, b"/home/user/projects")) <= limit + PROJECT


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


@pytest.mark.parametrize(
    "permission", [{"*": "allow"}, {"*": "ask"}, {"bash": "allow", "task": "allow"}]
)
async def test_a_rule_for_everything_offers_no_further_tools(
    tmp_path: Path, permission: dict[str, str]
) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="ok")], permission=permission
    ) as it:
        await it.prompt("go")
    assert not {spec.name for spec in it.model.requests[0].tools} & UNLESS_CONFIGURED


@pytest.mark.parametrize("agent", ["build", "plan", "explore", "general"])
async def test_no_agent_is_offered_what_other_tools_do_but_all_are_listed(
    tmp_path: Path, agent: str
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        engine = it.project.engine
        rulesets = list_rulesets(engine, it.session_id, engine.get_agent(agent))
        offers = [
            {spec.name for spec in engine.toolbox.list_specs("m", *rules)} for rules in rulesets
        ]
        assert not set.intersection(*offers) & UNLESS_CONFIGURED
        assert set(await it.client.call(TOOL_IDS, NoArguments())) >= UNLESS_CONFIGURED


async def test_parameters_that_nobody_uses_are_understood_and_not_sent(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        toolbox = it.project.engine.toolbox
        sent = {spec.name: spec.parameters["properties"] for spec in toolbox.list_specs("m")}
        for name, arguments in UNSENT_ARGUMENTS.items():
            assert not arguments.keys() & sent[name].keys()
            required = dict.fromkeys(toolbox.tools_by_name[name].parameters["required"], "x")
            prepared = toolbox.prepare(name, msgspec.json.encode(required | arguments).decode())
            assert isinstance(prepared, PreparedCall)
            assert prepared.input == required | arguments
            assert not prepared.note


async def test_the_tool_for_background_work_is_offered_once_there_is_any(tmp_path: Path) -> None:
    begin = make_call("bash", command="echo up; exec sleep 600", run_in_background=True)
    look, stop = (
        make_call("bash_output", id="bash_1", wait=60_000),
        make_call("bash_output", id="bash_1", stop=True),
    )
    script = [
        make_answer(begin),
        make_answer(look),
        make_answer(stop),
        *[ScriptedAnswer(text="ok")] * 2,
    ]
    async with open_scripted_project(tmp_path, script) as it:
        await it.prompt("go")
        results = it.results()
        await it.prompt("go on")
    offers = [[spec.name for spec in request.tools] for request in it.model.requests]
    assert "bash_output" not in offers[0]
    assert all(sorted(names) == sorted([*offers[0], "bash_output"]) for names in offers[1:]), (
        "it stays offered"
    )
    assert results[0].startswith(
        "Started in the background as bash_1. bash_output reads its output"
    )
    assert results[1].startswith("up\n")
    assert results[2] == "bash_1 was ended with all its processes."


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
