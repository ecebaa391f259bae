"""Finds where Amazon's credentials are, and for which region, in files and variables.
Sends nothing.
"""

from collections.abc import Mapping
from pathlib import Path

from codeloop.model.credentials.aws.files import choose_profile, read_aws_files

DEFAULT_REGION = "us-east-1"
CONTAINER_VARIABLES = (
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
SIGN_IN_KEYS = ("sso_session", "sso_start_url", "login_session")
PROFILE_SOURCE_KEYS = ("aws_access_key_id", "role_arn", "credential_process", *SIGN_IN_KEYS)
"""Keys of a profile, any of which shows that its access keys can be had;
SIGN_IN_KEYS are those of a user's sign-in.
"""
ADVICE = (
    "Set AWS_BEARER_TOKEN_BEDROCK to an API key of Bedrock, or store one: `codeloop auth login amazon-bedrock`. Or "
    "run `aws configure` (or `aws configure sso`, then `aws sso login`), or set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY."
)
_VENDOR_FILES = (
    Path("/sys/devices/virtual/dmi/id/sys_vendor"),
    Path("/sys/class/dmi/id/sys_vendor"),
)
"""On an instance at Amazon they contain "Amazon EC2";
which of them exists depends on the kernel.
"""


def describe_credentials(environment: Mapping[str, str]) -> str:
    """Return where the credentials come from, in words for the user; empty if there are none."""
    has_named_profile = bool(environment.get("AWS_PROFILE"))
    if (
        environment.get("AWS_ACCESS_KEY_ID")
        and environment.get("AWS_SECRET_ACCESS_KEY")
        and not has_named_profile
    ):
        return "AWS_ACCESS_KEY_ID"
    name = choose_profile(environment)
    profile = read_aws_files(environment).profiles.get(name, {})
    if has_named_profile or any(key in PROFILE_SOURCE_KEYS for key in profile):
        return f"the AWS profile {name}"
    if environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") and environment.get("AWS_ROLE_ARN"):
        return "AWS_WEB_IDENTITY_TOKEN_FILE"
    if any(environment.get(variable) for variable in CONTAINER_VARIABLES):
        return "the credentials of this container"
    return "the role of this instance" if is_ec2_instance(environment) else ""


def is_ec2_instance(environment: Mapping[str, str]) -> bool:
    """Return whether this machine is an instance at Amazon, whose metadata service may be asked.

    Elsewhere the request would wait for its deadline, or reach a stranger at that address.
    """
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    if environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT"):
        return True
    for path in _VENDOR_FILES:
        try:
            return path.read_text(encoding="utf-8", errors="replace").startswith("Amazon EC2")
        except OSError:
            continue
    return False


def find_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for region and address of Bedrock: as set, else by the profile,
    or the default region.
    """
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        region = (
            read_aws_files(environment).profiles.get(choose_profile(environment), {}).get("region")
        )
    region = region or DEFAULT_REGION
    url = (
        environment.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
        or f"https://{format_host('bedrock-runtime', region)}"
    )
    return {"AWS_REGION": region, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url}


def format_host(service: str, region: str) -> str:
    """Return the host of a service in a region."""
    return f"{service}.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def parse_region(host: str) -> str:
    """Return the region in a host name of Bedrock, also of a private endpoint (`vpce-...`);
    empty without one.
    """
    # Such as `bedrock-runtime.us-east-1.amazonaws.com`: the region follows the service.
    labels = host.split(".")
    for index, label in enumerate(labels[:-2]):
        if label.startswith("bedrock-"):
            return labels[index + 1]
    return ""
