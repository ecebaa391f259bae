"""The environment of a CI job: its host, event and repository,
from its flags and the variables that the host sets.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import DECODE_ERRORS
from codeloop_automation.ci.event import CiEvent, Skip, read_github_event, read_gitlab_event
from codeloop_automation.ci.hosts.github import GitHub
from codeloop_automation.ci.hosts.gitlab import GitLab
from codeloop_automation.ci.hosts.host import Host
from codeloop_automation.ci.hosts.plain_git import PlainGit

HostName = Literal["github", "gitlab", "git"]
_MAX_EVENT_BYTES = 32 * 1024 * 1024
# By variable: where it comes from. The others are set by the host itself.
_VARIABLE_SOURCES = {
    "GITHUB_TOKEN": "`codeloop ci setup` writes a file that sets it.",
    "CODELOOP_GITLAB_TOKEN": "Add it to the project's CI/CD variables: `codeloop ci setup --host gitlab` says how.",
}
_HOST_SOURCE = "The host sets it in its jobs; elsewhere, set it yourself."


class JobFlags(Struct, frozen=True, kw_only=True):
    """The flags of `codeloop ci run` and `review` about the event;
    "" and 0: the variables of the host decide.

    `base`: the branch to merge into. `head`: the branch to review.
    `key`: used in place of the host's id of the job.
    """

    host: str = ""
    event: str = ""
    event_path: Path | None = None
    task: str = ""
    number: int = 0
    is_review: bool = False
    remote: str = ""
    base: str = ""
    head: str = ""
    key: str = ""


def find_host_name(name: str, environment: Mapping[str, str]) -> HostName:
    """Return the name of the host that a job runs on: the value of --host,
    else the host whose variables are set.
    """
    match name:
        case "github" | "gitlab" | "git":
            return name
        case _ if environment.get("GITHUB_REPOSITORY"):
            return "github"
        case _:
            return "gitlab" if environment.get("CI_PROJECT_ID") else "git"


def make_host(
    name: HostName, flags: JobFlags, environment: Mapping[str, str], output: Path
) -> Host:
    """Return the client of the host. Raises UsageProblem if a variable that it needs is missing."""

    def require(variable: str) -> str:
        if not environment.get(variable):
            raise UsageProblem(
                f"{variable} is not set. {_VARIABLE_SOURCES.get(variable, _HOST_SOURCE)}"
            )
        return environment[variable]

    match name:
        case "github":
            server = environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
            repository, token = require("GITHUB_REPOSITORY"), require("GITHUB_TOKEN")
            api = environment.get("GITHUB_API_URL", "https://api.github.com")
            remote = flags.remote or f"{server}/{repository}.git"
            login = environment.get("CODELOOP_BOT_LOGIN", "")
            return GitHub(api=api, repository=repository, token=token, remote=remote, login=login)
        case "gitlab":
            server, project = require("CI_SERVER_URL").rstrip("/"), require("CI_PROJECT_ID")
            remote = flags.remote or f"{server}/{require('CI_PROJECT_PATH')}.git"
            api, token = require("CI_API_V4_URL"), require("CODELOOP_GITLAB_TOKEN")
            return GitLab(api=api, project=project, token=token, remote=remote)
        case "git":
            if not flags.remote:
                raise UsageProblem(
                    "--remote is missing: where branches are fetched from and pushed to."
                )
            return PlainGit(flags.remote, base=flags.base or "main", head=flags.head, output=output)


def read_event(name: HostName, flags: JobFlags, environment: Mapping[str, str]) -> CiEvent | Skip:
    """Return the event of the job, or why it is skipped.
    Raises UsageProblem for an event that can't be read.
    """
    task = flags.task or environment.get("CODELOOP_TASK", "")
    key = flags.key or find_run_id(name, environment)
    if flags.is_review and (flags.number or name == "git"):
        return CiEvent(
            kind="pull", key=f"review-{flags.number}-{key}", number=flags.number, is_pull=True
        )
    if name == "git":
        return CiEvent(kind="dispatch", key=f"dispatch-{key}", text=task)
    try:
        if name == "github":
            event = flags.event or environment.get("GITHUB_EVENT_NAME", "")
            path = flags.event_path or environment.get("GITHUB_EVENT_PATH")
            if not event or (not path and event != "schedule"):
                raise UsageProblem(
                    "There is no event: set GITHUB_EVENT_NAME and GITHUB_EVENT_PATH, or --event and --event-path."
                )
            return read_github_event(event, _read_json(Path(path)) if path else {}, key, task)
        path = flags.event_path or environment.get("TRIGGER_PAYLOAD")
        return read_gitlab_event(environment, _read_json(Path(path)) if path else None, task)
    except KeyError as error:
        raise UsageProblem(
            f"The event has no {error} where one is expected, so it is none of {name}'s."
        ) from None
    except (TypeError, AttributeError):
        raise UsageProblem(f"The event has another shape than those of {name}.") from None


def find_run_id(name: HostName, environment: Mapping[str, str]) -> str:
    """Return the id of the job; see `JobSettings.run_id`."""
    # Plain git has no jobs; the process that starts codeloop stands for one.
    variable = {"github": "GITHUB_RUN_ID", "gitlab": "CI_JOB_ID", "git": ""}[name]
    return environment.get(variable, "") or str(os.getppid())


def find_session_url(name: HostName, environment: Mapping[str, str], output: str) -> str:
    """Return the URL of a file of the output folder; see `JobSettings.session_url`."""
    match name:
        # GitHub has no page for a single file, only for all artifacts of a run.
        case "github" if environment.get("GITHUB_RUN_ID"):
            server = environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
            repository = environment.get("GITHUB_REPOSITORY", "")
            return f"{server}/{repository}/actions/runs/{environment['GITHUB_RUN_ID']}#artifacts"
        case "gitlab" if environment.get("CI_JOB_URL"):
            return f"{environment['CI_JOB_URL']}/artifacts/file/{output}/{{file}}"
        case _:
            return ""


def _read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raises UsageProblem."""
    try:
        if path.stat().st_size > _MAX_EVENT_BYTES:
            raise UsageProblem(f"{path} is larger than {_MAX_EVENT_BYTES:,} bytes.")
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise UsageProblem(f"{path} can't be read: {error.strerror}.") from error
    except DECODE_ERRORS as error:
        raise UsageProblem(f"{path} holds no JSON object: {error}.") from error
