"""A new user's first minutes with each kind of provider: sign in, ask,
get an answer from a server of its protocol.
"""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import KEY, Desk, serving
from tests.support.answers import Answer
from tests.support.http_service import run_http_service

PROVIDERS = {
    "google": ("google/gemini-3.8-flash", "/v1beta"),
    "amazon-bedrock": ("amazon-bedrock/us.anthropic.claude-opus-5-5", ""),
    "azure": ("azure/gpt-6-sol", "/openai/v1"),
    "azure-chat": ("azure/kimi-k2.7-code", "/openai/v1"),
    "copilot": ("github-copilot/gpt-6-sol", ""),
    "copilot-chat": ("github-copilot/claude-opus-5.5", ""),
    "openrouter": ("openrouter/anthropic/claude-opus-5.5", "/api/v1"),
    "xai": ("xai/grok-4.7", "/v1"),
    "minimax": ("minimax/MiniMax-M3", "/anthropic/v1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_key_is_stored_and_used(tmp_path: Path, name: str) -> None:
    model, path = PROVIDERS[name]
    provider = model.partition("/")[0]
    desk = Desk(tmp_path)
    with serving([Answer(text="Hello from there.")], key=KEY) as server:
        url = server.url.removesuffix("/v1") + path
        desk.configure(provider={provider: {"options": {"baseURL": url}}})
        missing = desk.run("run", "--model", model, "hello")
        assert missing.returncode == 3
        assert f"codeloop auth login {provider}" in missing.stderr
        # Neither is a key.
        assert not {"AZURE_RESOURCE_NAME", "AWS_REGION"} & set(missing.stderr.split())
        wrong = desk.run(
            "auth",
            "login",
            provider,
            "--base-url",
            url,
            "--key-stdin",
            stdin="sk-wrong-0123456789abc",
        )
        assert wrong.returncode == 0, wrong.stderr
        refused = desk.run("run", "--model", model, "hello")
        assert refused.returncode == 3
        assert "sk-wrong-0123456789abc" not in refused.stderr
        assert "auth login" in refused.stderr
        stored = desk.run("auth", "login", provider, "--base-url", url, "--key-stdin", stdin=KEY)
        assert stored.returncode == 0, stored.stderr
        done = desk.run("run", "--model", model, "hello")
    assert (done.returncode, done.stdout.strip()) == (0, "Hello from there."), done.stderr


@contextmanager
def metadata(token: str) -> Generator[str]:
    """Serve the metadata of a machine of Google's, which hands out a token;
    give its host and port.
    """
    opened, stop = threading.Event(), threading.Event()
    hosts: list[str] = []

    async def serve() -> None:
        async with run_http_service(
            lambda _: (200, {"access_token": token, "expires_in": 3_600})
        ) as cloud:
            hosts.append(cloud.url.removeprefix("http://"))
            opened.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert opened.wait(60)
    try:
        yield hosts[0]
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", ["google-vertex/gemini-3.8-flash", "google-vertex/claude-opus-5-5@default"]
)
def test_vertex_uses_the_credentials_of_the_machine(tmp_path: Path, model: str) -> None:
    desk = Desk(tmp_path)
    with (
        serving([Answer(text="Hello.")], key="ya29.metadata") as server,
        metadata("ya29.metadata") as host,
    ):
        url = (
            f"{server.url}/projects/p/locations/global/publishers/google"  # of Claude it is another
        )
        desk.configure(provider={"google-vertex": {"options": {"baseURL": url}}})
        done = desk.run("run", "--model", model, "hello", GCE_METADATA_HOST=host)
    assert (done.returncode, done.stdout.strip()) == (0, "Hello."), done.stderr


@pytest.mark.parametrize(
    ("provider", "says"),
    [
        ("google-vertex", r"takes no key. Run `gcloud auth application-default login`"),
        ("google-vertex-anthropic", "takes no key"),
        (
            "azure",
            "needs AZURE_RESOURCE_NAME in the environment, or `resourceName` in provider.azure.options",
        ),
        ("gitlab", "does not support the protocol"),
    ],
)
def test_nothing_is_stored_for_what_a_key_does_not_open(
    tmp_path: Path, provider: str, says: str
) -> None:
    desk = Desk(tmp_path)
    for environment in ({}, {"GOOGLE_VERTEX_PROJECT": "p"} if "vertex" in provider else {}):
        done = desk.run("auth", "login", provider, "--key-stdin", stdin=KEY, **environment)
        assert done.returncode == 3
        assert says in done.stderr
    assert not (desk.home / "data" / "auth.json").exists()


def test_bedrock_signs_with_the_keys_of_a_profile(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[work]\naws_access_key_id = AKIA1\naws_secret_access_key = s\n"
    )
    with serving([Answer(text="Hello.")]) as server:
        options = {
            "baseURL": server.url.removesuffix("/v1"),
            "profile": "work",
            "region": "eu-west-1",
        }
        desk.configure(provider={"amazon-bedrock": {"options": options}})
        done = desk.run("run", "--model", "amazon-bedrock/us.anthropic.claude-opus-5-5", "hello")
        assert (done.returncode, done.stdout.strip()) == (0, "Hello."), done.stderr
        signed = server.requests[0].headers["authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIA1/")
    assert "/eu-west-1/bedrock/aws4_request" in signed


def test_bedrock_is_asked_at_the_address_of_the_variable_of_aws(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(text="Hello.")], key=KEY) as server:
        desk.environment["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = server.url.removesuffix("/v1")
        stored = desk.run("auth", "login", "amazon-bedrock", "--key-stdin", stdin=KEY)
        assert stored.returncode == 0, stored.stderr
        assert f"http://127.0.0.1:{server.port}" in desk.run("auth", "list").stdout
        done = desk.run("run", "--model", "amazon-bedrock/us.anthropic.claude-opus-5-5", "hello")
    assert (done.returncode, done.stdout.strip()) == (0, "Hello."), done.stderr
