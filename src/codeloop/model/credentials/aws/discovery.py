"""Finds out where Amazon's credentials are, and for which region. Sends nothing."""

from collections.abc import Mapping
from pathlib import Path

from codeloop.model.credentials.aws.files import profile_of, read_files

DEFAULT_REGION = "us-east-1"
CONTAINER = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
SIGN_INS = ("sso_session", "sso_start_url", "login_session")
PROFILE_SOURCES = ("aws_access_key_id", "role_arn", "credential_process", *SIGN_INS)
ADVICE = (
    "Set AWS_BEARER_TOKEN_BEDROCK to an API key of Bedrock, or store one: `codeloop auth login amazon-bedrock`. Or "
    "run `aws configure` (or `aws configure sso`, then `aws sso login`), or set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY."
)
_HYPERVISOR = (Path("/sys/devices/virtual/dmi/id/sys_vendor"), Path("/sys/class/dmi/id/sys_vendor"))
"""On an instance of Amazon's the vendor is "Amazon EC2"."""


def find(environment: Mapping[str, str]) -> str:
    """Return where the credentials come from, in words for the user; empty if there are none."""
    is_named = bool(environment.get("AWS_PROFILE"))
    if environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY") and not is_named:
        return "AWS_ACCESS_KEY_ID"
    name = profile_of(environment)
    if is_named or any(key in PROFILE_SOURCES for key in read_files(environment).profiles.get(name, {})):
        return f"the AWS profile {name}"
    if environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") and environment.get("AWS_ROLE_ARN"):
        return "AWS_WEB_IDENTITY_TOKEN_FILE"
    if any(environment.get(variable) for variable in CONTAINER):
        return "the credentials of this container"
    return "the role of this instance" if is_instance(environment) else ""


def is_instance(environment: Mapping[str, str]) -> bool:
    """Return whether this machine is an instance of Amazon's, whose metadata service may be asked."""
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    if environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT"):
        return True
    for path in _HYPERVISOR:
        try:
            return path.read_text(encoding="utf-8", errors="replace").startswith("Amazon EC2")
        except OSError:
            continue
    return False


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return region and address of Bedrock by variable: as set, else by the profile's region, or the default one."""
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        region = read_files(environment).profiles.get(profile_of(environment), {}).get("region")
    region = region or DEFAULT_REGION
    url = environment.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME") or f"https://{host_of('bedrock-runtime', region)}"
    return {"AWS_REGION": region, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url}


def host_of(service: str, region: str) -> str:
    """Return the host of a service in a region."""
    return f"{service}.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def region_of(host: str) -> str:
    """Return the region in the host name of Bedrock, also in that of a private network; empty without one."""
    labels = host.split(".")
    at = next((at for at, label in enumerate(labels) if label.startswith("bedrock-")), len(labels))
    return labels[at + 1] if at + 2 < len(labels) else ""
