"""The agents of a project, what the model is told of them, and the switch from one to another."""

from pathlib import Path

import msgspec

from codeloop.extend.agents import build_agents, list_restrictions, make_subagent_description
from codeloop.model.chat import TextPiece, UserModelMessage
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.permission.defaults import make_base_rules
from codeloop.schema.api.agents import AGENT_LIST, Agent
from codeloop.schema.config import AgentConfig, Config
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRule
from tests.extend.settings import write
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
)

BASE = make_base_rules("auto", Path("/scratch"))


def agents(**own: AgentConfig) -> dict[str, Agent]:
    return build_agents(Config(agent=own), BASE)


def test_the_built_in_agents_are_those_of_the_contract() -> None:
    found = agents()
    assert {name: (agent.mode, agent.hidden) for name, agent in found.items()} == {
        "build": ("primary", None),
        "plan": ("primary", None),
        "general": ("subagent", None),
        "explore": ("subagent", None),
        "compaction": ("primary", True),
        "summary": ("primary", True),
        "sampling": ("subagent", True),
        "title": ("primary", True),
    }
    assert all(agent.native and agent.description for agent in found.values())


def test_configuration_adds_changes_and_disables() -> None:
    found = agents(
        plan=AgentConfig(temperature=0.1),
        general=AgentConfig(disable=True),
        mine=AgentConfig(model="local/a/b", prompt="P", hidden=True),
    )
    assert found["plan"].temperature == 0.1
    assert found["plan"].mode == "primary"
    assert "general" not in found
    mine = found["mine"]
    assert mine.model is not None
    assert (mine.mode, mine.hidden, mine.model.provider_id, mine.model.model_id) == (
        "all",
        True,
        "local",
        "a/b",
    )


def test_restrictions_of_an_untrusted_project_make_no_agent() -> None:
    deny = PermissionRule(permission="bash", pattern="*", action="deny")
    found = agents(ghost=AgentConfig(restrictions=[deny]), build=AgentConfig(restrictions=[deny]))
    assert "ghost" not in found
    config = Config(agent={"build": AgentConfig(restrictions=[deny])})
    assert list_restrictions(config, "build") == (deny,)
    assert list_restrictions(config, "plan") == ()


def test_an_agent_is_written_as_the_wire_has_it() -> None:
    found = agents(mine=AgentConfig(top_p=0.5, steps=3, options={"a": 1}))["mine"]
    written = msgspec.to_builtins(found)
    assert {key: value for key, value in written.items() if key != "permission"} == {
        "name": "mine", "mode": "all", "options": {"a": 1}, "topP": 0.5, "steps": 3,
    }  # fmt: skip


def test_the_task_tool_names_the_subagents_that_the_rules_leave() -> None:
    found = agents(
        mine=AgentConfig(description="Mine: \u202eall"), talker=AgentConfig(mode="primary")
    )
    told = make_subagent_description("Hand it on.", found)
    assert told is not None
    everything = told(BASE)
    assert everything is not None
    assert everything.startswith("Hand it on.")
    lines = everything.splitlines()[-3:]
    assert [line.partition(":")[0] for line in lines] == ["- explore", "- general", "- mine"]
    assert "\u202e" not in everything
    planning = told(BASE, tuple(found["plan"].permission))
    assert planning is not None
    assert "- general" not in planning
    assert told((PermissionRule(permission="task", pattern="*", action="deny"),)) is None


def test_very_many_subagents_are_named_within_bounds() -> None:
    many = {f"a{number:04}": AgentConfig(description="x" * 300) for number in range(100)}
    told = make_subagent_description("Hand it on.", agents(**many))
    assert told is not None
    text = told(BASE)
    assert text is not None
    assert "- a0099" in text
    assert len(text) < 7_000


def texts(it: ScriptedProject, place: int = -1) -> list[str]:
    """Return what the last user turn of a request says."""
    turns = [
        turn for turn in it.model.requests[place].messages if isinstance(turn, UserModelMessage)
    ]
    return [piece.text for piece in turns[-1].content if isinstance(piece, TextPiece)]


async def test_the_model_is_told_when_planning_ends(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path,
        [
            ScriptedAnswer(text="A plan."),
            ScriptedAnswer(text="Done."),
            ScriptedAnswer(text="Again."),
        ],
    ) as it:
        await it.prompt("think", agent="plan")
        assert texts(it) == ["think"]
        await it.prompt("go", agent="build")
        assert texts(it)[0] == "go"
        assert "Planning is over" in texts(it)[1]
        await it.prompt("more")
        assert texts(it) == ["more"]
        first, second = it.model.requests[0], it.model.requests[2]
        assert second.messages[: len(first.messages)] == first.messages


async def test_plan_is_kept_from_editing_by_rules(tmp_path: Path) -> None:
    denied = make_call("write", filePath="a.py", content="x")
    allowed = make_call("write", filePath=".codeloop/plans/p.md", content="1. look")
    async with open_scripted_project(
        tmp_path, [make_answer(denied, allowed), ScriptedAnswer(text="Planned.")]
    ) as it:
        await it.prompt("plan", agent="plan")
        refused, _ = it.results()
        assert "denied" in refused
        assert not (it.work / "a.py").exists()
        assert (it.work / ".codeloop/plans/p.md").read_text() == "1. look"


async def test_each_built_in_agent_has_its_own_prompt(tmp_path: Path) -> None:
    names = ("build", "plan", "general", "explore")
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="ok")] * 4) as it:
        for name in names:
            await it.prompt("x", agent=name)
        starts = {request.system.splitlines()[0] for request in it.model.requests}
        assert len(starts) == 4


async def test_an_agent_of_a_page_works_with_its_prompt_options_and_rules(tmp_path: Path) -> None:
    page = "---\ntemperature: 0.3\nthinking: hard\ntools:\n  bash: false\n---\nYou are terse."
    write(tmp_path, "home/config/agent/terse.md", page)
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="ok")]) as it:
        await it.prompt("x", agent="terse")
        (request,) = it.model.requests
        assert request.system.startswith("You are terse.")
        assert (request.temperature, request.options["thinking"]) == (0.3, "hard")
        assert "bash" not in {tool.name for tool in request.tools}
        listed = await it.client.call(AGENT_LIST, NoArguments())
        assert [agent.name for agent in listed] == sorted(agent.name for agent in listed)
        assert "terse" in {agent.name for agent in listed}
