"""The hook `config`: only what extensions change counts, and it is asked once about the same."""

from pathlib import Path

from codeloop.config.load import LoadedConfig
from codeloop.extend.hooks.config_changes import (
    ask_extensions,
    find_differences,
    get_answer_path,
    read_layer,
)
from codeloop.extend.hooks.hooks import Hooks
from codeloop.schema.config import Config
from codeloop.schema.provider_config import ProviderConfig
from codeloop.schema.wire import JSON
from tests.support.recording_handler import RecordingHandler


def loaded(config: Config) -> LoadedConfig:
    return LoadedConfig(config, {}, (), ())


def test_only_what_is_other_than_before_counts() -> None:
    before = {"a": 1, "list": [1], "inner": {"x": 1, "y": 2}}
    after = {"a": 1, "list": [1, 2], "inner": {"x": 1, "y": 3, "z": {}}, "new": None}
    assert find_differences(before, after) == {
        "list": [1, 2],
        "inner": {"y": 3, "z": {}},
        "new": None,
    }
    assert find_differences(before, before) == {}


async def test_an_answer_is_kept_for_the_same_configuration_and_extensions(tmp_path: Path) -> None:
    config = loaded(
        Config(
            model="a/b", provider={"a": ProviderConfig(options={"apiKey": "sk-secret-0123456789"})}
        )
    )
    file = get_answer_path(tmp_path, config, ["x 1"])
    assert file == get_answer_path(tmp_path, config, ["x 1"])
    assert file != get_answer_path(tmp_path, config, ["x 2"])
    assert file != get_answer_path(tmp_path, loaded(Config(model="a/c")), ["x 1"])
    assert read_layer(file, tmp_path) is None

    def change(_given: JSON, output: JSON) -> JSON:
        return {**output, "mcp": {"time": {"type": "local", "command": ["time"]}}}

    handler = RecordingHandler({"config": change})
    await ask_extensions(Hooks([handler]), config, file)
    layer = read_layer(file, tmp_path)
    assert layer is not None
    assert layer.raw == {"mcp": {"time": {"type": "local", "command": ["time"]}}}
    assert "sk-secret" not in str(handler.asked)


def test_a_kept_file_that_is_broken_counts_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for text in ("", "{", "[]", "{}", "1"):
        file.write_text(text)
        assert read_layer(file, tmp_path) is None


async def test_an_extension_that_fails_is_asked_again(tmp_path: Path) -> None:
    def fail(_given: JSON, _output: JSON) -> JSON:
        raise ValueError("not now")

    config = loaded(Config())
    file = get_answer_path(tmp_path, config, ["x 1"])
    assert await ask_extensions(Hooks([RecordingHandler({"config": fail})]), config, file) == {}
    assert not file.exists()
