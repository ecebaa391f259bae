"""Amazon's `CloudChain`: gets access keys from their sources,
and signs requests with them (`AwsSigner`).
"""

import asyncio
import re
import shlex
import time
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from codeloop.kit.child_process import Launch
from codeloop.kit.paths import expand_user_path
from codeloop.kit.program import run_program
from codeloop.kit.programs import make_safe_environment
from codeloop.model.credentials.aws.discovery import (
    ADVICE,
    CONTAINER_VARIABLES,
    describe_credentials,
    find_settings,
    format_host,
    is_ec2_instance,
    parse_region,
)
from codeloop.model.credentials.aws.files import (
    AwsFiles,
    Section,
    choose_profile,
    read_aws_files,
)
from codeloop.model.credentials.aws.signature import AwsKeys, make_signature_headers
from codeloop.model.credentials.cloud_chain import CloudChain
from codeloop.model.credentials.cloud_request import (
    CloudAnswer,
    NoAnswer,
    parse_json_object,
    parse_timestamp,
    read_file_or_empty,
    send_metadata_request,
    send_request,
)
from codeloop.model.credentials.signer import Signer
from codeloop.model.errors import ModelUnavailable
from codeloop.net.hosts import is_loopback
from codeloop.schema.bounds.cloud import (
    CLOUD_FILE_REREAD,
    CLOUD_PROCESS,
    CLOUD_RENEWAL_LEAD,
    CLOUD_ROLE_CHAIN,
)

NO_CREDENTIALS_MESSAGE = f"There are no AWS credentials. {ADVICE}"
INSTANCE_METADATA_URL = "http://169.254.169.254"
TASK_METADATA_URL = "http://169.254.170.2"
# ECS, then EKS (IPv4 and IPv6).
TASK_HOSTS = frozenset({"169.254.170.2", "169.254.170.23", "fd00:ec2::23"})
"""Hosts that containers may ask for credentials without TLS, as well as the loopback address."""
_STS_HEADERS = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
_XML_FIELD = r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration|Message)>([^<]*)</\1>"
"""A field of the XML that the token service answers."""


class AwsSigner:
    """Signs requests to one service in one region, with keys that are cached until
    shortly before they expire.
    """

    def __init__(self, environment: Mapping[str, str], url: str) -> None:
        host = urlsplit(url).hostname or ""
        self._environment = environment
        self._service = "bedrock-mantle" if "bedrock-mantle" in host.split(".") else "bedrock"
        self._region = parse_region(host) or find_settings(environment)["AWS_REGION"]
        self._keys: AwsKeys | None = None
        self._lock = asyncio.Lock()

    async def sign(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers that sign the request. Raises `ModelUnavailable`: no credentials,
        or they are refused.
        """
        async with self._lock:
            keys = self._keys
            if keys is None or (
                keys.expires_at and time.time() + CLOUD_RENEWAL_LEAD.seconds >= keys.expires_at
            ):
                keys = self._keys = await fetch_keys(self._environment, self._region)
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return make_signature_headers(
            keys, url, headers, body, region=self._region, service=self._service, moment=moment
        )


async def fetch_keys(environment: Mapping[str, str], region: str) -> AwsKeys:
    """Return keys from the first source that has some.
    Raises `ModelUnavailable`, which says what to do.
    """
    files = await asyncio.to_thread(read_aws_files, environment)
    if not environment.get("AWS_PROFILE") and (keys := _read_variables(environment)) is not None:
        return keys
    name = choose_profile(environment)
    if environment.get("AWS_PROFILE") and name not in files.profiles:
        raise ModelUnavailable(
            f"There is no AWS profile `{name}` in your AWS files. Correct AWS_PROFILE or `options.profile`."
        )
    if (keys := await _ProfileResolver(environment, files, region).find_keys(name)) is not None:
        return keys
    token, role = (
        environment.get("AWS_WEB_IDENTITY_TOKEN_FILE", ""),
        environment.get("AWS_ROLE_ARN", ""),
    )
    if token and role:
        source = _WebIdentity(
            token, role, environment.get("AWS_ROLE_SESSION_NAME", ""), "AWS_WEB_IDENTITY_TOKEN_FILE"
        )
        return await _fetch_web_identity_keys(source, region, environment)
    if any(environment.get(variable) for variable in CONTAINER_VARIABLES):
        return await _fetch_container_keys(environment)
    if is_ec2_instance(environment):
        return await _fetch_instance_keys(environment)
    raise ModelUnavailable(NO_CREDENTIALS_MESSAGE)


def _read_variables(environment: Mapping[str, str]) -> AwsKeys | None:
    access, secret = (
        environment.get("AWS_ACCESS_KEY_ID", ""),
        environment.get("AWS_SECRET_ACCESS_KEY", ""),
    )
    return (
        AwsKeys(access, secret, environment.get("AWS_SESSION_TOKEN", ""))
        if access and secret
        else None
    )


def _make_static_keys(access: str, secret: str, token: str) -> AwsKeys:
    """Return keys from a file. Temporary ones are read again after a while,
    since other tools renew them there.
    """
    read_again_at = (
        time.time() + CLOUD_RENEWAL_LEAD.seconds + CLOUD_FILE_REREAD.seconds if token else 0.0
    )
    return AwsKeys(access, secret, token, expires_at=read_again_at)


class _ProfileResolver:
    """Finds the keys of a profile, which may name others."""

    def __init__(self, environment: Mapping[str, str], files: AwsFiles, region: str) -> None:
        self._environment = environment
        self._files = files
        self._region = region

    async def find_keys(self, name: str, depth: int = 0) -> AwsKeys | None:
        """Return the keys of a profile; None when it has no source of any.
        Raises `ModelUnavailable`.
        """
        profile = self._files.profiles.get(name, {})
        if depth > CLOUD_ROLE_CHAIN.value:
            raise ModelUnavailable(
                f"The AWS profile {name} refers to others more than {CLOUD_ROLE_CHAIN.value} times."
            )
        access, secret = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
        is_static = bool(access and secret)
        # The keys of a profile that another one refers to take precedence over its role,
        # as in Amazon's tools.
        if (role := profile.get("role_arn")) and not (depth and is_static):
            if token := profile.get("web_identity_token_file"):
                setting = f"web_identity_token_file of the AWS profile {name}"
                source = _WebIdentity(token, role, profile.get("role_session_name", ""), setting)
                return await _fetch_web_identity_keys(source, self._region, self._environment)
            return await self._assume_role(name, profile, depth)
        if access and secret:
            return _make_static_keys(access, secret, profile.get("aws_session_token", ""))
        if "sso_session" in profile or "sso_start_url" in profile:
            # Imported late: other sources of keys need no sign-in.
            from codeloop.model.credentials.aws.sso import fetch_sso_keys

            return await fetch_sso_keys(name, profile, self._files, self._environment)
        if command := profile.get("credential_process"):
            return await run_credential_process(command, name, self._environment)
        if "login_session" in profile:
            raise ModelUnavailable(
                f"The AWS profile {name} is signed in by `aws login`, whose keys only AWS tools read. Name a profile "
                f"with the line `credential_process = aws configure export-credentials --profile {name}` instead."
            )
        return None

    async def _assume_role(self, name: str, profile: Section, depth: int) -> AwsKeys:
        if "mfa_serial" in profile:
            raise ModelUnavailable(
                f"The role of the AWS profile {name} asks for a code of a second factor, which codeloop can't enter. "
                f'Take temporary credentials first: `eval "$(aws configure export-credentials --profile {name} '
                '--format env)"`.'
            )
        match profile.get("source_profile"), profile.get("credential_source"):
            case str(source), _:
                keys = await self.find_keys(source, depth + 1)
            case _, "Environment":
                keys = _read_variables(self._environment)
            case _, "Ec2InstanceMetadata":
                keys = await _fetch_instance_keys(self._environment)
            case _, "EcsContainer":
                keys = await _fetch_container_keys(self._environment)
            case _:
                keys = None
        if keys is None:
            raise ModelUnavailable(
                f"The AWS profile {name} takes a role, but names no source of keys for it."
            )
        form = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": profile["role_arn"]}
        form["RoleSessionName"] = profile.get("role_session_name") or f"codeloop-{int(time.time())}"
        if external := profile.get("external_id"):
            form["ExternalId"] = external
        if seconds := profile.get("duration_seconds"):
            form["DurationSeconds"] = seconds
        url, body = _choose_sts_url(self._region, self._environment), urlencode(form).encode()
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        signature = make_signature_headers(
            keys, url, _STS_HEADERS, body, region=self._region, service="sts", moment=moment
        )
        answer = await send_request("POST", url, {**_STS_HEADERS, **signature}, body)
        return parse_sts_keys(answer.status, answer.body, f"the role of the AWS profile {name}")


class _WebIdentity(NamedTuple):
    """The file of a token, and the role that it is exchanged for. `session`: its name;
    empty: one is made.

    `setting`: where the file is named, in words for the user.
    """

    file: str
    role: str
    session: str
    setting: str


async def _fetch_web_identity_keys(
    source: _WebIdentity, region: str, environment: Mapping[str, str]
) -> AwsKeys:
    """Return the keys of a role for the token in a file, which a cluster renews.
    Raises `ModelUnavailable`.
    """
    file, role = expand_user_path(source.file), source.role
    token = (await asyncio.to_thread(read_file_or_empty, file)).decode(errors="replace").strip()
    if not token:
        raise ModelUnavailable(
            f"The token file {source.file} ({source.setting}) is empty or can't be read."
        )
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": role,
        "WebIdentityToken": token,
    }
    form["RoleSessionName"] = source.session or f"codeloop-{int(time.time())}"
    answer = await send_request(
        "POST", _choose_sts_url(region, environment), _STS_HEADERS, urlencode(form).encode()
    )
    return parse_sts_keys(answer.status, answer.body, f"the role {role}")


async def run_credential_process(
    command: str, name: str, environment: Mapping[str, str]
) -> AwsKeys:
    """Return the keys that the program of a profile's `credential_process` prints.
    Raises `ModelUnavailable`.
    """
    try:
        # It runs in `/`: a relative folder of PATH must not lead into the project.
        launch = Launch(
            shlex.split(command),
            "/",
            make_safe_environment(environment),
            is_apart=False,
            seconds=CLOUD_PROCESS.seconds,
        )
        result = await run_program(launch)
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"`credential_process` of the AWS profile {name} can't be run: {error}."
        ) from None
    match parse_json_object(b"" if result.stop_reason else result.stdout):
        case {"Version": 1, "AccessKeyId": str(access), "SecretAccessKey": str(secret), **more}:
            return AwsKeys(
                access,
                secret,
                str(more.get("SessionToken") or ""),
                parse_timestamp(more.get("Expiration")),
            )
        case _:
            message = " ".join(result.error_text.split())[:300] or "it printed no credentials"
            if result.stop_reason == "time":
                message = f"it took more than {CLOUD_PROCESS.seconds:g} s"
            raise ModelUnavailable(
                f"`credential_process` of the AWS profile {name} failed: {message}."
            )


async def _fetch_container_keys(environment: Mapping[str, str]) -> AwsKeys:
    relative, full = (environment.get(variable, "") for variable in CONTAINER_VARIABLES)
    url = f"{TASK_METADATA_URL}{relative}" if relative else full
    parts = urlsplit(url)
    host = parts.hostname or ""
    # The token must not cross a network in the clear.
    if parts.scheme != "https" and host not in TASK_HOSTS and not is_loopback(host):
        raise ModelUnavailable(
            f"AWS_CONTAINER_CREDENTIALS_FULL_URI names {host}, which is asked by https only."
        )
    token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if file := environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        token = (
            (await asyncio.to_thread(read_file_or_empty, Path(file)))
            .decode(errors="replace")
            .strip()
        )
    try:
        answer = await send_metadata_request("GET", url, {"authorization": token} if token else {})
    except NoAnswer as error:
        raise ModelUnavailable(
            f"This container's credentials can't be had from {host}: {error}."
        ) from None
    return _parse_metadata_keys(answer, "this container")


async def _fetch_instance_keys(environment: Mapping[str, str]) -> AwsKeys:
    """Return the keys of this instance's role, by the second version of the metadata
    service (IMDSv2) only.
    """
    base = (environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or INSTANCE_METADATA_URL).rstrip(
        "/"
    )
    try:
        # Six hours, the most that the service allows.
        lifetime_headers = {"x-aws-ec2-metadata-token-ttl-seconds": "21600"}
        token = await send_metadata_request("PUT", f"{base}/latest/api/token", lifetime_headers)
        token_headers = {"x-aws-ec2-metadata-token": token.body.decode("ascii", "replace")}
        roles_url = f"{base}/latest/meta-data/iam/security-credentials/"
        roles = await send_metadata_request("GET", roles_url, token_headers)
        if token.status != 200 or roles.status != 200:
            raise ModelUnavailable(
                f"This instance has no role ({roles.describe_error()}). {NO_CREDENTIALS_MESSAGE}"
            )
        role = roles.body.decode("ascii", "replace").split("\n")[0].strip()
        answer = await send_metadata_request("GET", roles_url + quote(role), token_headers)
    except NoAnswer as error:
        raise ModelUnavailable(
            f"The metadata service of this instance does not answer: {error}. {NO_CREDENTIALS_MESSAGE}"
        ) from None
    return _parse_metadata_keys(answer, "this instance")


def _parse_metadata_keys(answer: CloudAnswer, owner: str) -> AwsKeys:
    match answer.json:
        case {
            "AccessKeyId": str(access),
            "SecretAccessKey": str(secret),
            "Token": str(token),
            **more,
        }:
            return AwsKeys(access, secret, token, parse_timestamp(more.get("Expiration")))
        case _:
            raise ModelUnavailable(f"AWS gives no keys to {owner}: {answer.describe_error()}.")


def parse_sts_keys(status: int, body: bytes, owner: str) -> AwsKeys:
    """Return the keys in an answer of the token service (STS).
    Raises `ModelUnavailable` with its message.

    `owner`: whose keys they are, in words for the user.
    """
    fields = {
        name: unescape(text).strip()
        for name, text in re.findall(_XML_FIELD, body.decode("utf-8", "replace"))
    }
    if status != 200 or not fields.get("AccessKeyId"):
        raise ModelUnavailable(
            f"AWS gives no keys for {owner}: {fields.get('Message') or f'HTTP {status}'}"
        )
    keys = (fields.get(name, "") for name in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
    return AwsKeys(*keys, expires_at=parse_timestamp(fields.get("Expiration")))


def _choose_sts_url(region: str, environment: Mapping[str, str]) -> str:
    return (
        environment.get("AWS_ENDPOINT_URL_STS") or f"https://{format_host('sts', region)}"
    ).rstrip("/") + "/"


def open_signer(environment: Mapping[str, str], url: str) -> Signer:
    """Return the signer of requests. No credentials are read before the first one."""
    return AwsSigner(environment, url)


CHAIN = CloudChain(
    describe_credentials=describe_credentials,
    open_signer=open_signer,
    find_settings=find_settings,
    advice=ADVICE,
    accepts_key=True,
)
