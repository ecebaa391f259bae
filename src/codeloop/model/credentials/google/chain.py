"""Google's `CloudChain`: fetches access tokens, and signs requests with them (`GoogleSigner`)."""

import asyncio
import base64
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from codeloop.kit.child_process import Launch
from codeloop.kit.program import run_program
from codeloop.kit.programs import make_safe_environment
from codeloop.model.credentials.cloud_chain import CloudChain
from codeloop.model.credentials.cloud_request import (
    NoAnswer,
    parse_json_object,
    read_file_or_empty,
    send_metadata_request,
    send_request,
)
from codeloop.model.credentials.google.discovery import (
    ADVICE,
    describe_credentials,
    find_credentials_file,
    find_settings,
    has_metadata_service,
    read_credentials_file,
)
from codeloop.model.credentials.signer import Signer
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.bounds.cloud import CLOUD_PROCESS, CLOUD_RENEWAL_LEAD
from codeloop.schema.wire import JSON

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
OAUTH_URL = "https://oauth2.googleapis.com/token"
METADATA_HOST = "metadata.google.internal"
JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
REQUESTED_TYPE = "urn:ietf:params:oauth:token-type:access_token"
MAX_LIFETIME_SECONDS = 3_600
"""The longest time that Google lets a signed claim be valid."""
SIGN_IN_ADVICE = "Sign in again: `gcloud auth application-default login`."
FORM_HEADERS = {"content-type": "application/x-www-form-urlencoded"}


class AccessToken(NamedTuple):
    """A token, and its expiry (seconds since the epoch)."""

    text: str
    expires_at: float


class GoogleSigner:
    """Signs requests with a token that is cached until shortly before it expires."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._token = AccessToken("", expires_at=0.0)
        self._lock = asyncio.Lock()
        self._project = ""

    async def sign(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the header with the token. Raises `ModelUnavailable`: no credentials,
        or they are refused.
        """
        del url, headers, body
        async with self._lock:
            if time.time() + CLOUD_RENEWAL_LEAD.seconds >= self._token.expires_at:
                self._token = await self._fetch_token()
        # The project that pays for the request, and whose quota counts.
        quota = {"x-goog-user-project": self._project} if self._project else {}
        return {"authorization": f"Bearer {self._token.text}", **quota}

    async def _fetch_token(self) -> AccessToken:
        file = find_credentials_file(self._environment)
        if file is not None:
            content = await asyncio.to_thread(read_credentials_file, file)
            quota = self._environment.get("GOOGLE_CLOUD_QUOTA_PROJECT") or content.get(
                "quota_project_id"
            )
            self._project = str(quota or "")
            return await fetch_token(content, file)
        if has_metadata_service(self._environment):
            return await _fetch_metadata_token(self._environment)
        raise ModelUnavailable(f"There are no Google credentials. {ADVICE}")


async def fetch_token(content: JSON, file: Path) -> AccessToken:
    """Return a token for the content of a credentials file. Raises `ModelUnavailable`."""
    match content:
        case {"type": "service_account", "client_email": str(), "private_key": str()}:
            return await _fetch_service_account_token(content, file)
        case {"type": "authorized_user", "client_id": str(client), "refresh_token": str(refresh)}:
            form = {"client_id": client, "client_secret": str(content.get("client_secret") or "")}
            form |= {"refresh_token": refresh, "grant_type": "refresh_token"}
            return await _exchange_grant(
                str(content.get("token_uri") or OAUTH_URL), form, file, SIGN_IN_ADVICE
            )
        case {
            "type": "impersonated_service_account",
            "service_account_impersonation_url": str(url),
        }:
            return await _fetch_impersonated_token(url, content, file)
        case {
            "type": "external_account",
            "audience": str(),
            "token_url": str(),
            "credential_source": dict(),
        }:
            return await _fetch_federated_token(content, file)
        case {"type": str(kind)}:
            raise ModelUnavailable(
                f"{file} holds Google credentials of the type `{kind}`, which codeloop can't use. "
                "Use `gcloud auth application-default login` or the key file of a service account."
            )
        case _:
            raise ModelUnavailable(
                f"{file} holds no Google credentials: it is missing, unreadable or of another form."
            )


async def _fetch_service_account_token(content: JSON, file: Path) -> AccessToken:
    now, url = int(time.time()), str(content.get("token_uri") or OAUTH_URL)
    claim = {
        "iss": content["client_email"],
        "scope": SCOPE,
        "aud": url,
        "iat": now,
        "exp": now + MAX_LIFETIME_SECONDS,
    }
    head: JSON = {"alg": "RS256", "typ": "JWT"}
    if key_id := content.get("private_key_id"):
        head["kid"] = key_id
    signing_input = b".".join(
        map(_encode_base64url, (msgspec.json.encode(head), msgspec.json.encode(claim)))
    )
    signature = await sign_rs256(signing_input, str(content["private_key"]), file)
    assertion = (signing_input + b"." + _encode_base64url(signature)).decode()
    advice = "Make a new key for the service account, or sign in as yourself."
    return await _exchange_grant(
        url, {"grant_type": JWT_GRANT, "assertion": assertion}, file, advice
    )


async def _fetch_impersonated_token(url: str, content: JSON, file: Path) -> AccessToken:
    """Return the token of a service account that the credentials inside the file may act as."""
    source: JSON = content.get("source_credentials") or {}
    token = await fetch_token(source, file)
    return await _impersonate(url, token.text, content.get("delegates") or [], file)


async def _impersonate(url: str, token: str, delegates: list[str], file: Path) -> AccessToken:
    body = msgspec.json.encode(
        {"scope": [SCOPE], "lifetime": f"{MAX_LIFETIME_SECONDS}s", "delegates": delegates}
    )
    answer = await send_request(
        "POST", url, {"authorization": f"Bearer {token}", "content-type": "application/json"}, body
    )
    access_token = answer.json.get("accessToken")
    if answer.status != 200 or not isinstance(access_token, str):
        raise ModelUnavailable(
            f"Google does not let the credentials of {file} act as another: {answer.describe_error()}."
        )
    return AccessToken(access_token, time.time() + MAX_LIFETIME_SECONDS)


async def _fetch_federated_token(content: JSON, file: Path) -> AccessToken:
    """Exchange a token of another issuer, read from a file or fetched from a URL,
    for one of Google's.
    """
    source: JSON = content["credential_source"]
    if isinstance(path := source.get("file"), str):
        subject_token = await asyncio.to_thread(read_file_or_empty, Path(path))
    elif isinstance(url := source.get("url"), str):
        headers: JSON = source.get("headers") or {}
        subject_token = (
            await send_request("GET", url, {name: str(value) for name, value in headers.items()})
        ).body
    else:
        raise ModelUnavailable(
            f"{file} names a source of tokens that codeloop can't read: neither a file nor an address. "
            "Use `gcloud auth application-default login` or the key file of a service account."
        )
    form: JSON = source.get("format") or {}
    subject: str = subject_token.decode(errors="replace").strip()
    if form.get("type") == "json":
        subject = str(
            parse_json_object(subject_token).get(str(form.get("subject_token_field_name"))) or ""
        )
    fields = {"grant_type": EXCHANGE_GRANT, "audience": str(content["audience"]), "scope": SCOPE}
    fields |= {"requested_token_type": REQUESTED_TYPE, "subject_token": subject}
    fields["subject_token_type"] = str(content.get("subject_token_type") or "")
    token = await _exchange_grant(
        str(content["token_url"]), fields, file, "Look at the pool and its provider."
    )
    if role := content.get("service_account_impersonation_url"):
        return await _impersonate(str(role), token.text, [], file)
    return token


async def _exchange_grant(
    url: str, form: Mapping[str, str], file: Path, advice: str
) -> AccessToken:
    answer = await send_request("POST", url, FORM_HEADERS, urlencode(form).encode())
    data = answer.json
    if answer.status != 200 or not isinstance(token := data.get("access_token"), str):
        raise ModelUnavailable(
            f"Google refused the credentials of {file}: {answer.describe_error()}. {advice}"
        )
    return AccessToken(token, time.time() + _read_lifetime(data))


async def _fetch_metadata_token(environment: Mapping[str, str]) -> AccessToken:
    host = environment.get("GCE_METADATA_HOST") or METADATA_HOST
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    try:
        answer = await send_metadata_request("GET", url, {"metadata-flavor": "Google"})
    except NoAnswer as error:
        raise ModelUnavailable(
            f"The metadata service of this machine ({host}) gives no token: {error}."
        ) from None
    if answer.status != 200 or not isinstance(token := answer.json.get("access_token"), str):
        raise ModelUnavailable(
            f"The metadata service of this machine gives no token: {answer.describe_error()}."
        )
    return AccessToken(token, time.time() + _read_lifetime(answer.json))


def _read_lifetime(data: JSON) -> float:
    lifetime = data.get("expires_in")
    return float(lifetime) if isinstance(lifetime, (int, float)) else float(MAX_LIFETIME_SECONDS)


async def sign_rs256(data: bytes, key: str, file: Path) -> bytes:
    """Sign with RSA and SHA-256: by the library `cryptography`, else by the program `openssl`."""
    try:
        # Not a dependency: it is large, and only keys of service accounts need it.
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        return await _sign_with_openssl(data, key, file)
    try:
        private_key = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ModelUnavailable(
            f"The private key in {file} can't be read ({error}). Download a new one."
        ) from None
    if not isinstance(private_key, RSAPrivateKey):
        raise ModelUnavailable(f"The private key in {file} is not an RSA key. Download a new one.")
    return private_key.sign(data, PKCS1v15(), SHA256())


async def _sign_with_openssl(data: bytes, key: str, file: Path) -> bytes:
    import os
    import tempfile

    # `openssl` reads keys from files only; this one is readable by the user alone.
    with tempfile.NamedTemporaryFile(prefix="codeloop-", suffix=".pem") as key_file:
        key_file.write(key.encode())
        key_file.flush()
        try:
            # It runs in `/`: a relative folder of PATH must not lead into the project.
            launch = Launch(
                ("openssl", "dgst", "-sha256", "-sign", key_file.name),
                "/",
                {"PATH": make_safe_environment(os.environ)["PATH"]},
                stdin=data,
                seconds=CLOUD_PROCESS.seconds,
            )
            result = await run_program(launch)
        except OSError:
            raise ModelUnavailable(
                "Neither the Python package `cryptography` nor the program `openssl` is there, one of which signs with "
                "the key of a service account. Install one, or run `gcloud auth application-default login`."
            ) from None
    if result.code != 0 or not result.stdout:
        raise ModelUnavailable(f"The private key in {file} can't be used. Download a new one.")
    return result.stdout


def _encode_base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def open_signer(environment: Mapping[str, str], url: str) -> Signer:
    """Return the signer of requests. No credentials are read before the first one."""
    del url

    return GoogleSigner(environment)


CHAIN = CloudChain(
    describe_credentials=describe_credentials,
    open_signer=open_signer,
    find_settings=find_settings,
    advice=ADVICE,
    accepts_key=False,
)
