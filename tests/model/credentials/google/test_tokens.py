"""Tests of Google's access tokens, against local servers that check the
signature and each field.
"""

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.credentials.google.chain import GoogleSigner, sign_rs256
from codeloop.model.credentials.google.discovery import (
    describe_credentials,
    find_credentials_file,
    find_settings,
    format_host,
)
from codeloop.model.errors import ModelUnavailable
from tests.support.http_service import Reply, ServiceRequest, run_http_service
from tests.support.models import no_proxies

__all__ = ["no_proxies"]
rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
JWT = "urn:ietf:params:oauth:token-type:jwt"
GIVEN = {"access_token": "ya29.token", "expires_in": 3_599, "token_type": "Bearer"}


@pytest.fixture(scope="module")
def key() -> Any:
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def pem_of(key: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def verify(key: Any, data: bytes, signature: bytes) -> None:
    """Refuse what the key did not sign. Raises InvalidSignature."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    key.public_key().verify(signature, data, PKCS1v15(), SHA256())


def part_of(text: str) -> bytes:
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def write_file(folder: Path, **content: Any) -> dict[str, str]:
    """Return the environment that names a file of credentials with this content."""
    file = folder / "credentials.json"
    file.write_text(json.dumps(content))
    return {
        "HOME": str(folder),
        "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        "PATH": os.environ["PATH"],
    }


async def header(environment: dict[str, str]) -> dict[str, str]:
    return await GoogleSigner(environment).sign("https://x.example", {}, b"")


async def test_a_service_account_signs_its_claim(tmp_path: Path, key: Any) -> None:
    def answer(asked: ServiceRequest) -> Reply:
        assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
        assert asked.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        head, claim, signature = asked.form["assertion"].split(".")
        verify(key, f"{head}.{claim}".encode(), part_of(signature))
        assert json.loads(part_of(head)) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
        said = json.loads(part_of(claim))
        assert (said["iss"], said["scope"], said["aud"]) == (
            "me@p.iam.gserviceaccount.com",
            SCOPE,
            f"{server.url}/token",
        )
        assert abs(said["iat"] - time.time()) < 60
        assert said["exp"] - said["iat"] == 3_600
        return 200, GIVEN

    async with run_http_service(answer) as server:
        environment = write_file(
            tmp_path,
            type="service_account",
            project_id="p",
            private_key_id="k1",
            private_key=pem_of(key),
            client_email="me@p.iam.gserviceaccount.com",
            token_uri=f"{server.url}/token",
        )
        signer = GoogleSigner(environment)
        for _ in range(3):
            assert await signer.sign("https://x.example", {}, b"") == {
                "authorization": "Bearer ya29.token"
            }
    assert len(server.asked) == 1
    assert find_settings(environment)["GOOGLE_VERTEX_PROJECT"] == "p"


async def test_openssl_signs_alike_where_the_library_is_missing(
    tmp_path: Path, key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_library = await sign_rs256(b"head.claim", pem_of(key), tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "cryptography.exceptions", None)
    by_program = await sign_rs256(b"head.claim", pem_of(key), tmp_path)
    verify(key, b"head.claim", by_program)
    assert by_program == by_library
    with pytest.raises(ModelUnavailable, match="can't be used"):
        await sign_rs256(b"head.claim", "no key", tmp_path)


async def test_a_users_sign_in_is_exchanged_and_its_project_pays(tmp_path: Path) -> None:
    def answer(asked: ServiceRequest) -> Reply:
        wanted = {
            "client_id": "id",
            "client_secret": "s+=",
            "refresh_token": "1//r",
            "grant_type": "refresh_token",
        }
        assert asked.form == wanted
        return 200, GIVEN

    said = {
        "type": "authorized_user",
        "client_id": "id",
        "client_secret": "s+=",
        "refresh_token": "1//r",
    }
    async with run_http_service(answer) as server:
        environment = write_file(tmp_path, **said, quota_project_id="q", token_uri=server.url)
        assert await header(environment) == {
            "authorization": "Bearer ya29.token",
            "x-goog-user-project": "q",
        }
        environment["GOOGLE_CLOUD_QUOTA_PROJECT"] = "mine"
        assert (await header(environment))["x-goog-user-project"] == "mine"


async def test_the_file_of_gcloud_is_found(tmp_path: Path) -> None:
    said = {
        "type": "authorized_user",
        "client_id": "id",
        "client_secret": "s",
        "refresh_token": "r",
    }
    folder = tmp_path / ".config" / "gcloud"
    folder.mkdir(parents=True)
    async with run_http_service(lambda _: (200, GIVEN)) as server:
        file = folder / "application_default_credentials.json"
        file.write_text(json.dumps({**said, "token_uri": server.url}))
        assert describe_credentials({"HOME": str(tmp_path)}) == str(file)
        assert await header({"HOME": str(tmp_path)}) == {"authorization": "Bearer ya29.token"}
        assert describe_credentials({"CLOUDSDK_CONFIG": str(folder)}) == str(file)


async def test_an_account_may_act_as_another(tmp_path: Path) -> None:
    def answer(asked: ServiceRequest) -> Reply:
        if asked.path == "/token":
            return 200, GIVEN
        assert asked.path == "/v1/other:generateAccessToken"
        assert asked.headers["authorization"] == "Bearer ya29.token"
        assert json.loads(asked.body) == {"scope": [SCOPE], "lifetime": "3600s", "delegates": ["d"]}
        return 200, {"accessToken": "ya29.other", "expireTime": "2099-01-01T00:00:00Z"}

    async with run_http_service(answer) as server:
        source = {
            "type": "authorized_user",
            "client_id": "i",
            "client_secret": "s",
            "refresh_token": "r",
        }
        environment = write_file(
            tmp_path,
            type="impersonated_service_account",
            service_account_impersonation_url=f"{server.url}/v1/other:generateAccessToken",
            source_credentials={**source, "token_uri": f"{server.url}/token"},
            delegates=["d"],
        )
        assert await header(environment) == {"authorization": "Bearer ya29.other"}


@pytest.mark.parametrize("kind", ["file", "json-file", "url"])
async def test_a_token_of_another_issuer_is_exchanged(tmp_path: Path, kind: str) -> None:
    def answer(asked: ServiceRequest) -> Reply:
        match asked.path:
            case "/issuer":
                assert asked.headers["metadata"] == "yes"
                return 200, {"value": "subject.jwt"}
            case "/exchange":
                assert asked.form == {
                    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                    "audience": "//iam.googleapis.com/pool",
                    "scope": SCOPE,
                    "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
                    "subject_token": "subject.jwt",
                    "subject_token_type": JWT,
                }
                return 200, {"access_token": "federated", "expires_in": 3_600}
            case _:
                assert asked.headers["authorization"] == "Bearer federated"
                return 200, {"accessToken": "ya29.other"}

    (tmp_path / "plain").write_text("subject.jwt\n")
    (tmp_path / "object").write_text('{"value": "subject.jwt"}')
    as_json = {"type": "json", "subject_token_field_name": "value"}
    async with run_http_service(answer) as server:
        sources: dict[str, dict[str, Any]] = {
            "file": {"file": str(tmp_path / "plain")},
            "json-file": {"file": str(tmp_path / "object"), "format": as_json},
            "url": {
                "url": f"{server.url}/issuer",
                "headers": {"Metadata": "yes"},
                "format": as_json,
            },
        }
        environment = write_file(
            tmp_path,
            type="external_account",
            audience="//iam.googleapis.com/pool",
            subject_token_type=JWT,
            token_url=f"{server.url}/exchange",
            service_account_impersonation_url=f"{server.url}/act",
            credential_source=sources[kind],
        )
        assert await header(environment) == {"authorization": "Bearer ya29.other"}


async def test_a_machine_of_google_gives_its_own_token() -> None:
    lives = iter([100, 3_600])

    def answer(asked: ServiceRequest) -> Reply:
        assert asked.headers["metadata-flavor"] == "Google"
        assert asked.path == "/computeMetadata/v1/instance/service-accounts/default/token"
        return 200, {**GIVEN, "expires_in": next(lives)}

    async with run_http_service(answer) as server:
        environment = {"GCE_METADATA_HOST": server.url.removeprefix("http://")}
        assert describe_credentials(environment) == "the metadata service of this machine"
        signer = GoogleSigner(environment)
        for _ in range(3):  # the first token holds for too short a time to be kept
            assert (await signer.sign("https://x.example", {}, b""))[
                "authorization"
            ] == "Bearer ya29.token"
    assert len(server.asked) == 2


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "revoked": (
        {"type": "authorized_user", "client_id": "i", "refresh_token": "r"},
        "auth application-default login",
    ),
    "kind": ({"type": "gdch_service_account"}, "`gdch_service_account`, which codeloop can't use"),
    "form": ({"installed": {}}, "holds no Google credentials"),
    "key": (
        {"type": "service_account", "client_email": "e", "private_key": "x"},
        "can't be (read|used)",
    ),
    "source": (
        {
            "type": "external_account",
            "audience": "a",
            "token_url": "u",
            "credential_source": {"executable": {}},
        },
        "neither a file nor an address",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
async def test_what_does_not_work_says_what_to_do(tmp_path: Path, name: str) -> None:
    content, says = REFUSED[name]
    refusal = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
    async with run_http_service(lambda _: (400, refusal)) as server:
        environment = write_file(tmp_path, **{"token_uri": server.url, **content})
        with pytest.raises(ModelUnavailable, match=says) as raised:
            await header(environment)
    assert name != "revoked" or "expired or revoked" in str(raised.value)


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
        ("europe-west4", "europe-west4-aiplatform.googleapis.com"),
    ],
)
def test_each_location_has_its_host(location: str, host: str) -> None:
    assert format_host(location) == host


def test_a_file_in_the_home_of_a_user_who_is_not_there_is_a_file_that_is_missing() -> None:
    named = {"GOOGLE_APPLICATION_CREDENTIALS": "~nobody-has-this-name/key.json"}
    assert find_credentials_file(named) == Path("~nobody-has-this-name/key.json")
