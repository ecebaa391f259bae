"""Finds Google's application default credentials, project and location, in files and variables.
Sends nothing.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from codeloop.kit.paths import expand_user_path
from codeloop.schema.wire import DECODE_ERRORS, JSON

GLOBAL_LOCATION = "global"
ADVICE = (
    "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the key file of a service "
    "account."
)
# Their host names differ from those of single regions.
MULTI_REGIONS = ("us", "eu")
# Set by emulators and by users; by Cloud Run services; by Cloud Run jobs.
METADATA_VARIABLES = ("GCE_METADATA_HOST", "K_SERVICE", "CLOUD_RUN_JOB")
_PRODUCT_NAME_FILE = Path("/sys/class/dmi/id/product_name")
"""On a virtual machine at Google it begins with "Google"."""


def find_credentials_file(environment: Mapping[str, str]) -> Path | None:
    """Return the credentials file: the configured one, else gcloud's; None without one."""
    if path := environment.get("GOOGLE_APPLICATION_CREDENTIALS", "").strip():
        return expand_user_path(path)
    if configured_folder := environment.get("CLOUDSDK_CONFIG", ""):
        folder = Path(configured_folder)
    elif home := environment.get("HOME") or environment.get("USERPROFILE"):
        folder = Path(home) / ".config" / "gcloud"
    else:
        return None
    file = folder / "application_default_credentials.json"
    return file if file.is_file() else None


def has_metadata_service(environment: Mapping[str, str]) -> bool:
    """Return whether this machine is at Google,
    so that its metadata service may be asked for tokens.
    """
    if any(environment.get(name) for name in METADATA_VARIABLES):
        return True
    try:
        return _PRODUCT_NAME_FILE.read_text(encoding="utf-8", errors="replace").startswith("Google")
    except OSError:
        return False


def describe_credentials(environment: Mapping[str, str]) -> str:
    """Return where the credentials come from, in words for the user; empty if there are none."""
    if (file := find_credentials_file(environment)) is not None:
        return str(file)
    return "the metadata service of this machine" if has_metadata_service(environment) else ""


def find_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for project, location and host of Vertex AI: as set,
    else found elsewhere.
    """
    project = _find_first(
        environment, "GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"
    ) or _read_project(environment)
    location = (
        _find_first(
            environment, "GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"
        )
        or GLOBAL_LOCATION
    )
    host = environment.get("GOOGLE_VERTEX_ENDPOINT") or format_host(location)
    values = {"GOOGLE_VERTEX_LOCATION": location, "GOOGLE_VERTEX_ENDPOINT": host}
    return {**values, "GOOGLE_VERTEX_PROJECT": project} if project else values


def format_host(location: str) -> str:
    """Return the host of Vertex AI for a location."""
    if location == GLOBAL_LOCATION:
        return "aiplatform.googleapis.com"
    if location in MULTI_REGIONS:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def read_credentials_file(path: Path) -> JSON:
    """Return the content of a credentials file; empty when it can't be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=JSON)
    except (OSError, *DECODE_ERRORS):
        return {}


def _find_first(environment: Mapping[str, str], *names: str) -> str:
    return next(
        (environment[name].strip() for name in names if environment.get(name, "").strip()), ""
    )


def _read_project(environment: Mapping[str, str]) -> str:
    """Return the project that the credentials file belongs to."""
    # A service account names its project; a user's sign-in the one that is billed.
    file = find_credentials_file(environment)
    content = read_credentials_file(file) if file is not None else {}
    return next(
        (str(content[name]) for name in ("project_id", "quota_project_id") if content.get(name)), ""
    )
