"""A model that does not exist is refused when it is chosen, whoever chooses it,
and near ones are named.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.program import KEY, Desk, serving, steps
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

MODELS = {"qwen3-coder": {}, "big": {}}
WANTED = "Did you mean `acme/qwen3-coder`?"


@contextmanager
def desk_with(tmp_path: Path, **settings: Any) -> Generator[Desk]:
    """A desk whose provider acme has the models qwen3-coder and big."""
    desk = Desk(tmp_path)
    with serving([Answer(text="Hello.")]) as server:
        provider = {"acme": {"options": {"baseURL": server.url, "apiKey": KEY}, "models": MODELS}}
        desk.configure(**{"model": "acme/big", "provider": provider, **settings})
        yield desk
        assert server.requests == []


def test_by_a_flag(tmp_path: Path) -> None:
    with desk_with(tmp_path) as desk:
        done = desk.run("run", "-m", "acme/qwen3-codr", "hello")
    assert done.returncode == 3
    assert WANTED in done.stderr


@pytest.mark.parametrize(
    ("settings", "flags", "place"),
    [
        ({"model": "acme/qwen3-codr"}, (), "It is chosen by `model` at "),
        (
            {"agent": {"helper": {"model": "acme/qwen3-codr", "mode": "primary"}}},
            ("--agent", "helper"),
            "It is chosen by `model` at ",
        ),
        (
            {"command": {"go": {"template": "x", "model": "acme/qwen3-codr"}}},
            ("--command", "go"),
            "It is chosen by",
        ),
    ],
)
def test_by_the_configuration_which_is_named(
    tmp_path: Path, settings: dict[str, Any], flags: tuple[str, ...], place: str
) -> None:
    with desk_with(tmp_path, **settings) as desk:
        done = desk.run("run", *flags, "hello")
        file = desk.home / "config" / "codeloop.json"
    assert done.returncode == 3
    assert WANTED in done.stderr
    assert f"{place}" in done.stderr
    assert f"{file}:1:" in done.stderr


def test_by_an_agent_file_which_is_named(tmp_path: Path) -> None:
    with desk_with(tmp_path) as desk:
        file = desk.home / "config" / "agent" / "helper.md"
        file.parent.mkdir(parents=True)
        file.write_text("---\nmode: primary\nmodel: acme/qwen3-codr\n---\nHelp.\n")
        done = desk.run("run", "--agent", "helper", "hello")
    assert done.returncode == 3
    assert WANTED in done.stderr
    assert str(file) in done.stderr


@pytest.mark.slow
def test_by_clients_of_a_server_and_in_a_conversation(tmp_path: Path) -> None:
    with desk_with(tmp_path) as desk:
        server = desk.start("serve", "--port", "0", "--password", "p")
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            body = {"model": {"providerID": "acme", "id": "qwen3-codr"}}
            with httpx2.Client(
                base_url=url, auth=("opencode", "p"), timeout=60, verify=False
            ) as http:
                refused = http.post("/session", json=body)
                assert (refused.status_code, WANTED in refused.text) == (400, True), refused.text
                session = http.post("/session", json={}).json()["id"]
                wrong = {"providerID": "acme", "modelID": "qwen3-codr"}
                prompt = {"parts": [{"type": "text", "text": "hi"}], "model": wrong}
                for path in ("message", "prompt_async"):
                    refused = http.post(f"/session/{session}/{path}", json=prompt)
                    assert (refused.status_code, WANTED in refused.text) == (400, True), (
                        refused.text
                    )
                assert http.get(f"/session/{session}/message").json() == []
            there = ("attach", url, "--password", "p")
            done = desk.run(*there, "-m", "acme/qwen3-codr")
            assert done.returncode != 0
            assert WANTED in done.stderr
            done = desk.run(*there, stdin="/model acme/qwen3-codr\n/model acme/big\n")
            assert WANTED in done.stdout + done.stderr
            assert "The next prompts use acme/big." in done.stdout + done.stderr
            assert "are for acme/qwen3-codr" not in done.stdout + done.stderr
            done = desk.run(
                "run", "--attach", url, "--password", "p", "-m", "acme/qwen3-codr", "hi"
            )
            assert WANTED in done.stderr
            assert json.loads(desk.run("session", "list", "--json").stdout)[0]["id"] == session
        finally:
            server.terminate()
            server.communicate(timeout=60)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("sonnet", "local/claude-sonnet-5"),
        ("claude-haiku-5", "local/claude-haiku-5"),
        ("M", "local/m"),
    ],
)
def test_a_name_that_one_model_has_is_enough(tmp_path: Path, name: str, model: str) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Hello."))) as server:
        _offer_models(desk, server)
        done = desk.run("run", "-m", name, "hi")
        assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr
        assert server.requests[0].json["model"] == model.partition("/")[2]


def test_a_name_that_several_models_have_or_none_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Hello."))) as server:
        _offer_models(desk, server)
        several, none = (desk.run("run", "-m", name, "hi") for name in ("claude", "claude-sonet-5"))
    assert several.returncode == none.returncode == 2
    assert (
        "2 models are called claude: local/claude-sonnet-5, local/claude-haiku-5." in several.stderr
    )
    assert (
        "No usable model is called claude-sonet-5. Did you mean `local/claude-sonnet-5`?"
        in none.stderr
    )


def _offer_models(desk: Desk, server: ModelServer) -> None:
    desk.use(server)
    path = desk.home / "config" / "codeloop.json"
    settings = json.loads(path.read_text())
    models = settings["provider"]["local"]["models"]
    models |= dict.fromkeys(("claude-sonnet-5", "claude-haiku-5"), models["m"])
    path.write_text(json.dumps(settings))
