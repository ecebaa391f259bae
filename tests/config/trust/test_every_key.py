"""Of every setting there is, an untrusted project gets nothing looser;
a new one is ignored until it is listed here.
"""

from typing import Any

import pytest

from codeloop.config.forms.normalise import NormalisedValues
from codeloop.config.sources import Layer
from codeloop.config.trust.layer_filter import filter_layer
from codeloop.kit.jsonc import Document
from codeloop.schema.config import Config
from tests.config.conftest import World

LOOSER: dict[str, list[Any]] = {
    "profile": ["yolo", "auto", "free", 5],
    "sandbox": [
        "off",
        "auto",
        {"mode": "off"},
        {"network": "on"},
        {"network": "hosts"},
        {"writable": ["/"]},
        {"readable": ["~/.ssh"]},
    ],
    "share": ["auto", "manual"],
    "snapshot": [False],
    "tool_output": [{"max_lines": 10**9}, {"max_bytes": 10**9}],
    "disabled_providers": [[]],
    "enabled_providers": [["good", "evil"]],
    "formatter": [True, {"x": {"command": ["sh"]}}],
    "lsp": [True, {"x": {"command": ["sh"], "extensions": [".x"]}}],
    "model": ["evil/m"],
    "small_model": ["evil/m"],
    "instructions": [
        ["/etc/passwd"],
        ["~/.ssh/id_rsa"],
        ["../x"],
        ["{file:/etc/passwd}"],
        ["{env:HOME}/x"],
    ],
}
"""For each setting that a project may tighten: values that would loosen what the person has."""
OWN: dict[str, Any] = {
    "profile": "ask",
    "sandbox": {"mode": "required", "network": "off"},
    "share": "disabled",
    "snapshot": True,
    "tool_output": {"max_lines": 100, "max_bytes": 1000},
    "disabled_providers": ["evil"],
    "enabled_providers": ["good"],
    "formatter": False,
    "lsp": False,
    "model": "good/m",
    "small_model": "good/m",
}
HARMLESS = {"compaction"}
RULES = {"permission", "restrictions", "agent"}
"""Tested by `test_filter.py`, rule by rule."""
SAMPLES: list[Any] = [
    True,
    False,
    1,
    "x/y",
    "on",
    ["x"],
    {"x": "y"},
    {"x": {"command": "sh", "enabled": True}},
]


def known(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in Config.__struct_fields__}


@pytest.mark.parametrize("key", [key for key in LOOSER if key in Config.__struct_fields__])
def test_a_looser_value_changes_nothing(world: World, key: str) -> None:
    world.globally(known(OWN))
    before = getattr(world.load(trusted=False).config, key)
    for value in LOOSER[key]:
        world.write("codeloop.json", {key: value})
        assert getattr(world.load(trusted=False).config, key) == before, value


@pytest.mark.parametrize("key", sorted({*Config.__struct_fields__} - {*LOOSER} - HARMLESS - RULES))
def test_what_is_not_listed_is_ignored_whatever_it_holds(world: World, key: str) -> None:
    for value in SAMPLES:
        layer = Layer(
            "project", "codeloop.json", world.root, Document("", {key: value}), is_project=True
        )
        kept, ignored = filter_layer(NormalisedValues(layer, {key: value}), {})
        assert kept.values == {}, value
        assert ignored, value
