"""What every request carries stays small: the tools of the default agent, and with the system prompt."""

from pathlib import Path

import msgspec
import pytest

from codeloop.agent.request.system_prompt import system_prompt
from codeloop.model.chat import ModelInfo, ToolSpec
from codeloop.model.quirks import quirks_of
from codeloop.model.wire.tool_schema import parameters_of
from codeloop.schema.wire import JSON
from tests.support.project import rig

TOOLS, OVERHEAD = 8_192, 12 * 1024
MODELS = [("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-4.1"), ("openai", "gpt-5"), ("acme", "some-model")]


def sent(spec: ToolSpec, info: ModelInfo) -> JSON:
    parameters, strict = parameters_of(spec.parameters, quirks_of(info))
    function = {"name": spec.name, "description": spec.description, "parameters": parameters}
    return {"type": "function", "function": {**function, "strict": True} if strict else function}


@pytest.mark.parametrize(("provider", "model"), MODELS)
async def test_the_tools_of_the_default_agent_and_the_whole_overhead_are_small(
    tmp_path: Path, provider: str, model: str
) -> None:
    info = ModelInfo(provider_id=provider, id=model, name=model)
    async with rig(tmp_path, []) as room:
        engine = room.project.engine
        agent = engine.agent("build")
        specs = engine.toolbox.specs(model, *engine.rulesets(room.session_id, agent))
        system = system_prompt(engine, room.view().session, agent, info)
    schemas = len(msgspec.json.encode([spec.parameters for spec in specs]))
    tools = len(msgspec.json.encode([sent(spec, info) for spec in specs]))
    assert {"bash", "read", "task", "question"} <= {spec.name for spec in specs}
    assert len(msgspec.json.encode(specs)) < TOOLS
    assert schemas < TOOLS
    assert tools + len(msgspec.json.encode(system)) < OVERHEAD


async def test_the_order_of_the_tools_never_changes_inside_a_session(tmp_path: Path) -> None:
    async with rig(tmp_path, []) as room:
        engine = room.project.engine
        rulesets = engine.rulesets(room.session_id, engine.agent("build"))
        first, second = (engine.toolbox.specs("m", *rulesets) for _ in range(2))
        assert msgspec.json.encode(first) == msgspec.json.encode(second)
