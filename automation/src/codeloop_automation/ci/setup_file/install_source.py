"""Where a job of a host gets codeloop from: a commit of a git repository.
No package index is asked for its name.

The name `codeloop` on a package index is not ours before a release: whoever has it could run code
in a job that has a key and may write.
"""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.git.settings import read_file_settings
from codeloop.kit.programs import make_child_environment
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON
from codeloop_automation.ci.json_fields import get_object, get_text
from codeloop_automation.command_lines import open_git_call

# For commands of git that read a clone on this machine.
_GIT_SECONDS = 20.0
# It stands in shell lines of YAML, and in a file that everybody may read: no credentials, no
# options, nothing to quote.
_ADDRESS = r"https://[\w.-]+(?::\d+)?(?:/[\w.-]+)+/?"
_REMOTE_URL = r"remote\.[^\n]+\.url"
_COMMIT = r"[0-9a-f]{40}|[0-9a-f]{64}"


class InstallSource(Struct, frozen=True):
    """A commit of a git repository. `address`: of https, without credentials;
    `commit`: the whole hash.
    """

    address: str
    commit: str


def parse_install_source(text: str) -> InstallSource:
    """Return the source that `--install-from` names as ADDRESS@COMMIT. Raises UsageProblem."""
    address, _, commit = text.rpartition("@")
    if not re.fullmatch(_ADDRESS, address) or not re.fullmatch(_COMMIT, commit):
        raise UsageProblem(
            "--install-from is the address of a repository of codeloop that the job can clone, with https and without "
            "a password, then @ and the whole hash of a commit: https://git.example/team/codeloop.git@0123...cdef"
        )
    return InstallSource(address, commit)


def find_install_source() -> InstallSource:
    """Return the source that this installation came from, as its installer recorded it.
    Raises UsageProblem.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        record: JSON = msgspec.json.decode(
            distribution("codeloop").read_text("direct_url.json") or "{}"
        )
    except (PackageNotFoundError, msgspec.DecodeError):
        record = {}
    address, vcs = get_text(record, "url"), get_object(record, "vcs_info")
    if vcs.get("vcs") == "git":
        return _make_source(address, get_text(vcs, "commit_id"), "it was installed from there")
    if address.startswith("file:") and "dir_info" in record:
        return read_clone(Path(unquote(urlsplit(address).path)))
    raise _refuse("how it was installed is not recorded")


def read_clone(folder: Path) -> InstallSource:
    """Return the commit of a clone, and the remote that has it.
    Raises UsageProblem where nobody else could get it.
    """
    git_folder = find_git_folder(folder)
    commit = _read_git(folder, "rev-parse", "HEAD") if git_folder else ""
    if git_folder is None or not commit:
        raise _refuse(f"{folder}, from which it was installed, is not a clone of git")
    branches = _read_git(
        folder, "for-each-ref", "--contains", commit, "--format=%(refname:lstrip=2)", "refs/remotes"
    )
    if not branches:
        raise _refuse(
            f"no branch of a remote has commit {commit[:12]} of {folder}. Push it, or name another"
        )
    settings = read_file_settings(find_common_folder(git_folder) / "config")
    addresses = {setting.name: setting.value for setting in settings}
    remotes = [
        name.removeprefix("remote.").removesuffix(".url")
        for name in addresses
        if re.fullmatch(_REMOTE_URL, name)
    ]
    name = next((remote for remote in remotes if branches.startswith(f"{remote}/")), "")
    return _make_source(
        addresses.get(f"remote.{name}.url", ""), commit, f"the clone {folder} has it"
    )


def _make_source(address: str, commit: str, origin: str) -> InstallSource:
    if not re.fullmatch(_ADDRESS, address) or not re.fullmatch(_COMMIT, commit):
        reason = "is not one of https without a password that a job could clone"
        raise _refuse(f"its address, {address.rpartition('@')[2] or 'none'} ({origin}), {reason}")
    return InstallSource(address, commit)


def _refuse(reason: str) -> UsageProblem:
    return UsageProblem(
        f"Where the job is to get codeloop from is not known: {reason}. There is no release yet, and the name on the "
        "package index is not ours. Name a repository of it and a commit: "
        "codeloop ci setup --install-from https://HOST/OWNER/codeloop.git@COMMIT"
    )


def _read_git(folder: Path, *arguments: str) -> str:
    """Return the output of a git command in a clone of the user's own, "" where it fails."""
    try:
        with open_git_call(
            *arguments, environment=os.environ, tree=folder, uses_filters=False
        ) as call:
            done = subprocess.run(
                call.command,
                env=make_child_environment(call.environment, os.sep),
                cwd=os.sep,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_GIT_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CodeloopError(f"git could not read {folder}: {error}") from error
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""
