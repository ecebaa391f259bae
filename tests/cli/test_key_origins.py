"""Keys of the user and addresses of a trusted project, by the real program: no key goes where the user did not say."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import KEY, Desk, serving, steps
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

SECRET = "sk-the-users-0123456789abcdef"
MODEL = {"m": {"limit": {"context": 100_000, "output": 4_000}}}
OWN = "https://mine.example/v1"


def run(desk: Desk, own: dict[str, Any], project: dict[str, Any], **environment: str) -> tuple[int, str]:
    """Run in a project that is trusted; return exit code and stderr. `own`, `project`: what each says of providers."""
    desk.configure(provider=own)
    (desk.work / "codeloop.json").write_text(json.dumps({"provider": project, "model": f"{next(iter(project))}/m"}))
    done = desk.run("run", "--trust", "hi", **environment)
    return done.returncode, done.stderr + done.stdout


def list_secrets(server: ModelServer) -> list[str]:
    """Return the requests in which the user's secret came."""
    texts = [f"{received.headers} {received.body.decode()}" for received in server.requests]
    return [text for text in texts if SECRET in text]


@pytest.mark.slow
def test_no_kind_of_key_goes_to_an_address_that_a_project_names(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "key").write_text(SECRET)
    with serving(steps(Answer(text="Done."))) as server:
        there = {"options": {"baseURL": server.url}, "models": MODEL}
        env = {"OPENAI_API_KEY": SECRET, "SOME_TOKEN": SECRET}
        own_key = {"options": {"baseURL": OWN, "apiKey": SECRET}, "models": MODEL}
        borrowed = [
            {"apiKey": "{env:SOME_TOKEN}"},
            {"apiKey": "{file:~/key}"},
            {"headers": {"x": "a {env:SOME_TOKEN}"}},
        ]
        cloud = {"AWS_BEARER_TOKEN_BEDROCK": SECRET, "AWS_REGION": "us-east-1"}
        rows: list[tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = [
            ({"mine": own_key}, {"mine": there}, {}),
            ({"mine": {"api": OWN, "options": {"apiKey": SECRET}}}, {"mine": {"api": server.url, "models": MODEL}}, {}),
            ({"mine": {**own_key, "options": {"apiKey": "{env:SOME_TOKEN}"}}}, {"mine": there}, env),
            ({"mine": {**own_key, "options": {"baseURL": OWN, "headers": {"x-key": SECRET}}}}, {"mine": there}, {}),
            ({"mine": {"models": {"m": {"headers": {"x-key": SECRET}}}}}, {"mine": there}, {}),
            ({"mine": {**own_key, "options": {"baseURL": OWN, "apiKeyHelper": f"echo {SECRET}"}}}, {"mine": there}, {}),
            ({}, {"openai": there}, env),
            ({}, {"openai": {**there, "npm": "@ai-sdk/openai-compatible"}}, env),
            ({}, {"foreign": {**there, "env": ["SOME_TOKEN"]}}, env),
            *(({}, {"foreign": {**there, "options": {**there["options"], **each}}}, env) for each in borrowed),
            ({}, {"amazon-bedrock": there}, cloud),
            ({}, {"amazon-bedrock": there}, {"AWS_ACCESS_KEY_ID": "AKIA0123456789", "AWS_SECRET_ACCESS_KEY": SECRET}),
        ]
        for own, project, environment in rows:
            code, told = run(desk, own, project, **environment)
            assert (code != 0, server.requests) == (True, []), (own, project, told)
            assert f"is not sent to {server.url.removesuffix('/v1')}" in told, (own, project, told)
            assert "name it in your own configuration" in told
        assert list_secrets(server) == []


@pytest.mark.slow
def test_a_key_goes_to_a_project_s_address_once_the_user_has_named_it_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done.")), key=SECRET) as server:
        there = {"options": {"baseURL": server.url, "apiKey": "{env:SOME_TOKEN}"}, "models": MODEL}
        named = {"mine": {"options": {"baseURL": server.url}}}
        assert run(desk, named, {"mine": there}, SOME_TOKEN=SECRET)[0] == 0
        variables = {"options": {"baseURL": "{env:THE_URL}", "apiKey": "{env:SOME_TOKEN}"}, "models": MODEL}
        assert run(desk, {}, {"mine": variables}, SOME_TOKEN=SECRET, THE_URL=server.url)[0] == 0
        assert len(list_secrets(server)) >= 2


@pytest.mark.slow
def test_a_project_s_own_key_and_a_server_without_one_work_as_ever(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        there = {"options": {"baseURL": server.url, "apiKey": KEY}, "models": MODEL}
        assert run(desk, {}, {"theirs": there}, SOME_TOKEN=SECRET)[0] == 0
        (desk.work / "key").write_text(KEY)
        there = {"options": {"baseURL": server.url, "apiKey": "{file:key}"}, "models": MODEL}
        assert run(desk, {}, {"theirs": there}, SOME_TOKEN=SECRET)[0] == 0
        assert list_secrets(server) == []
