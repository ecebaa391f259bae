"""What the README says on installing, updating and removing codeloop, line by line.
Needs the network.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from codeloop_automation.ci.setup_file.install_source import InstallSource
from codeloop_automation.ci.setup_file.setup_file import make_setup_file
from tests.docs.pages import INSTALLING, ROOT, Block, blocks
from tests.everyday.session import reached

TOOLS = {
    "venv": r"\S*/bin/pip |python3 -m venv|.*~/\.local/lib/codeloop",
    "pipx": "pipx ",
    "uv": "uv tool ",
}
"""How the lines of each tool begin."""
FOLDERS = (".config/codeloop", ".local/share/codeloop", ".local/state/codeloop", ".cache/codeloop")


def find_blocks(*, first_line: str) -> list[Block]:
    return [each for each in blocks(ROOT / "README.md") if re.match(first_line, each.text)]


def lines_of(tool: str, chosen: list[Block]) -> str:
    """Return the lines of blocks that a person with this tool runs: its own,
    and those of no tool.
    """
    others = "|".join(pattern for name, pattern in TOOLS.items() if name != tool)
    return "\n".join(line for each in chosen for line in each.lines() if not re.match(others, line))


INSTALL = find_blocks(first_line=r"python3 -m venv|pipx install")
UPDATE = find_blocks(first_line="git pull")
REMOVE = find_blocks(first_line=r"rm -rf? ~/\.")


def run(script: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euxc", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True)


def test_every_line_of_the_readme_that_installs_is_run_here() -> None:
    chosen = [*INSTALL, *UPDATE, *REMOVE]
    installing = {
        line
        for block in blocks(ROOT / "README.md")
        for line in block.lines()
        if re.match(INSTALLING, line)
    }
    run_here = {line for tool in TOOLS for line in lines_of(tool, chosen).splitlines()}
    assert installing == run_here
    for tool in TOOLS:
        for each in (INSTALL, UPDATE):
            assert 1 <= len(lines_of(tool, each).splitlines()) <= 3
        assert len(lines_of(tool, REMOVE).splitlines()) == 4


@pytest.mark.registries
@pytest.mark.parametrize("tool", TOOLS)
def test_codeloop_is_installed_updated_and_removed(tool: str, tmp_path: Path) -> None:
    reached(
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        str(tmp_path / "tried"),
        "pipx",
    )
    tools, home, upstream, clone = (
        tmp_path / name for name in ("tools", "home", "upstream", "clone")
    )
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
    if tool != "venv":
        subprocess.run([tools / "bin/pip", "install", "-q", tool], check=True)
    own = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "UV_", "SSL_"))
    }
    path = os.pathsep.join([str(home / ".local/bin"), str(tools / "bin"), os.defpath])
    environment = {**own, "HOME": str(home), "PATH": path, "LC_ALL": "C.UTF-8"}
    home.mkdir()
    git(ROOT, "clone", "-q", str(ROOT), str(upstream))
    git(tmp_path, "clone", "-q", str(upstream), str(clone))

    run(lines_of(tool, INSTALL), clone, environment)
    assert re.match(r"\d+\.\d+", run("codeloop --version", home, environment))
    run("codeloop models --all > /dev/null; codeloop session list", home, environment)

    (upstream / "src/codeloop/news.txt").write_text("new\n")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "News")
    run(lines_of(tool, UPDATE), clone, environment)
    assert list(home.rglob("codeloop/news.txt")), "the update is not installed"
    assert re.match(r"\d+\.\d+", run("codeloop --version", home, environment))

    shown = run("codeloop debug paths", home, environment)
    assert all(str(home / folder) in shown for folder in FOLDERS)
    run(lines_of(tool, REMOVE), clone, environment)
    assert not list(home.rglob("*codeloop*.py"))
    assert not [folder for folder in FOLDERS if (home / folder).exists()]
    assert run("command -v codeloop || echo gone", home, environment) == "gone\n"


@pytest.mark.registries
@pytest.mark.parametrize("host", ["github", "gitlab"])
def test_what_a_job_installs_is_the_commit_that_was_named(host: str, tmp_path: Path) -> None:
    reached(
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        str(tmp_path / "tried"),
        "pipx",
    )
    address = "https://git.example/team/codeloop.git"
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    source = InstallSource(address, head.stdout.strip())
    document = yaml.safe_load(make_setup_file(host, source, "", "/codeloop", "", 60, None).text)
    if host == "github":
        *_, install, start, _ = (
            step.get("run", "") for step in document["jobs"]["codeloop"]["steps"]
        )
    else:
        *lines, start = document["codeloop"]["script"]
        install = "\n".join(lines)
    own = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    git_settings = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{ROOT}.insteadOf",
        "GIT_CONFIG_VALUE_0": address,
    }
    folders = {
        "RUNNER_TEMP": str(tmp_path),
        "CI_PROJECT_DIR": str(tmp_path / "project"),
        "HOME": str(tmp_path),
    }
    path = os.pathsep.join([str(Path(sys.base_prefix) / "bin"), os.defpath])
    environment = {**own, **git_settings, **folders, "PATH": path, "LC_ALL": "C.UTF-8"}
    run(install, tmp_path, environment)
    assert "Handle one event of the host" in run(f"{start} --help", tmp_path, environment)
