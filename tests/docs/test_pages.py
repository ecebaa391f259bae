"""What the pages say holds: links, the picture, commands and their flags, files that are named,
how to install.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from codeloop.app.toolbox import BUILTIN_TOOLS
from tests.docs.pages import INSTALLING, NOT_RUN, PAGES, ROOT, blocks, commands, is_run, page_id
from tests.docs.test_commands_page import COMMANDS

GROUPS = {name.split()[0] for name in COMMANDS if " " in name}
CODELOOP = str(Path(sys.executable).parent / "codeloop")
PICTURE = ROOT / "docs" / "assets" / "demo.svg"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


@cache
def help_of_bench() -> str:
    command = [sys.executable, "-m", "bench", "--help"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_readme_opens_with_a_picture_and_the_two_commands() -> None:
    first, *_ = blocks(ROOT / "README.md")
    assert re.search(r"make demo\b.*\n(.*\n)*?.*make test\b", first.text)
    opening = "".join(
        (ROOT / "README.md").read_text(encoding="utf-8").splitlines(keepends=True)[: first.line]
    )
    assert "docs/assets/tui.svg" in opening


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    targets = [
        inline or attribute for inline, attribute in LINK.findall(page.read_text(encoding="utf-8"))
    ]
    local = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_make_targets_that_are_shown_exist(page: Path) -> None:
    targets = set(
        re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    shown = {
        word
        for words in commands(page)
        if words[0] == "make"
        for word in words[1:]
        if word.isalpha()
    }
    assert shown - targets == set()
    for target, flags in made(page):
        known = (
            options("demo") if target == "demo" else set(re.findall(r"--[a-z-]+", help_of_bench()))
        )
        assert set(flags) - known == set(), target


def made(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the flags that a page gives to the demo and to the bench."""
    for words in commands(page):
        given = [word.removeprefix("ARGS=") for word in words if word.startswith("ARGS=")]
        if words[0] == "make" and words[1] in {"demo", "bench"}:
            yield (
                words[1],
                [word for text in given for word in shlex.split(text) if word.startswith("--")],
            )


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_and_flags_in_the_text_exist(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for line in re.findall(r"`codeloop ([a-z][^`]*)`", text):
        words = line.split()
        name = next((name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS), "")
        assert name or words[0] in GROUPS, line
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)) - options(name) == set(), line


def options(name: str) -> set[str]:
    """Return the spellings of a command's options."""
    params = COMMANDS[name].params if name else []
    return {spelling for each in params for spelling in each.opts}


def test_every_exception_is_needed_and_no_block_consists_of_them() -> None:
    shell = [
        block
        for page in PAGES
        if page.parent.name == "docs" or page.name == "README.md"
        for block in blocks(page)
    ]
    shell = [block for block in shell if block.language == "sh"]
    lines = [line for block in shell for line in block.lines()]
    assert [
        pattern for pattern in NOT_RUN if not any(re.match(pattern, line) for line in lines)
    ] == []
    shell = [block for block in shell if not re.match(INSTALLING, block.text)]
    assert [
        block.place
        for block in shell
        if not any(is_run(line) for line in block.lines() if line.strip())
    ] == []


def build_wheel(project: Path, folder: Path) -> zipfile.ZipFile:
    """Build a distribution; return its wheel, in which all of its sources are."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=project, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    opened, source = zipfile.ZipFile(wheel), project / "src"
    ours = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert {path for path in ours if "__pycache__" not in path} - set(opened.namelist()) == set()
    return opened


def read_metadata(wheel: zipfile.ZipFile) -> tuple[str, str, str]:
    """Return the fields of a wheel's metadata, a separator and its description."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(name).decode().partition("\n\n")


@pytest.mark.slow
def test_the_project_can_be_installed_as_the_pages_say(tmp_path: Path) -> None:
    installs = [words for page in PAGES for words in commands(page) if "install" in words]
    assert {words[-1] for words in installs} == {".", "./automation"}
    inside = build_wheel(ROOT, tmp_path / "core")
    added = build_wheel(ROOT / "automation", tmp_path / "automation")
    assert not any(name.startswith("codeloop_automation/") for name in inside.namelist())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"]["codeloop"] == "codeloop.cli.main:main"
    # The repository has no public address, so a link of its pages would be dead
    # where the package is shown.
    fields, _, description = read_metadata(inside)
    assert "codeloop demo" in description
    assert LINK.findall(description) == []
    # Neither asks a package index for what others may have there by the same name.
    version = re.search(r"^Version: (.*)$", fields, re.MULTILINE)
    assert version is not None
    assert f"\nRequires-Dist: codeloop-automation=={version[1]}; extra == 'automation'\n" in fields
    assert "\nRequires-Dist: codeloop" not in read_metadata(added)[0]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_tests_and_files_that_are_named_are_there(page: Path) -> None:
    named = re.findall(
        r"`((?:tests|scripts|bench|src)/[\w/.-]+\.(?:py|md|toml))`",
        page.read_text(encoding="utf-8"),
    )
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_the_page_of_tools_names_them_all() -> None:
    rows = re.findall(
        r"^\| (`\w.*?) \|", (ROOT / "docs" / "tools.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    others = {"batch", "codesearch", "mcp", "mcp_resource", "skill", "websearch"}
    assert named == set(BUILTIN_TOOLS) | others


@pytest.mark.slow
def test_the_picture_shows_what_the_demo_shows(tmp_path: Path) -> None:
    assert PICTURE.stat().st_size < 40_000
    drawn = ET.fromstring(PICTURE.read_bytes())
    texts = " ".join(
        "".join(element.itertext()) for element in drawn.iter("{http://www.w3.org/2000/svg}text")
    )
    environment = {
        "PATH": f"{Path(CODELOOP).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [CODELOOP, "demo"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    shown = re.sub(r"ses_\w+|No sandbox can be had.*", "", done.stdout + done.stderr)
    said = set(re.findall(r"\b[^\W\d_]{3,}\b", shown))
    assert said - set(re.findall(r"\b[^\W\d_]{3,}\b", texts)) == set(), "make picture"
