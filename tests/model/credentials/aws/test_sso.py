"""Tests of `aws sso login`: the keys of a sign-in, and its renewal,
which happens once among all processes.
"""

import asyncio
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.credentials.aws.chain import fetch_keys
from codeloop.model.errors import ModelUnavailable
from tests.support.http_service import Reply, ServiceRequest, run_http_service
from tests.support.models import no_proxies

__all__ = ["no_proxies"]
CONFIG = """
[profile work]
sso_session = corp
sso_account_id = 123456789012
sso_role_name = Dev/Ops
[sso-session corp]
sso_region = eu-west-1
sso_start_url = https://corp.awsapps.com/start
"""
OLD = """
[profile work]
sso_start_url = https://corp.awsapps.com/start
sso_region = eu-west-1
sso_account_id = 123456789012
sso_role_name = Dev/Ops
"""
PROGRAM = """
import asyncio, os, sys
from codeloop.model.credentials.aws.chain import fetch_keys
print(asyncio.run(fetch_keys(os.environ, "eu-west-1")).access_key)
"""


class Portal:
    """Hands out keys for the sign-in that holds,
    and renews it by a token that is good for one renewal.
    """

    def __init__(self) -> None:
        self.token = "access-1"
        self.renewals = 0

    def answer(self, asked: ServiceRequest) -> Reply:
        if asked.path == "/token":
            form = json.loads(asked.body)
            assert (form["grantType"], form["clientId"], form["clientSecret"]) == (
                "refresh_token",
                "id",
                "secret",
            )
            if form["refreshToken"] != f"refresh-{self.renewals + 1}":
                return 400, {"error": "invalid_grant"}
            self.renewals += 1
            self.token = f"access-{self.renewals + 1}"
            again = f"refresh-{self.renewals + 1}"
            return 200, {
                "accessToken": self.token,
                "refreshToken": again,
                "expiresIn": 3600,
                "tokenType": "Bearer",
            }
        assert asked.path == "/federation/credentials?role_name=Dev%2FOps&account_id=123456789012"
        if asked.headers["x-amz-sso_bearer_token"] != self.token:
            return 401, {"message": "Session token not found or invalid"}
        end = int((time.time() + 3600) * 1000)
        given = {
            "accessKeyId": "SSO",
            "secretAccessKey": "s",
            "sessionToken": "t",
            "expiration": end,
        }
        return 200, {"roleCredentials": given}


def sign_in(
    folder: Path, url: str, *, config: str = CONFIG, expires: str, renews: bool = True
) -> dict[str, str]:
    """Return the environment of a user who has signed in once."""
    cache = folder / ".aws" / "sso" / "cache"
    cache.mkdir(parents=True)
    (folder / ".aws" / "config").write_text(config)
    name = "corp" if config == CONFIG else "https://corp.awsapps.com/start"
    held: dict[str, Any] = {"accessToken": "access-1", "expiresAt": expires, "region": "eu-west-1"}
    if renews:
        held |= {"refreshToken": "refresh-1", "clientId": "id", "clientSecret": "secret"}
    (cache / f"{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()}.json").write_text(
        json.dumps(held)
    )
    places = {"AWS_ENDPOINT_URL_SSO": url, "AWS_ENDPOINT_URL_SSO_OIDC": url, "AWS_PROFILE": "work"}
    return {"HOME": str(folder), "PATH": "/usr/bin:/bin", **places}


@pytest.mark.parametrize("config", [CONFIG, OLD], ids=["session", "old"])
async def test_a_sign_in_that_holds_gives_keys(tmp_path: Path, config: str) -> None:
    async with run_http_service(Portal().answer) as server:
        found = await fetch_keys(
            sign_in(tmp_path, server.url, config=config, expires="2099-01-01T00:00:00UTC"), "x"
        )
    assert (found.access_key, found.secret_key, found.session_token) == ("SSO", "s", "t")
    assert 3_500 < found.expires_at - time.time() < 3_601


async def test_a_renewed_sign_in_is_stored_for_the_next_renewal(tmp_path: Path) -> None:
    portal = Portal()
    async with run_http_service(portal.answer) as server:
        environment = sign_in(tmp_path, server.url, expires="2020-01-01T00:00:00Z")
        assert (await fetch_keys(environment, "x")).access_key == "SSO"
        assert (await fetch_keys(environment, "x")).access_key == "SSO"
    assert portal.renewals == 1
    (file,) = (tmp_path / ".aws" / "sso" / "cache").glob("*.json")
    held = json.loads(file.read_text())
    assert (held["accessToken"], held["refreshToken"], held["clientSecret"]) == (
        "access-2",
        "refresh-2",
        "secret",
    )
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.slow
async def test_processes_that_start_at_once_renew_once(tmp_path: Path) -> None:
    portal = Portal()
    async with run_http_service(portal.answer) as server:
        environment = sign_in(tmp_path, server.url, expires="2020-01-01T00:00:00Z")
        pipe = asyncio.subprocess.PIPE
        started = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", PROGRAM, env=environment, stdout=pipe, stderr=pipe
            )
            for _ in range(3)
        ]
        ended = [await process.communicate() for process in started]
    assert [out for out, _ in ended] == [b"SSO\n"] * 3, ended
    assert portal.renewals == 1


@pytest.mark.parametrize("renews", [True, False])
async def test_a_sign_in_that_has_run_out_says_how_to_sign_in(
    tmp_path: Path, *, renews: bool
) -> None:
    async with run_http_service(lambda _: (400, {"error": "invalid_grant"})) as server:
        environment = sign_in(tmp_path, server.url, expires="2020-01-01T00:00:00Z", renews=renews)
        with pytest.raises(ModelUnavailable, match=r"run out.*aws sso login --profile work"):
            await fetch_keys(environment, "x")


async def test_a_profile_that_never_signed_in_says_how_to_sign_in(tmp_path: Path) -> None:
    environment = sign_in(tmp_path, "http://127.0.0.1:9", expires="2099-01-01T00:00:00Z")
    for file in (tmp_path / ".aws" / "sso" / "cache").iterdir():
        file.unlink()
    with pytest.raises(
        ModelUnavailable, match=r"is not signed in, or its sign-in has run out.*aws sso login"
    ):
        await fetch_keys(environment, "x")


async def test_a_refused_role_is_said_in_the_services_words(tmp_path: Path) -> None:
    async with run_http_service(lambda _: (403, {"message": "No access"})) as server:
        environment = sign_in(tmp_path, server.url, expires="2099-01-01T00:00:00Z")
        with pytest.raises(ModelUnavailable, match=r"profile work: No access.*aws sso login"):
            await fetch_keys(environment, "x")
