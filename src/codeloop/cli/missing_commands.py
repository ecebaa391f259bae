"""Explains how a command is installed that a further distribution of this repository has."""

import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from codeloop.kit.version import VERSION
from codeloop.schema.errors import UsageProblem

DISTRIBUTION = "codeloop-automation"
_FOLDER = "automation"


class _Vcs(msgspec.Struct):
    commit_id: str = ""
    vcs: str = ""


class _InstallRecord(msgspec.Struct):
    """What an installer writes into `direct_url.json` (PEP 610)."""

    url: str = ""
    dir_info: dict[str, bool] | None = None
    vcs_info: _Vcs | None = None


def explain_missing_command(name: str) -> UsageProblem:
    """Return the error for a command whose distribution is not installed, with what installs it."""
    return UsageProblem(
        f"`codeloop {name}` is part of {DISTRIBUTION} {VERSION}, which is not installed here (codeloop[{_FOLDER}]). "
        f"To install it: {make_install_command(_find_source(), Path(sys.prefix))}"
    )


def make_install_command(source: str, prefix: Path) -> str:
    """Return the command line that adds the distribution to an environment. `source`: a folder,
    an address or a file as pip takes it; `prefix`: of the environment.
    """
    if (prefix / "pipx_metadata.json").exists():
        return shlex.join(("pipx", "inject", "--force", "codeloop", source))
    if (prefix / "uv-receipt.toml").exists():
        whole = source.removesuffix(f"/{_FOLDER}").removesuffix(f"#subdirectory={_FOLDER}")
        return shlex.join(("uv", "tool", "install", "--reinstall", whole, "--with", source))
    return shlex.join((str(prefix / "bin" / "python"), "-m", "pip", "install", source))


def _find_source() -> str:
    """Return where the distribution is that belongs to this installation."""
    try:
        text = distribution("codeloop").read_text("direct_url.json") or "{}"
        record = msgspec.json.decode(text, type=_InstallRecord)
    except (PackageNotFoundError, msgspec.DecodeError):
        record = _InstallRecord()
    if record.dir_info is not None:
        return f"{unquote(urlsplit(record.url).path)}/{_FOLDER}"
    if record.vcs_info is not None:
        commit = f"{record.vcs_info.vcs}+{record.url}@{record.vcs_info.commit_id}"
        return f"{commit}#subdirectory={_FOLDER}"
    # As the build names it. On a package index, the name is not ours before a release.
    return f"{DISTRIBUTION.replace('-', '_')}-{VERSION}-py3-none-any.whl"
