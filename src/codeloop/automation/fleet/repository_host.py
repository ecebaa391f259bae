"""Finds the host (GitHub, GitLab or plain git) of a fleet's repository by its address."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from codeloop.automation.ci.hosts.github import GitHub
from codeloop.automation.ci.hosts.gitlab import GitLab
from codeloop.automation.ci.hosts.host import Host
from codeloop.automation.ci.hosts.plain_git import PlainGit
from codeloop.schema.errors import UsageProblem

TOKENS = ("GITHUB_TOKEN", "CODELOOP_GITLAB_TOKEN")
"""Variables with the hosts' tokens, which agents must not get."""
_SHORT = re.compile(r"(?:[\w.-]+@)([\w.-]+):(?!//)(.+)")


class _Address(NamedTuple):
    """A repository on a server. `server`: the host, with the port of an HTTP URL; `path`: `owner/name`."""

    server: str
    path: str


def normalise_address(repository: str) -> str:
    """Return an address in one form: the same text for HTTPS, SSH and short addresses of a repository."""
    address = _split(repository)
    if address is None:
        return str(Path(repository.removeprefix("file://")).resolve())
    return f"{address.server}/{address.path}".lower()


def find_repository_host(repository: str, target: str, environment: Mapping[str, str], output: Path) -> Host:
    """Return GitHub or GitLab for an address there, else plain git, which has branches but no pull requests.

    Their servers are github.com and gitlab.com, or those in GITHUB_SERVER_URL and CI_SERVER_URL. Raises UsageProblem.
    """
    address = _split(repository)
    github = environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    gitlab = environment.get("CI_SERVER_URL", "https://gitlab.com").rstrip("/")
    if address is None or address.server not in {_name(github), _name(gitlab)}:
        return PlainGit(repository, target, "", output)
    is_github = address.server == _name(github)
    variable = TOKENS[0] if is_github else TOKENS[1]
    token = environment.get(variable, "")
    if not token:
        raise UsageProblem(f"{variable} is not set: the token that opens the pull request of {repository}.")
    if is_github:
        own = "https://api.github.com" if github == "https://github.com" else f"{github}/api/v3"
        return GitHub(environment.get("GITHUB_API_URL", own), address.path, token, repository)
    return GitLab(environment.get("CI_API_V4_URL", f"{gitlab}/api/v4"), address.path, token, repository)


def _split(repository: str) -> _Address | None:
    """Return the address as server and path; None when the repository is a folder."""
    if match := _SHORT.fullmatch(repository):
        return _Address(match[1].lower(), _trim(match[2]))
    parts = urlsplit(repository)
    if parts.scheme not in {"http", "https", "ssh", "git"}:
        return None
    return _Address(_name(repository), _trim(parts.path))


def _name(url: str) -> str:
    """Return the host of a URL, with its port for HTTP only: a port for SSH says nothing about the host's API."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port and parts.scheme in {"http", "https"} else ""
    return f"{parts.hostname or ''}{port}".lower()


def _trim(path: str) -> str:
    return path.strip("/").removesuffix(".git")
