"""Amazon's access keys from their sources (variables, profiles, roles, machine), in the order of Amazon's own tools."""

import asyncio
import re
import shlex
import time
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from codeloop.kit.processes import with_absolute_path
from codeloop.model.credentials.aws.discovery import ADVICE, CONTAINER, host_of, is_instance
from codeloop.model.credentials.aws.files import AwsFiles, Section, profile_of, read_files
from codeloop.model.credentials.aws.signature import AwsKeys, sign
from codeloop.model.credentials.aws.sso import by_sign_in
from codeloop.model.credentials.cloud_request import NoAnswer, ask, ask_metadata, read_bytes, read_json, read_moment
from codeloop.model.errors import ModelUnavailable
from codeloop.net.origin import is_loopback
from codeloop.schema.bounds.cloud import CLOUD_EARLY, CLOUD_PROCESS, CLOUD_REREAD, CLOUD_ROLES
from codeloop.schema.wire import JSON

NONE = f"There are no AWS credentials. {ADVICE}"
INSTANCE = "http://169.254.169.254"
TASK = "http://169.254.170.2"
TASK_HOSTS = frozenset({"169.254.170.2", "169.254.170.23", "fd00:ec2::23"})
"""Hosts that containers may ask for credentials without TLS, as well as the loopback address."""
_XML_FIELD = re.compile(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration|Message)>([^<]*)</\1>")
"""A field of the XML that the token service answers."""


async def fetch_keys(environment: Mapping[str, str], region: str) -> AwsKeys:
    """Return keys from the first source that has some. Raises `ModelUnavailable`, which says what to do."""
    files = await asyncio.to_thread(read_files, environment)
    if not environment.get("AWS_PROFILE") and (keys := _variables(environment)) is not None:
        return keys
    name = profile_of(environment)
    if environment.get("AWS_PROFILE") and name not in files.profiles:
        raise ModelUnavailable(f"There is no AWS profile `{name}` in ~/.aws. Correct AWS_PROFILE or `options.profile`.")
    if (keys := await _Profiles(environment, files, region).find(name)) is not None:
        return keys
    token, role = environment.get("AWS_WEB_IDENTITY_TOKEN_FILE", ""), environment.get("AWS_ROLE_ARN", "")
    if token and role:
        return await by_web_identity(token, role, environment.get("AWS_ROLE_SESSION_NAME", ""), region, environment)
    if any(environment.get(variable) for variable in CONTAINER):
        return await _of_container(environment)
    if is_instance(environment):
        return await _of_instance(environment)
    raise ModelUnavailable(NONE)


def _variables(environment: Mapping[str, str]) -> AwsKeys | None:
    access, secret = environment.get("AWS_ACCESS_KEY_ID", ""), environment.get("AWS_SECRET_ACCESS_KEY", "")
    return AwsKeys(access, secret, environment.get("AWS_SESSION_TOKEN", "")) if access and secret else None


def _static_keys(access: str, secret: str, token: str) -> AwsKeys:
    """Return keys from a file. Temporary ones are read again after a while, since other tools renew them there."""
    return AwsKeys(access, secret, token, time.time() + CLOUD_EARLY.seconds + CLOUD_REREAD.seconds if token else 0.0)


class _Profiles:
    """Finds the keys of a profile, which may name others."""

    def __init__(self, environment: Mapping[str, str], files: AwsFiles, region: str) -> None:
        self._environment = environment
        self._files = files
        self._region = region

    async def find(self, name: str, depth: int = 0) -> AwsKeys | None:
        """Return the keys of a profile; None when it has no source of any. Raises `ModelUnavailable`."""
        profile = self._files.profiles.get(name, {})
        if depth > CLOUD_ROLES.value:
            raise ModelUnavailable(f"The AWS profile {name} refers to others more than {CLOUD_ROLES.value} times.")
        access, secret = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
        is_static = bool(access and secret)
        # A profile that another one refers to gives its own keys, if it has some, not its role: as in Amazon's tools.
        if (role := profile.get("role_arn")) and not (depth and is_static):
            if token := profile.get("web_identity_token_file"):
                session = profile.get("role_session_name", "")
                return await by_web_identity(token, role, session, self._region, self._environment)
            return await self._by_role(name, profile, depth)
        if access and secret:
            return _static_keys(access, secret, profile.get("aws_session_token", ""))
        if "sso_session" in profile or "sso_start_url" in profile:
            return await by_sign_in(name, profile, self._files, self._environment)
        if command := profile.get("credential_process"):
            return await by_process(command, name, self._environment)
        if "login_session" in profile:
            raise ModelUnavailable(
                f"The AWS profile {name} is signed in by `aws login`, whose keys only AWS tools read. Name a profile "
                f"with the line `credential_process = aws configure export-credentials --profile {name}` instead."
            )
        return None

    async def _by_role(self, name: str, profile: Section, depth: int) -> AwsKeys:
        if "mfa_serial" in profile:
            raise ModelUnavailable(
                f"The role of the AWS profile {name} asks for a code of a second factor, which codeloop can't enter. "
                f'Take temporary credentials first: `eval "$(aws configure export-credentials --profile {name} '
                '--format env)"`.'
            )
        match profile.get("source_profile"), profile.get("credential_source"):
            case str(source), _:
                keys = await self.find(source, depth + 1)
            case _, "Environment":
                keys = _variables(self._environment)
            case _, "Ec2InstanceMetadata":
                keys = await _of_instance(self._environment)
            case _, "EcsContainer":
                keys = await _of_container(self._environment)
            case _:
                keys = None
        if keys is None:
            raise ModelUnavailable(f"The AWS profile {name} takes a role, but names no source of keys for it.")
        form = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": profile["role_arn"]}
        form["RoleSessionName"] = profile.get("role_session_name") or f"codeloop-{int(time.time())}"
        if external := profile.get("external_id"):
            form["ExternalId"] = external
        if seconds := profile.get("duration_seconds"):
            form["DurationSeconds"] = seconds
        url, body = _sts(self._region, self._environment), urlencode(form).encode()
        headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        signature = sign(keys, url, headers, body, region=self._region, service="sts", moment=moment)
        answer = await ask("POST", url, {**headers, **signature}, body)
        return read_sts(answer.status, answer.body, f"the role of the AWS profile {name}")


async def by_web_identity(file: str, role: str, session: str, region: str, environment: Mapping[str, str]) -> AwsKeys:
    """Return the keys of a role for the token in a file, which a cluster renews. Raises `ModelUnavailable`."""
    token = (await asyncio.to_thread(read_bytes, Path(file).expanduser())).decode(errors="replace").strip()
    if not token:
        raise ModelUnavailable(f"The token file {file} (AWS_WEB_IDENTITY_TOKEN_FILE) is empty or can't be read.")
    form = {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": role, "WebIdentityToken": token}
    form["RoleSessionName"] = session or f"codeloop-{int(time.time())}"
    url, headers = _sts(region, environment), {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    answer = await ask("POST", url, headers, urlencode(form).encode())
    return read_sts(answer.status, answer.body, f"the role {role}")


async def by_process(command: str, name: str, environment: Mapping[str, str]) -> AwsKeys:
    """Return the keys that the program of a profile's `credential_process` prints. Raises `ModelUnavailable`."""
    try:
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=with_absolute_path(environment),
            cwd="/",  # a relative folder of PATH must not lead into the project
        )
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"`credential_process` of the AWS profile {name} can't be run: {error}.") from None
    try:
        out, err = await asyncio.wait_for(process.communicate(), CLOUD_PROCESS.seconds)
    except TimeoutError:
        process.kill()
        await process.wait()
        out, err = b"", f"it took more than {CLOUD_PROCESS.seconds:g} s".encode()
    match read_json(out):
        case {"Version": 1, "AccessKeyId": str(access), "SecretAccessKey": str(secret), **more}:
            return AwsKeys(access, secret, str(more.get("SessionToken") or ""), read_moment(more.get("Expiration")))
        case _:
            message = " ".join(err.decode(errors="replace").split())[:300] or "it printed no credentials"
            raise ModelUnavailable(f"`credential_process` of the AWS profile {name} failed: {message}.")


async def _of_container(environment: Mapping[str, str]) -> AwsKeys:
    relative, full = (environment.get(variable, "") for variable in CONTAINER)
    url = f"{TASK}{relative}" if relative else full
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https" and host not in TASK_HOSTS and not is_loopback(host):
        raise ModelUnavailable(f"AWS_CONTAINER_CREDENTIALS_FULL_URI names {host}, which is asked by https only.")
    token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if file := environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        token = (await asyncio.to_thread(read_bytes, Path(file))).decode(errors="replace").strip()
    try:
        answer = await ask_metadata("GET", url, {"authorization": token} if token else {})
    except NoAnswer as error:
        raise ModelUnavailable(f"This container's credentials can't be had from {host}: {error}.") from None
    return _of_metadata(answer.json, "this container", answer.reason())


async def _of_instance(environment: Mapping[str, str]) -> AwsKeys:
    """Return the keys of this instance's role; only the second version of the metadata service is spoken."""
    base = (environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or INSTANCE).rstrip("/")
    try:
        # Six hours, the most that the service allows.
        life = {"x-aws-ec2-metadata-token-ttl-seconds": "21600"}
        metadata = await ask_metadata("PUT", f"{base}/latest/api/token", life)
        token = {"x-aws-ec2-metadata-token": metadata.body.decode("ascii", "replace")}
        roles = f"{base}/latest/meta-data/iam/security-credentials/"
        bindings = await ask_metadata("GET", roles, token)
        if metadata.status != 200 or bindings.status != 200:
            raise ModelUnavailable(f"This instance has no role ({bindings.reason()}). {NONE}")
        role = bindings.body.decode("ascii", "replace").split("\n")[0].strip()
        answer = await ask_metadata("GET", roles + quote(role), token)
    except NoAnswer as error:
        raise ModelUnavailable(f"The metadata service of this instance does not answer: {error}. {NONE}") from None
    return _of_metadata(answer.json, "this instance", answer.reason())


def _of_metadata(data: JSON, what: str, reason: str) -> AwsKeys:
    match data:
        case {"AccessKeyId": str(access), "SecretAccessKey": str(secret), "Token": str(token), **more}:
            return AwsKeys(access, secret, token, read_moment(more.get("Expiration")))
        case _:
            raise ModelUnavailable(f"AWS gives no keys to {what}: {reason}.")


def read_sts(status: int, body: bytes, what: str) -> AwsKeys:
    """Return the keys in an answer of the token service. Raises `ModelUnavailable` with what it says otherwise."""
    fields = {name: unescape(text).strip() for name, text in _XML_FIELD.findall(body.decode("utf-8", "replace"))}
    if status != 200 or not fields.get("AccessKeyId"):
        raise ModelUnavailable(f"AWS gives no keys for {what}: {fields.get('Message') or f'HTTP {status}'}")
    keys = (fields.get(name, "") for name in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
    return AwsKeys(*keys, expires=read_moment(fields.get("Expiration")))


def _sts(region: str, environment: Mapping[str, str]) -> str:
    return (environment.get("AWS_ENDPOINT_URL_STS") or f"https://{host_of('sts', region)}").rstrip("/") + "/"
