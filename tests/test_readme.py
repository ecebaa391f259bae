"""The documentation holds: its first commands, its links, and every command line and make target that it shows."""

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODELOOP = str(Path(sys.executable).parent / "codeloop")

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def commands(path: Path) -> list[list[str]]:
    """Give the words of each simple command in the shell blocks of a page; in a console block only after a prompt."""
    lines: list[str] = []
    for language, text in BLOCK.findall(path.read_text(encoding="utf-8")):
        joined = text.replace("\\\n", " ").splitlines()
        if language in {"sh", "bash"}:
            lines += joined
        elif language == "console":
            lines += [line.removeprefix("$ ") for line in joined if line.startswith("$ ")]
    return [words for line in lines for words in simple_commands(line)]


def simple_commands(line: str) -> list[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("();<>|&"):
            found.append([])
        elif found[-1] or not re.match(r"\w+=", word):
            found[-1].append(word)
    return [words for words in found if words]


@cache
def help_of(*command: str) -> str:
    done = subprocess.run([CODELOOP, *command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"codeloop {' '.join(command)} --help: {done.stderr}"
    return done.stdout


def test_the_readme_opens_with_the_two_commands() -> None:
    first = BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert first, "the README has no command"
    assert re.search(r"make demo\b.*\n(.*\n)*?.*make test\b", first[2])


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    targets = [inline or attribute for inline, attribute in LINK.findall(page.read_text(encoding="utf-8"))]
    local = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_make_targets_that_are_shown_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = {word for words in commands(page) if words[0] == "make" for word in words[1:] if word.isalpha()}
    assert shown - targets == set()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_and_flags_that_are_shown_exist(page: Path) -> None:
    for name, *words in commands(page):
        if name != "codeloop" or not words:
            continue
        command = words[:1] if not words[0].startswith("-") else []
        if command and words[1:] and re.search(r"^Commands:", help_of(*command), re.MULTILINE):
            command = words[:2]
        flags = [word.partition("=")[0] for word in words if word.startswith("--")]
        assert [flag for flag in flags if not re.search(rf"{re.escape(flag)}\b", help_of(*command))] == [], words
