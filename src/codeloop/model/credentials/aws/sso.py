"""Gets the keys of a profile that is signed in by `aws sso login`, and renews the sign-in."""

import asyncio
import hashlib
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from codeloop.kit.small_files import write_atomically
from codeloop.model.credentials.aws.discovery import format_host
from codeloop.model.credentials.aws.files import AwsFiles, Section, find_aws_folder
from codeloop.model.credentials.aws.signature import AwsKeys
from codeloop.model.credentials.cloud_request import (
    parse_json_object,
    parse_timestamp,
    read_file_or_empty,
    send_request,
)
from codeloop.model.credentials.renewal_lock import acquire_renewal_lock
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.wire import JSON


async def fetch_sso_keys(
    name: str, profile: Section, files: AwsFiles, environment: Mapping[str, str]
) -> AwsKeys:
    """Return the keys of a profile. Raises `ModelUnavailable`, which says how to sign in again."""
    advice = f"Sign in: `aws sso login --profile {name}`."
    session = profile.get("sso_session", "")
    settings = {**profile, **files.sessions.get(session, {})} if session else profile
    region, aws_folder = settings.get("sso_region", ""), find_aws_folder(environment)
    # As Amazon's tools name the files of their cache.
    cache_key = session or settings.get("sso_start_url", "")
    file_name = hashlib.sha1(cache_key.encode(), usedforsecurity=False).hexdigest()
    cache_file = aws_folder / "sso" / "cache" / f"{file_name}.json" if aws_folder else None
    token = _get_valid_token(
        parse_json_object(await asyncio.to_thread(read_file_or_empty, cache_file))
    )
    # A session (`sso_session`) can be renewed; a sign-in of the older form can't,
    # and has to be made again.
    if token is None and cache_file is not None:
        token = await _renew_token(cache_file, region, environment)
    if token is None:
        raise ModelUnavailable(
            f"The AWS profile {name} is not signed in, or its sign-in has run out. {advice}"
        )
    account, role = profile.get("sso_account_id", ""), profile.get("sso_role_name", "")
    base = environment.get("AWS_ENDPOINT_URL_SSO") or f"https://{format_host('portal.sso', region)}"
    query = urlencode({"role_name": role, "account_id": account})
    answer = await send_request(
        "GET", f"{base}/federation/credentials?{query}", {"x-amz-sso_bearer_token": token}
    )
    match answer.json.get("roleCredentials"):
        case {
            "accessKeyId": str(access),
            "secretAccessKey": str(secret),
            "sessionToken": str(token),
            **more,
        }:
            return AwsKeys(access, secret, token, float(more.get("expiration") or 0) / 1000)
        case _:
            raise ModelUnavailable(
                f"AWS gives no keys for the profile {name}: {answer.describe_error()}. {advice}"
            )


def _get_valid_token(token_data: JSON) -> str | None:
    token = token_data.get("accessToken")
    return (
        token
        if isinstance(token, str) and parse_timestamp(token_data.get("expiresAt")) > time.time()
        else None
    )


async def _renew_token(cache_file: Path, region: str, environment: Mapping[str, str]) -> str | None:
    """Renew a sign-in once among all processes, and store it as AWS's own tools do;
    None: it can't be renewed.

    A renewal may invalidate the refresh token that was sent,
    so the new one has to be stored for the next renewal.
    """
    with ExitStack() as held_lock:
        await acquire_renewal_lock(held_lock, cache_file.with_suffix(".lock"))
        sign_in = parse_json_object(await asyncio.to_thread(read_file_or_empty, cache_file))
        if (token := _get_valid_token(sign_in)) is not None:
            return token
        match sign_in:
            case {
                "refreshToken": str(refresh),
                "clientId": str(client),
                "clientSecret": str(secret),
            }:
                form = {"grantType": "refresh_token", "clientId": client, "clientSecret": secret}
            case _:
                return None
        base = (
            environment.get("AWS_ENDPOINT_URL_SSO_OIDC") or f"https://{format_host('oidc', region)}"
        )
        body = msgspec.json.encode({**form, "refreshToken": refresh})
        answer = await send_request(
            "POST", f"{base}/token", {"content-type": "application/json"}, body
        )
        token = answer.json.get("accessToken")
        if answer.status != 200 or not isinstance(token, str):
            return None
        expiry = datetime.fromtimestamp(time.time() + float(answer.json.get("expiresIn") or 0), UTC)
        tokens = {"accessToken": token, "expiresAt": expiry.strftime("%Y-%m-%dT%H:%M:%SZ")}
        tokens["refreshToken"] = str(answer.json.get("refreshToken") or refresh)
        # A token that can't be stored still serves this process.
        with suppress(OSError):
            await asyncio.to_thread(
                write_atomically, cache_file, msgspec.json.encode({**sign_in, **tokens})
            )
        return token
