"""Reads `~/.aws/config` and `~/.aws/credentials`: profiles and sign-in sessions."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from codeloop.kit.paths import expand_user_path
from codeloop.schema.bounds.cloud import CLOUD_FILE

Section = dict[str, str]


class AwsFiles(Struct, frozen=True):
    """The contents of both files. A profile's values in the credentials file take precedence."""

    profiles: dict[str, Section]
    sessions: dict[str, Section]
    """Sign-in sessions, by name."""


def find_aws_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder `.aws` of the user; None without a home folder."""
    home = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(home) / ".aws" if home else None


def choose_profile(environment: Mapping[str, str]) -> str:
    """Return the name of the active profile."""
    return environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE") or "default"


def read_aws_files(environment: Mapping[str, str]) -> AwsFiles:
    """Return the profiles of both files; a file that is missing or broken has none."""
    folder = find_aws_folder(environment)
    config = environment.get("AWS_CONFIG_FILE") or (folder / "config" if folder else "")
    credentials = environment.get("AWS_SHARED_CREDENTIALS_FILE") or (
        folder / "credentials" if folder else ""
    )
    profiles: dict[str, Section] = {}
    sessions: dict[str, Section] = {}
    for title, section in _read_sections(config).items():
        match _split_title(title):
            case ["sso-session", name]:
                sessions[name] = section
            case ["profile", name] | ["default" as name]:
                profiles[name] = section
            case _:
                continue
    # In this file the titles are the profiles' names alone, without the word `profile`.
    for name, section in _read_sections(credentials).items():
        profiles[name] = {**profiles.get(name, {}), **section}
    return AwsFiles(profiles, sessions)


def _split_title(title: str) -> list[str]:
    """Return a section's kind and name, which may be in quotes."""
    import shlex

    try:
        return shlex.split(title)
    except ValueError:
        return []


def _read_sections(path: str | Path) -> dict[str, Section]:
    if not path:
        return {}
    try:
        with expand_user_path(path).open(encoding="utf-8") as file:
            text = file.read(CLOUD_FILE.value)
    except (OSError, UnicodeDecodeError):
        return {}
    # Imported here, since most users have no such file.
    from configparser import Error, RawConfigParser

    # These files have no section of defaults; a repeated section or key is not a
    # reason to ignore the file.
    parser = RawConfigParser(default_section="", strict=False)
    try:
        parser.read_string(text)
    except Error:
        return {}
    return {name: dict(parser.items(name)) for name in parser.sections()}
