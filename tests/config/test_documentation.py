"""The examples of docs/configuration.md are read without a warning."""

import re
from pathlib import Path

import pytest

from codeloop.schema.errors import CodeloopError
from tests.config.conftest import World

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_every_example_is_valid(world: World) -> None:
    examples = re.findall(r"```jsonc\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert examples
    for example in examples:
        world.globally(example)
        loaded = world.load(environment={"LOCAL_KEY": "k"})
        assert loaded.warnings == ()
        assert loaded.config.provider["local"].options["apiKey"] == "k"


def test_the_error_shown_is_the_one_given(world: World) -> None:
    example = re.findall(r"```jsonc\n(.*?)```", PAGE.read_text(), re.DOTALL)[0].replace("131072", '"131072"')
    world.globally(example)
    shown = re.search(r"provider\.local\.models\.\S+ expected integer, got string\.", PAGE.read_text())
    assert shown is not None
    with pytest.raises(CodeloopError, match=re.escape(shown[0])):
        world.load()
