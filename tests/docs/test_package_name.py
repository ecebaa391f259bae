"""Nothing that we write or show installs `codeloop` by its name: on a package index it
is not ours before a release.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

# The name as a requirement: with extras, a version, quotes; never a path, an address or a file.
NAME = r"['\"]?codeloop(?:\[[\w,-]*\])?(?:\s?[=<>~!]=?\s?[\w.*]+)?(?![\w/.@-])"
INSTALLS = re.compile(
    r"(?:\b(?:pip[\d.]*|pipx|uv|poetry|pdm|hatch|rye|conda|mamba|npm|pnpm|yarn|bun|brew|apt|apt-get)\b(?:\s+[\w.]+)?"
    # After `inject` stands the name of an environment.
    r"\s+(?:install|add|run|download|upgrade|tool run)\b|\binject(?:\s+-\S+)*\s+\w[\w.-]*"
    r"|\b(?:uvx|npx|bunx)\b|--(?:with|from|spec)\b)"
    rf"(?:\s+[^\s#;&|`]+)*?[\s=]{NAME}",
)
ENTRY = re.compile(
    rf"[\"']?(?:package|requires?|dependencies|packages)[\"']?\s*[:=]\s*\[?\s*{NAME}"
)


def find_installs(text: str) -> list[str]:
    return [
        found[0]
        for line in text.splitlines()
        for pattern in (INSTALLS, ENTRY)
        for found in pattern.finditer(line)
    ]


def list_files() -> Iterator[Path]:
    """Yield the files that are shown, run or written by the program: all but tests,
    and what is generated.
    """
    output = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    names = [name for name in output.split("\0") if name]
    # Without git, as from an archive.
    names = names or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    kept = re.compile(
        r"(README|CONTRIBUTING|AGENTS|SECURITY)\.md|Makefile|(docs|src|examples|scripts|\.github|\.ci|bench)/.*"
    )
    generated = re.compile(r"src/codeloop/web/static/|.*\.(png|ico|woff2?|gz|zst|pyc|ipynb)$")
    yield from (ROOT / name for name in names if kept.fullmatch(name) and not generated.match(name))


@pytest.mark.parametrize(
    "line",
    [
        "- run: pipx install codeloop",
        "pip install --quiet codeloop",
        "RUN pip install codeloop",
        "python -m pip install 'codeloop[ray]'",
        "pip install -U codeloop==0.1.0 && codeloop",
        "uv tool install --python 3.12 codeloop",
        "uv pip install codeloop",
        "uv add codeloop",
        "`uvx codeloop acp`",
        "uvx --from codeloop codeloop acp",
        "uvx --from=codeloop codeloop",
        "pipx run codeloop",
        "uv run --with codeloop fix.py",
        "poetry add codeloop",
        "brew install codeloop",
        "pipx inject tools codeloop",
        '"package": "codeloop==0.1.0"',
        'dependencies = ["codeloop"]',
    ],
)
def test_a_name_that_would_be_installed_is_found(line: str) -> None:
    assert find_installs(line)


@pytest.mark.parametrize(
    "line",
    [
        "pipx uninstall codeloop",
        "pipx inject --force codeloop ./automation",
        "pip install .                  # then: codeloop",
        "pip install ~/codeloop",
        "pip install git+https://git.example/team/codeloop.git@0123",
        "uv tool install . && codeloop --version",
        "codeloop mcp add time -- uvx mcp-server-time",
        '"$CI_PROJECT_DIR.codeloop/scripts/setup" program',
        "pip install dist/codeloop-0.1.0-py3-none-any.whl",
    ],
)
def test_other_lines_are_left_alone(line: str) -> None:
    assert find_installs(line) == []


def test_nothing_installs_it_by_its_name() -> None:
    texts = {
        path: path.read_text(encoding="utf-8", errors="replace")
        for path in list_files()
        if path.is_file()
    }
    assert len(texts) > 1000
    found = {
        str(path.relative_to(ROOT)): lines
        for path, text in texts.items()
        if (lines := find_installs(text))
    }
    assert found == {}
