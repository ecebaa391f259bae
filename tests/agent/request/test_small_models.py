"""Small models get few tools and a short prompt, as their name or the configuration says."""

from pathlib import Path

import msgspec
import pytest

from codeloop.agent.request.request_cache import RequestCache
from codeloop.agent.request.system_prompt import TOOLS_NOT_FOR_SMALL_MODELS, is_small
from codeloop.app.toolbox import make_toolbox
from codeloop.model.catalog.overrides import apply_overrides
from codeloop.model.chat import ModelInfo, ModelRequest, TokenLimits
from codeloop.model.testing.replay import SCRIPT_INFO
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.provider_config import ProviderConfig
from codeloop.schema.wire import replace
from tests.support.scripted_project import open_scripted_project


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("qwen3:4b", True),
        ("llama-3.1-8b-instant", True),
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", True),
        ("gemma3n:e4b", True),
        ("smollm2", True),
        ("qwen3-coder:30b-a3b", False),
        ("gpt-oss:20b", False),
        ("mixtral-8x7b", False),
        ("devstral", False),
        ("claude-opus-5-5", False),
        ("gpt-4b-128b-mix", False),
    ],
)
def test_a_name_says_whether_a_model_is_small(name: str, small: bool) -> None:
    assert is_small(ModelInfo(provider_id="ollama", id=name, name=name)) is small


def test_the_configuration_decides() -> None:
    config = msgspec.convert(
        {"models": {"qwen3:4b": {"small": False}, "big": {"small": True}}}, ProviderConfig
    )
    found = apply_overrides({}, config, "ollama", "@ai-sdk/openai-compatible")
    assert {name: is_small(info) for name, info in found.items()} == {
        "qwen3:4b": False,
        "big": True,
    }


def test_what_small_models_do_without_are_tools_that_there_are() -> None:
    assert make_toolbox().tools_by_name.keys() >= TOOLS_NOT_FOR_SMALL_MODELS


def test_one_model_of_two_services_gets_the_tools_that_each_service_has_room_for() -> None:
    toolbox = make_toolbox()
    toolbox.fit_specs = lambda specs, context: specs if context > 9_000 else specs[:1]
    wide = ModelInfo(provider_id="a", id="m", name="M", limits=TokenLimits(context=90_000))
    narrow = ModelInfo(provider_id="b", id="m", name="M", limits=TokenLimits(context=9_000))
    cache = RequestCache()
    counts = [len(cache.get_tools(toolbox, info, (), ())) for info in (wide, narrow, wide)]
    assert counts == [len(toolbox.list_specs("m")), 1, len(toolbox.list_specs("m"))]


async def ask(tmp_path: Path, info: ModelInfo) -> ModelRequest:
    tmp_path.mkdir()
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")], info=info) as it:
        await it.prompt("one")
        return it.model.requests[0]


async def test_a_small_model_is_sent_much_less(tmp_path: Path) -> None:
    usual, small = (
        await ask(tmp_path / "a", SCRIPT_INFO),
        await ask(tmp_path / "b", replace(SCRIPT_INFO, small=True)),
    )
    assert {"bash", "read", "edit", "write", "grep", "glob"} <= {tool.name for tool in small.tools}
    assert not {tool.name for tool in small.tools} & TOOLS_NOT_FOR_SMALL_MODELS
    sizes = [len(each.system) + len(msgspec.json.encode(each.tools)) for each in (usual, small)]
    assert sizes[1] < sizes[0] * 0.62, sizes
    assert "Make calls together" in usual.system
    assert "One call at a time" in small.system
