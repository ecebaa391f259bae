"""Without the distribution `codeloop-automation` its commands are named with what installs them,
and nothing lists them.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.cli.missing_commands import make_install_command
from codeloop.kit.version import RELEASE
from tests.cli.program import COMMAND, HANGING, Desk

ROOT = Path(__file__).resolve().parents[2]
ADDED = ("ci", "fleet", "schedule", "bench")
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from codeloop.cli.main import main; main()"
)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


VERSION = f"{RELEASE}+unknown"
"""Of a package without git."""


def install(folder: Path, added: str = "") -> Run:
    """Install codeloop and what it needs into a folder; return what runs it. `added`: the version
    of the automation; "": it is not there.
    """
    site, desk = folder / "site", Desk(folder)
    site.mkdir()
    (site / "codeloop").symlink_to(ROOT / "src" / "codeloop")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "codeloop_automation" not in entry.name:
            (site / entry.name).symlink_to(entry)
    if added:
        (site / "codeloop_automation").symlink_to(ROOT / "automation/src/codeloop_automation")
        project = tomllib.loads((ROOT / "automation/pyproject.toml").read_text())["project"]
        info = site / f"codeloop_automation-{added}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: codeloop-automation\nVersion: {added}\n")
        groups = project["entry-points"].items()
        rows = [f"[{group}]\n{name} = {at}\n" for group, row in groups for name, at in row.items()]
        (info / "entry_points.txt").write_text("".join(rows))

    def run(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        options = desk.options()
        options["env"].update(variables)
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(site), *arguments]
        return subprocess.run(
            command, **options, capture_output=True, text=True, timeout=HANGING, check=False
        )

    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return install(tmp_path)


@pytest.mark.slow
def test_what_was_added_of_the_same_version_is_there(tmp_path: Path) -> None:
    run = install(tmp_path, VERSION)
    assert run("fleet", "--help").stdout.startswith("Usage: codeloop fleet")
    assert "schedule" in run("--help").stdout
    assert "fleet.lease" in run("debug", "limits").stdout


@pytest.mark.slow
def test_what_was_added_of_another_version_is_not_used(tmp_path: Path) -> None:
    done = install(tmp_path, f"{RELEASE}+g123456789")("fleet", "status")
    assert done.returncode == 2
    assert f"part of codeloop-automation {VERSION}, which is not installed here" in done.stderr


@pytest.mark.slow
def test_what_was_added_and_has_lost_its_files_counts_as_not_installed(tmp_path: Path) -> None:
    run = install(tmp_path, VERSION)
    (tmp_path / "site/codeloop_automation").unlink()
    for arguments in (("fleet", "--help"), ("fleet", "status")):
        done = run(*arguments)
        assert done.returncode == 2
        assert "which is not installed here" in done.stderr
        assert "Traceback" not in done.stderr
    shown = run("debug", "limits")
    assert shown.returncode == 0, shown.stderr
    assert "fleet.lease" not in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ADDED)
def test_a_command_that_is_not_installed_says_what_installs_it(run: Run, name: str) -> None:
    for arguments in ((name,), (name, "--help"), (name, "list", "--json")):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"codeloop: `codeloop {name}` is part of codeloop-automation")
        assert line.endswith(f"bin/python -m pip install {ROOT}/automation")


@pytest.mark.slow
def test_what_is_listed_is_what_is_installed(run: Run, tmp_path: Path) -> None:
    everything = Desk(tmp_path).run("--help").stdout
    without = run("--help")
    assert without.returncode == 0
    shown = [line.split()[0] for line in everything.splitlines() if line[:3] > "  -"]
    kept = [line.split()[0] for line in without.stdout.splitlines() if line[:3] > "  -"]
    assert set(ADDED) <= set(shown)
    assert kept == [name for name in shown if name not in ADDED]
    limits = {
        row["name"].split(".")[0] for row in json.loads(run("debug", "limits", "--json").stdout)
    }
    assert limits & {"ci", "fleet", "bench"} == set()
    offered = run(
        _CODELOOP_COMPLETE="bash_complete", COMP_LINE="codeloop s", COMP_POINT="10"
    ).stdout.split()
    assert "plain,serve" in offered
    assert "plain,schedule" not in offered


@pytest.mark.slow
def test_what_needs_no_added_command_looks_for_none(tmp_path: Path) -> None:
    look = f"import sys\ntry:\n    {COMMAND[2]}\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    for arguments in (
        ("run", "--help"),
        ("session", "list"),
        ("--version",),
        ("fix", "the", "bug"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", look, *arguments],
            **Desk(tmp_path).options(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "importlib.metadata" not in done.stderr.split(), arguments


@pytest.mark.parametrize(
    ("mark", "source", "command"),
    [
        ("", "/a b/automation", "/bin/python -m pip install '/a b/automation'"),
        ("pipx_metadata.json", "/a/automation", "pipx inject --force codeloop /a/automation"),
        (
            "uv-receipt.toml",
            "/a/automation",
            "uv tool install --reinstall /a --with /a/automation",
        ),
        (
            "uv-receipt.toml",
            "git+https://h/c.git@1#subdirectory=automation",
            "uv tool install --reinstall git+https://h/c.git@1 --with 'git+https://h/c.git@1#subdirectory=automation'",
        ),
    ],
)
def test_what_is_to_be_typed_fits_how_codeloop_was_installed(
    tmp_path: Path, mark: str, source: str, command: str
) -> None:
    if mark:
        (tmp_path / mark).touch()
    assert make_install_command(source, tmp_path).removeprefix(os.fspath(tmp_path)) == command
