"""Finds the host (GitHub, GitLab or plain git) of a fleet's repository by its address."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from codeloop.schema.errors import UsageProblem
from codeloop_automation.ci.hosts.github import GitHub
from codeloop_automation.ci.hosts.gitlab import GitLab
from codeloop_automation.ci.hosts.host import Host
from codeloop_automation.ci.hosts.plain_git import PlainGit

# Agents must not get these: who has a token can push, and open pull requests.
_GITHUB_TOKEN, _GITLAB_TOKEN = "GITHUB_TOKEN", "CODELOOP_GITLAB_TOKEN"
TOKEN_VARIABLES = (_GITHUB_TOKEN, _GITLAB_TOKEN)
# The short form `user@host:path` of an SSH address, which is not a URL.
_SCP_ADDRESS = r"(?:[\w.-]+@)([\w.-]+):(?!//)(.+)"


class _RemoteAddress(NamedTuple):
    """A repository on a server. `server`: the host, with the port of an HTTP URL.
    `path`: `owner/name`.
    """

    server: str
    path: str


def normalise_address(repository: str) -> str:
    """Return the same text for the HTTPS, SSH and short address of a repository;
    for a folder, its absolute path.
    """
    address = _parse_address(repository)
    if address is None:
        return str(Path(repository.removeprefix("file://")).resolve())
    return f"{address.server}/{address.path}".lower()


def find_repository_host(
    repository: str, target: str, environment: Mapping[str, str], output: Path
) -> Host:
    """Return GitHub or GitLab for an address there, else plain git,
    which has branches but no pull requests.

    `target`: the branch to merge into. `output`: the folder where plain git writes
    files instead of comments.
    The servers are github.com and gitlab.com, or those in GITHUB_SERVER_URL and CI_SERVER_URL.
    Raises UsageProblem.
    """
    address = _parse_address(repository)
    github = environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    gitlab = environment.get("CI_SERVER_URL", "https://gitlab.com").rstrip("/")
    if address is None or address.server not in {_read_server(github), _read_server(gitlab)}:
        return PlainGit(repository, base=target, head="", output=output)
    is_github = address.server == _read_server(github)
    variable = _GITHUB_TOKEN if is_github else _GITLAB_TOKEN
    token = environment.get(variable, "")
    if not token:
        raise UsageProblem(
            f"{variable} is not set: the token that opens the pull request of {repository}."
        )
    if is_github:
        # GitHub Enterprise has its API below its own address, github.com on another host.
        api = "https://api.github.com" if github == "https://github.com" else f"{github}/api/v3"
        api = environment.get("GITHUB_API_URL", api)
        return GitHub(api=api, repository=address.path, token=token, remote=repository)
    api = environment.get("CI_API_V4_URL", f"{gitlab}/api/v4")
    return GitLab(api=api, project=address.path, token=token, remote=repository)


def _parse_address(repository: str) -> _RemoteAddress | None:
    """Return the address as server and path; None when the repository is a folder."""
    if match := re.fullmatch(_SCP_ADDRESS, repository):
        return _RemoteAddress(match[1].lower(), _trim_path(match[2]))
    parts = urlsplit(repository)
    if parts.scheme not in {"http", "https", "ssh", "git"}:
        return None
    return _RemoteAddress(_read_server(repository), _trim_path(parts.path))


def _read_server(url: str) -> str:
    """Return the host of a URL, with its port if the URL is one of HTTP."""
    # The port of SSH says nothing about the host's API.
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port and parts.scheme in {"http", "https"} else ""
    return f"{parts.hostname or ''}{port}".lower()


def _trim_path(path: str) -> str:
    return path.strip("/").removesuffix(".git")
