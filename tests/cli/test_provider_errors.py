"""What a person is told when a service refuses a key, has nothing at a path, does not know a model,
or is not there.
"""

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import ADAPTER, KEY, Desk, Protocol, serving
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

REFUSED = Answer(
    status=401, body=json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})
)
WITHOUT = Answer(status=401, body=json.dumps({"error": {"message": "Missing API key"}}))
NO_PAGE = Answer(status=404, body="404 page not found")


def provider(server: ModelServer, protocol: Protocol = "openai", **options: Any) -> dict[str, Any]:
    """A provider at the server; its models are one named m."""
    return {
        "npm": ADAPTER[protocol],
        "options": {"baseURL": server.url, **options},
        "models": {"m": {}},
    }


def asked(desk: Desk, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask the model; no key is ever in what is shown."""
    done = desk.run("run", "--title", "T", "hello", **environment)
    assert done.returncode == 3, done
    assert KEY not in done.stdout + done.stderr
    return done


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_of_the_configuration_is_named_by_file_and_line(
    tmp_path: Path, protocol: Protocol, status: int
) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(status=status, body=REFUSED.body)]) as server:
        text = json.dumps(
            {"model": "acme/m", "provider": {"acme": provider(server, protocol, apiKey=KEY)}},
            indent=1,
        )
        desk.configure()
        file = desk.home / "config" / "codeloop.json"
        file.write_text(text)
        said = asked(desk).stderr
    line = 1 + text[: text.index('"apiKey"')].count("\n")
    assert f"`apiKey` at {file}:{line}:" in said
    assert "global configuration" in said


@pytest.mark.slow
def test_a_refused_key_from_a_variable_or_a_file_of_the_configuration_is_named_as_that(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving([REFUSED]) as server:
        desk.configure(
            model="acme/m", provider={"acme": provider(server, apiKey="{env:ACME_SECRET}")}
        )
        said = asked(desk, ACME_SECRET=KEY).stderr
        assert "the environment variable ACME_SECRET, by `{env:ACME_SECRET}` at" in said
        assert "Set ACME_SECRET" in said
        server.answers = [WITHOUT]
        said = asked(desk).stderr
        server.answers = [REFUSED]
        assert "`apiKey` is empty: it comes from the environment variable ACME_SECRET" in said
        (desk.home / "config" / "key.txt").write_text(KEY)
        desk.configure(model="acme/m", provider={"acme": provider(server, apiKey="{file:key.txt}")})
        said = asked(desk).stderr
        assert "the file key.txt, by `{file:key.txt}` at" in said
        desk.configure(
            model="acme/m",
            provider={
                "acme": provider(server, headers={"Authorization": f"Bearer {KEY}"}, apiKey="x")
            },
        )
        said = asked(desk).stderr
        assert "`Authorization` at" in said


def test_a_refused_key_of_a_trusted_project_is_named_as_the_projects(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([REFUSED]) as server:
        settings = {"model": "acme/m", "provider": {"acme": provider(server, apiKey=KEY)}}
        (desk.work / "codeloop.json").write_text(json.dumps(settings))
        assert desk.run("trust").returncode == 0
        said = asked(desk).stderr
    assert f"`apiKey` at {desk.work / 'codeloop.json'}:1:" in said
    assert "this project's configuration" in said


@pytest.mark.slow
def test_a_refused_key_of_the_environment_or_of_the_store_is_named_as_that(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([REFUSED]) as server:
        desk.configure(
            model="acme/m", provider={"acme": {**provider(server), "env": ["ACME_API_KEY"]}}
        )
        said = asked(desk, ACME_API_KEY=KEY).stderr
        assert "the environment variable ACME_API_KEY. Set ACME_API_KEY to another key" in said
        assert "unset it" not in said
        server.answers = [Answer(status=402, body="Payment required")]
        said = asked(desk, ACME_API_KEY=KEY).stderr
        assert "The key comes from the environment variable ACME_API_KEY. Add credit there" in said
        assert " in, " not in said
        server.answers = [Answer(status=403, body="Forbidden")]
        said = asked(desk, ACME_API_KEY=KEY).stderr
        assert (
            "does not allow this request with the key (HTTP 403: Forbidden). It comes from the environment"
            in said
        )
        server.answers = [WITHOUT]
        assert "Set ACME_API_KEY, or run `codeloop auth login acme`" in asked(desk).stderr
        server.answers = [REFUSED]
        assert desk.run("auth", "login", "acme", "--key-stdin", stdin=KEY).returncode == 0
        said = asked(desk).stderr
        assert (
            f"the stored key ({desk.home / 'data' / 'auth.json'}). Replace it: `codeloop auth login acme`."
            in said
        )
        assert "unset it to use the stored key of acme" in asked(desk, ACME_API_KEY=KEY).stderr


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "tail", ["", "/v1/chat/completions", "/v1/messages", "/v1/v1", "/chat/completions"]
)
def test_a_wrong_path_is_told_from_an_unknown_model_and_the_right_base_url_suggested(
    tmp_path: Path, protocol: Protocol, tail: str
) -> None:
    desk = Desk(tmp_path)
    with serving([NO_PAGE]) as server:
        root = server.url.removesuffix("/v1")
        desk.configure(
            model="acme/m", provider={"acme": provider(server, protocol, baseURL=root + tail)}
        )
        said = asked(desk).stderr
    assert f"probably {root}/v1: correct provider.acme.options.baseURL" in said
    assert "no model" not in said


def test_at_a_base_url_that_looks_right_the_setting_is_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([NO_PAGE]) as server:
        desk.configure(model="acme/m", provider={"acme": provider(server)})
        said = asked(desk).stderr
    assert f"has nothing at {server.url}/chat/completions" in said
    assert "Check the base URL of acme: provider.acme.options.baseURL" in said


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_model_that_the_service_does_not_have_brings_near_ones(
    tmp_path: Path, protocol: Protocol
) -> None:
    desk = Desk(tmp_path)
    said = {"error": {"type": "not_found_error", "message": "model: qwen3-codr"}}
    with serving(
        [Answer(status=404, body=json.dumps(said))], models=("qwen3-coder", "llama")
    ) as server:
        models = {"qwen3-codr": {}, "big": {}}
        desk.configure(
            model="acme/qwen3-codr",
            provider={"acme": {**provider(server, protocol), "models": models}},
        )
        text = asked(desk).stderr
    assert "acme has no model qwen3-codr" in text
    assert "Did you mean `acme/qwen3-coder`?" in text


@pytest.mark.slow
def test_an_address_that_refuses_is_given_up_after_few_quick_tries(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        desk.configure(
            model="acme/m", provider={"acme": {"options": {"baseURL": f"http://{address}/v1"}}}
        )
        said = asked(desk).stderr
    assert said.count("Retrying") == 3
    assert "Gave up after 4 tries" in said
    assert address in said
