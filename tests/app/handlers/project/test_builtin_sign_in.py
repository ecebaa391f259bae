"""Signing in without a plugin: by a code that is typed on the service's page,
and by what a cloud's address needs.
"""

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import msgspec
import pytest

from codeloop.app.app import App
from codeloop.client.directory_client import DirectoryClient
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.credentials.store import Credentials
from codeloop.model.providers import Providers
from codeloop.schema.api.providers import (
    PROVIDER_AUTH,
    PROVIDER_AUTHORIZE,
    PROVIDER_CALLBACK,
    PROVIDER_LIST,
    FinishSignIn,
    ProviderAuthMethod,
    StartSignIn,
)
from codeloop.schema.config import Config
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from tests.model.local_server import http, serving
from tests.support.answers import Answer
from tests.support.http_service import Reply, ServiceRequest, run_http_service
from tests.support.model_server import ModelServer
from tests.support.models import no_proxies, send_request
from tests.support.scripted_project import make_startup

__all__ = ["no_proxies"]
COPILOT = "github-copilot"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class GitHub:
    """Hands out one code, and a token once it was typed; each token is good for one renewal."""

    def __init__(self, *waits: str, lasts: int = 0) -> None:
        self.waits = list(waits)
        self.lasts = lasts
        self.renewals = 0

    def answer(self, asked: ServiceRequest) -> Reply:
        assert asked.headers["accept"] == "application/json"
        form = asked.form
        assert form.pop("client_id") == "Iv1.ours"
        if asked.path == "/login/device/code":
            assert form == {"scope": "read:user"}
            page = "https://github.example/login/device"
            code = {"device_code": "dev-1", "user_code": "ABCD-1234", "verification_uri": page}
            return 200, {**code, "expires_in": 900, "interval": 0.01}
        assert asked.path == "/login/oauth/access_token"
        if form == {"device_code": "dev-1", "grant_type": GRANT}:
            return (200, {"error": self.waits.pop(0)}) if self.waits else (200, self._token())
        if form != {"grant_type": "refresh_token", "refresh_token": f"ghr_{self.renewals}"}:
            return 200, {
                "error": "bad_refresh_token",
                "error_description": "The refresh token is invalid.",
            }
        self.renewals += 1
        return 200, self._token()

    def _token(self) -> dict[str, Any]:
        token = {
            "access_token": f"ghu_{self.renewals}",
            "token_type": "bearer",
            "scope": "read:user",
        }
        return (
            {**token, "expires_in": self.lasts, "refresh_token": f"ghr_{self.renewals}"}
            if self.lasts
            else token
        )


@asynccontextmanager
async def opened(
    tmp_path: Path, options: dict[str, dict[str, str]], **environment: str
) -> AsyncGenerator[DirectoryClient]:
    (tmp_path / "work").mkdir(exist_ok=True)
    provider = {name: {"options": each} for name, each in options.items()}
    given = make_startup(tmp_path / "home", tmp_path / "work", provider=provider)
    app = App(replace(given, environment={**given.environment, **environment}))
    try:
        yield DirectoryClient(app, tmp_path / "work")
    finally:
        await app.close()


async def methods(client: DirectoryClient, provider: str) -> list[ProviderAuthMethod]:
    return (await client.call(PROVIDER_AUTH, NoArguments())).get(provider, [])


def stored(tmp_path: Path) -> Any:
    (file,) = (tmp_path / "home").rglob("auth.json")
    return json.loads(file.read_text())


async def sign_in(client: DirectoryClient) -> None:
    started = await client.call(PROVIDER_AUTHORIZE, StartSignIn(provider_id=COPILOT, method=0))
    assert (started.url, started.method) == ("https://github.example/login/device", "auto")
    assert "ABCD-1234" in started.instructions
    await client.call(PROVIDER_CALLBACK, FinishSignIn(provider_id=COPILOT, method=0))


async def test_a_code_is_typed_at_github_and_copilot_answers_with_the_token(tmp_path: Path) -> None:
    github = GitHub("authorization_pending")
    async with (
        ModelServer([Answer(text="ready")], key="ghu_0") as server,
        run_http_service(github.answer) as cloud,
    ):
        options = {"clientId": "Iv1.ours", "signInURL": cloud.url}
        async with opened(tmp_path, {COPILOT: options}) as client:
            by_page, by_key = await methods(client, COPILOT)
            assert (by_page.type, by_key.type, by_key.label) == ("oauth", "api", "API key")
            await sign_in(client)
            held = stored(tmp_path)[COPILOT]
            assert (held["type"], held["access"], held["expires"], held["client"]) == (
                "oauth",
                "ghu_0",
                0,
                "Iv1.ours",
            )
        row = {"options": {**options, "baseURL": server.url}, "models": {"gpt-6-sol": {}}}
        found = await send_request(open_model(tmp_path, row, "gpt-6-sol"))
    assert found.text == "ready", found.message
    sent = server.requests[0].headers
    assert (sent["authorization"], sent["x-initiator"], sent["openai-intent"]) == (
        "Bearer ghu_0",
        "user",
        "conversation-edits",
    )


def open_model(tmp_path: Path, row: dict[str, Any], name: str) -> Any:
    config = msgspec.convert({"provider": {COPILOT: row}}, Config)
    (file,) = (tmp_path / "home").rglob("auth.json")
    return Providers(config, Catalog(), Credentials(file), {}, ()).open_model(f"{COPILOT}/{name}")


async def test_a_token_that_runs_out_is_renewed_once_for_requests_at_a_time(tmp_path: Path) -> None:
    github = GitHub(lasts=60)  # less than the time before its end at which it is renewed
    async with (
        ModelServer([Answer(text="ready")]) as server,
        run_http_service(github.answer) as cloud,
    ):
        options = {"clientId": "Iv1.ours", "signInURL": cloud.url}
        async with opened(tmp_path, {COPILOT: options}) as client:
            await sign_in(client)
        github.lasts = 3_600
        row = {"options": {**options, "baseURL": server.url}, "models": {"a": {}, "b": {}}}
        models = [open_model(tmp_path, row, name) for name in ("a", "b")]
        await asyncio.gather(*map(send_request, models))
        assert github.renewals == 1
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer ghu_1"}
        (file,) = (tmp_path / "home").rglob("auth.json")
        late = {
            **stored(tmp_path)[COPILOT],
            "expires": int(time.time() * 1000),
            "refresh": "ghr_gone",
        }
        Credentials(file).store_sign_in(COPILOT, late)
        found = await send_request(models[0])
        assert "codeloop auth login github-copilot" in found.message
        assert "The refresh token is invalid." in found.message


async def test_a_renewal_without_a_new_refresh_token_keeps_the_old_one(tmp_path: Path) -> None:
    github = GitHub(lasts=60)

    def answer(asked: ServiceRequest) -> Reply:
        status, token = github.answer(asked)
        if github.renewals:
            # RFC 6749, 6: the refresh token in use stays valid then.
            token = {key: value for key, value in token.items() if key != "refresh_token"}
        return status, token

    async with ModelServer([Answer(text="ready")]) as server, run_http_service(answer) as cloud:
        options = {"clientId": "Iv1.ours", "signInURL": cloud.url}
        async with opened(tmp_path, {COPILOT: options}) as client:
            await sign_in(client)
        await send_request(
            open_model(
                tmp_path, {"options": {**options, "baseURL": server.url}, "models": {"a": {}}}, "a"
            )
        )
        assert github.renewals == 1
        assert stored(tmp_path)[COPILOT]["refresh"] == "ghr_0"


@pytest.mark.parametrize(
    ("field", "value"), [("interval", "soon"), ("interval", -1), ("expires_in", [])]
)
async def test_times_of_a_code_that_are_no_times_count_as_missing(
    tmp_path: Path, field: str, value: Any
) -> None:
    github = GitHub()

    def answer(asked: ServiceRequest) -> Reply:
        status, fields = github.answer(asked)
        return status, {**fields, field: value}

    async with (
        run_http_service(answer) as cloud,
        opened(tmp_path, {COPILOT: {"clientId": "Iv1.ours", "signInURL": cloud.url}}) as client,
    ):
        started = await client.call(PROVIDER_AUTHORIZE, StartSignIn(provider_id=COPILOT, method=0))
        assert "ABCD-1234" in started.instructions


@pytest.mark.parametrize("lifetime", ["inf", "nan", 1e308])
async def test_a_lifetime_of_a_token_that_no_clock_reaches_counts_as_missing(
    tmp_path: Path, lifetime: Any
) -> None:
    github = GitHub(lasts=60)

    def answer(asked: ServiceRequest) -> Reply:
        status, fields = github.answer(asked)
        return status, {**fields, "expires_in": lifetime} if "access_token" in fields else fields

    async with (
        run_http_service(answer) as cloud,
        opened(tmp_path, {COPILOT: {"clientId": "Iv1.ours", "signInURL": cloud.url}}) as client,
    ):
        await sign_in(client)
    assert stored(tmp_path)[COPILOT]["expires"] == 0


@pytest.mark.parametrize(
    ("says", "words"), [("access_denied", "refused on the page"), ("expired_token", "run out")]
)
async def test_a_code_that_is_refused_or_too_late_stores_nothing(
    tmp_path: Path, says: str, words: str
) -> None:
    async with (
        run_http_service(GitHub("authorization_pending", says).answer) as cloud,
        opened(tmp_path, {COPILOT: {"clientId": "Iv1.ours", "signInURL": cloud.url}}) as client,
    ):
        with pytest.raises(OperationError, match=words):
            await sign_in(client)
    assert not list((tmp_path / "home").rglob("auth.json"))


async def test_without_a_client_id_the_key_says_what_it_is_and_how_to_sign_in(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, {}) as client:
        (method,) = await methods(client, COPILOT)
    assert method.type == "api"
    assert "Copilot Requests" in method.label
    assert "provider.github-copilot.options.clientId" in method.label


def prompts_of(method: ProviderAuthMethod) -> list[str]:
    """Return the keys of what is asked; `?`: it may stay empty."""
    return [each["key"] + "?" * bool(each.get("optional")) for each in method.prompts or ()]


class AzureResource:
    """Lists deployments as Azure does: with one version of its API alone,
    and by the header `api-key`.
    """

    def __init__(self, *rows: tuple[str, str], status: int = 200) -> None:
        self.status = status
        self.rows = [
            {
                "id": name,
                "model": model,
                "status": "succeeded",
                "object": "deployment",
                "owner": "organization-owner",
            }
            for name, model in rows
        ]

    def answer(self, asked: ServiceRequest) -> Reply:
        if (
            asked.path != "/openai/deployments?api-version=2023-03-15-preview"
            or asked.method != "GET"
        ):
            return 404, {"error": {"code": "404", "message": "Resource not found"}}
        if self.status != 200:
            return self.status, {
                "error": {
                    "code": str(self.status),
                    "message": f"Denied {asked.headers['api-key']}.",
                }
            }
        assert asked.headers["api-key"] == "azure-key-0123456789"
        assert "authorization" not in asked.headers
        return 200, {"data": self.rows, "object": "list"}


async def azure(client: DirectoryClient, **inputs: str) -> str:
    """Sign in at Azure; return what is said."""
    given = StartSignIn(provider_id="azure", method=0, inputs=inputs)
    return (await client.call(PROVIDER_AUTHORIZE, given)).instructions


def models_of(tmp_path: Path) -> dict[str, Any]:
    """Return the configuration of Azure's models."""
    files = list((tmp_path / "home").rglob("codeloop.json"))
    return json.loads(files[0].read_text())["provider"]["azure"]["models"] if files else {}


KEYED = {"key": "azure-key-0123456789"}


@pytest.mark.slow
async def test_what_is_deployed_at_azure_is_asked_of_the_resource(tmp_path: Path) -> None:
    rows = [
        ("eu", "gpt-6-sol"),
        ("gpt-6-luna", "gpt-6-luna"),
        ("us", "gpt-6-sol"),
        ("e", "text-embedding-3"),
    ]
    resource = AzureResource(*rows)
    resource.rows.append({"id": "late", "model": "gpt-6-astra", "status": "running"})
    async with (
        run_http_service(resource.answer) as cloud,
        opened(tmp_path, {"azure": {"baseURL": f"{cloud.url}/openai/v1"}}) as client,
    ):
        (method,) = await methods(client, "azure")
        assert prompts_of(method) == ["key", "deployment?"]
        assert await azure(client, **KEYED) == "Deployed there: eu, gpt-6-luna, us."
        assert models_of(tmp_path) == {"gpt-6-sol": {"id": "eu"}, "gpt-6-luna": {}, "us": {}}
        known = await client.call(PROVIDER_LIST, NoArguments())
        (provider,) = [each for each in known.all if each.id == "azure"]
        assert known.default["azure"] == "gpt-6-sol"
        assert provider.models["gpt-6-sol"].api.id == "eu"
        assert await azure(client, deployment="us") == "Deployed there: us."
        said = await azure(client, deployment="mine")
        assert said == "The resource lists no deployment `mine`, but eu, gpt-6-luna, us."
        assert "mine" not in models_of(tmp_path)
        (method,) = await methods(client, "azure")
        assert prompts_of(method) == ["key?", "deployment?"]


@pytest.mark.parametrize(
    ("status", "words"), [(404, "HTTP 404"), (403, "HTTP 403: Denied [hidden]")]
)
async def test_where_azure_lists_nothing_the_deployment_is_named(
    tmp_path: Path, status: int, words: str
) -> None:
    async with (
        run_http_service(AzureResource(status=status).answer) as cloud,
        opened(tmp_path, {"azure": {"baseURL": f"{cloud.url}/openai/v1"}}) as client,
    ):
        said = await azure(client, **KEYED)
        assert f"does not list its deployments ({words}" in said
        assert "--deployment NAME" in said
        assert stored(tmp_path)["azure"]["key"] == KEYED["key"]
        assert await azure(client, deployment="my-gpt") == "Deployed there: my-gpt."
        assert models_of(tmp_path) == {"my-gpt": {}}


async def test_a_list_of_deployments_that_is_not_utf_8_is_no_list(tmp_path: Path) -> None:
    async with (
        serving(http(b'{"data":[{"id":"\xff"}]}')) as (url, _),
        opened(tmp_path, {"azure": {"baseURL": f"{url}/openai/v1"}}) as client,
    ):
        assert "its answer is not a list of deployments" in await azure(client, **KEYED)


async def test_a_key_that_azure_refuses_is_not_stored(tmp_path: Path) -> None:
    async with (
        run_http_service(AzureResource(status=401).answer) as cloud,
        opened(tmp_path, {"azure": {"baseURL": f"{cloud.url}/openai/v1"}}) as client,
    ):
        with pytest.raises(
            OperationError, match=r"refuses this key \(HTTP 401: Denied \[hidden"
        ) as failed:
            await azure(client, **KEYED)
        assert KEYED["key"] not in str(failed.value)
        assert not list((tmp_path / "home").rglob("auth.json"))


async def test_a_resource_without_deployments_is_told_from_one_that_lists_none(
    tmp_path: Path,
) -> None:
    async with (
        run_http_service(AzureResource(("e", "text-embedding-3")).answer) as cloud,
        opened(tmp_path, {"azure": {"baseURL": f"{cloud.url}/openai/v1"}}) as client,
    ):
        assert (await azure(client, **KEYED)).startswith("No model to talk to is deployed there.")
        assert models_of(tmp_path) == {}


async def test_azure_is_asked_for_its_resource_and_key_which_are_stored(tmp_path: Path) -> None:
    async with opened(tmp_path, {}, CODELOOP_OFFLINE="1") as client:
        (method,) = await methods(client, "azure")
        assert prompts_of(method) == ["resourceName", "key", "deployment?"]
        assert [each["key"] for each in method.prompts or () if each.get("hidden")] == ["key"]
        inputs = {"resourceName": " my-resource ", "key": "azure-key-0123456789"}
        started = await client.call(
            PROVIDER_AUTHORIZE, StartSignIn(provider_id="azure", method=0, inputs=inputs)
        )
        assert started.url == ""
        assert stored(tmp_path)["azure"]["origin"] == "https://my-resource.services.ai.azure.com"
        (file,) = (tmp_path / "home").rglob("codeloop.json")
        assert json.loads(file.read_text())["provider"] == {
            "azure": {"options": {"resourceName": "my-resource"}}
        }
        (method,) = await methods(client, "azure")
        assert prompts_of(method) == ["key?", "deployment?"]
        assert "does not list its deployments" in started.instructions
    async with opened(tmp_path, {"azure": {}}) as client:
        wrong = StartSignIn(provider_id="azure-cognitive-services", method=0, inputs={"key": "k"})
        with pytest.raises(OperationError, match="AZURE_COGNITIVE_SERVICES_RESOURCE_NAME"):
            await client.call(PROVIDER_AUTHORIZE, wrong)


async def test_vertex_says_where_its_credentials_come_from_and_then_asks_for_the_project(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, {}) as client:
        assert await methods(client, "google-vertex") == []
        with pytest.raises(OperationError, match="gcloud auth application-default login"):
            await client.call(
                PROVIDER_AUTHORIZE, StartSignIn(provider_id="google-vertex", method=0)
            )
    file = tmp_path / "adc.json"
    file.write_text(json.dumps({"type": "authorized_user", "client_id": "c", "client_secret": "s"}))
    async with opened(tmp_path, {}, GOOGLE_APPLICATION_CREDENTIALS=str(file)) as client:
        (method,) = await methods(client, "google-vertex")
        assert [each["key"] for each in method.prompts or ()] == ["project"]
        inputs = {"project": "p-1"}
        await client.call(
            PROVIDER_AUTHORIZE, StartSignIn(provider_id="google-vertex", method=0, inputs=inputs)
        )
        (config,) = (tmp_path / "home").rglob("codeloop.json")
        assert json.loads(config.read_text())["provider"]["google-vertex"]["options"] == {
            "project": "p-1"
        }


async def test_openrouter_is_signed_in_at_on_its_page_which_leads_back_with_a_code(
    tmp_path: Path,
) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: ServiceRequest) -> Reply:
        assert request.path == "/api/v1/auth/keys"
        asked.append(json.loads(request.body))
        return (
            (200, {"key": "sk-or-v1-0123456789"})
            if asked[-1]["code"] == "good"
            else (403, {"error": "bad code"})
        )

    async def go(client: DirectoryClient, code: str, *, wrong: bool = False) -> str:
        """Do on the page what a user does; return the challenge."""
        started = await client.call(
            PROVIDER_AUTHORIZE, StartSignIn(provider_id="openrouter", method=0)
        )
        page = urlsplit(started.url)
        query = dict(parse_qsl(page.query))
        assert (page.path, query["code_challenge_method"]) == ("/auth", "S256")
        finish = FinishSignIn(provider_id="openrouter", method=0)
        ended = asyncio.ensure_future(client.call(PROVIDER_CALLBACK, finish))
        async with httpx2.AsyncClient(timeout=60) as browser:
            if wrong:  # another page of the browser can't end it
                assert (
                    await browser.get(query["callback_url"].partition("?")[0] + "?code=evil")
                ).status_code == 404
            assert "signed in" in (await browser.get(f"{query['callback_url']}&code={code}")).text
        await ended
        return query["code_challenge"]

    async with run_http_service(answer) as cloud:
        options: Any = {"signInURL": cloud.url, "signInPort": 0}
        async with opened(tmp_path, {"openrouter": options}) as client:
            assert [each.type for each in await methods(client, "openrouter")] == ["oauth", "api"]
            with pytest.raises(OperationError, match="bad code"):
                await go(client, "bad")
            challenge = await go(client, "good", wrong=True)
    verifier = asked[-1]["code_verifier"]
    assert urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode() == challenge
    held = stored(tmp_path)["openrouter"]
    assert held == {"type": "api", "key": "sk-or-v1-0123456789", "origin": "https://openrouter.ai"}


async def test_the_key_of_a_provider_that_only_the_configuration_names_is_stored(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, {"mine": {"baseURL": "http://127.0.0.1:9/v1"}}) as client:
        for inputs in ({"key": "sk-mine"}, {"key": "sk-mine", "resourceName": "another's"}, {}):
            done = await client.call(
                PROVIDER_AUTHORIZE, StartSignIn(provider_id="mine", method=0, inputs=inputs)
            )
            assert (done.url, done.method) == ("", "auto")
        with pytest.raises(OperationError, match="mine has 1 methods"):
            await client.call(PROVIDER_AUTHORIZE, StartSignIn(provider_id="mine", method=1))
