"""The documentation holds: its links, its picture, its settings, and every command, which is run or else checked."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from codeloop.app.tools import BUILTIN

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODELOOP = str(Path(sys.executable).parent / "codeloop")

PICTURE = ROOT / "docs" / "assets" / "demo.svg"

NOT_RUN = (
    ("make", "sets an environment up; the target and its ARGS are checked"),
    ("pip install", "installs; that the project can be installed is checked"),
    ("uv tool install", "the same"),
    ("CODELOOP_FAULT", "kills, fills or stops the program: tests/faults"),
    ("ollama", "another project's program"),
    ("codeloop auth login \\w+$", "asks at a terminal: tests/cli/test_auth.py"),
    ("codeloop models .*--refresh", "fetches: tests/model/test_refresh.py"),
    ("(\\.venv/bin/)?python ", "takes minutes; the program and its flags are checked"),
    (".*(/path/to/|[ =.](NAME|ID|FILE|DIR|PROVIDER|URL)\\b|ses_[.…\\w]*)", "has a word to be replaced"),
)
"""Commands that are not run, as patterns of how a line begins, and why. All others are."""

STORIES = frozenset({"docs/server.md"})
"""Pages whose blocks are one script together. A Python block that begins with the name of a file is that file."""

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


def shell_blocks() -> Iterator[tuple[str, str]]:
    """Give an id and the text of every shell block, without the prompts and answers of console blocks."""
    for page in PAGES:
        if page_id(page) in STORIES:
            yield page_id(page), story(page)
            continue
        for number, (language, text) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            joined = text.replace("\\\n", " ")
            if language == "console":
                joined = "\n".join(line.removeprefix("$ ") for line in joined.splitlines() if line.startswith("$ "))
            if language in {"sh", "bash", "console"}:
                yield f"{page_id(page)}:{number}", joined


def story(page: Path) -> str:
    """Give all shell blocks of a page as one script that leaves nothing running."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return "\n".join(["trap 'kill $(jobs -p) || true; wait' EXIT", *(text for kind, text in blocks if kind == "sh")])


def programs(page: Path) -> Iterator[tuple[str, str]]:
    """Give the name and the text of every Python file that a page shows whole."""
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        name = re.match(r"# (\w+\.py)\n", text)
        if kind == "python" and name:
            yield name[1], text


def is_run(line: str) -> bool:
    bare = re.sub(r"\s+#.*", "", line).strip()
    return not any(re.match(pattern, bare) for pattern, _ in NOT_RUN)


def script_of(block: str) -> str:
    """Give what is run of a block; a line whose comment names an exit code must end with it."""
    lines: list[str] = []
    for line in filter(is_run, block.splitlines()):
        code = re.search(r"#.*\bexit code (\d+)", line)
        lines.append(f"{line.split('#')[0]} || test $? -eq {code[1]}" if code and code[1] != "0" else line)
    return "\n".join(lines)


BLOCKS = {name: block for name, block in shell_blocks() if script_of(block).strip()}


def settings() -> dict[str, str]:
    """Give the JSON blocks that are a whole configuration."""
    found: dict[str, str] = {}
    for page in PAGES:
        for number, (language, text) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            is_settings = re.search(
                r'^\{$.*^  "(model|provider|permission|agent|mode)": ', text, re.MULTILINE | re.DOTALL
            )
            if language in {"json", "jsonc"} and is_settings:
                found[f"{page_id(page)}:{number}"] = text
    return found


SETTINGS = settings()


@dataclass(frozen=True, slots=True)
class World:
    """A home and a project in which a page's commands are run; models answer from a server on this machine."""

    folder: Path

    def bash(self, script: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", script],
            cwd=self.folder / "project",
            env={
                "PATH": f"{Path(CODELOOP).parent}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self.folder),
                "CODELOOP_HOME": str(self.folder / "home"),
                "CODELOOP_MODELS_URL": "http://127.0.0.1:9/",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            start_new_session=True,
        )

    def configure(self, text: str) -> None:
        path = self.folder / "home" / "config" / "codeloop.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060"
    "0000000500015ef2d0960000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def model_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A model server as a process of its own; its base URL."""
    script = tmp_path_factory.mktemp("server") / "script.json"
    call = {"name": "bash", "arguments": json.dumps({"command": "echo hello"})}
    script.write_text(json.dumps({"answers": [{"calls": [call]}, {"text": "Done."}]}))
    command = [sys.executable, "-m", "bench.provider", "--validate", "--script", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def all_served_by(url: str) -> str:
    """Give a configuration in which every provider that the pages name is the server at `url`."""
    service = {"options": {"baseURL": url, "apiKey": "k"}}
    mine = {**service, "models": {"qwen3-coder": {"limit": {"context": 131_072, "output": 16_384}}}}
    providers = {"mine": mine, "anthropic": service, "openai": service, "ollama": service}
    return json.dumps({"model": "mine/qwen3-coder", "provider": providers})


@pytest.fixture
def world(tmp_path: Path) -> World:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "screenshot.png").write_bytes(PNG)
    (project / "key.txt").write_text("sk-0123456789abcdef\n")
    return World(tmp_path)


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
    for target, flags in made(page):
        known = help_of("demo") if target == "demo" else help_of_bench()
        assert [flag for flag in flags if flag not in known] == [], target


def made(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Give the flags that a page gives to the demo and to the bench, by make or directly."""
    for words in commands(page):
        given = [word.removeprefix("ARGS=") for word in words if word.startswith("ARGS=")]
        if words[0] == "make" and words[1] in {"demo", "bench"}:
            yield words[1], [word for text in given for word in shlex.split(text) if word.startswith("--")]
        elif words[1:3] == ["-m", "bench"]:
            yield "bench", [word for word in words if word.startswith("--")]


@cache
def help_of_bench() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


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


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_commands_that_are_shown_do_what_they_should(block: str, world: World, model_server: str) -> None:
    world.configure(all_served_by(model_server))
    if "curl" in block and shutil.which("curl") is None:
        pytest.skip("there is no curl on the PATH")
    if re.search(r"--continue|codeloop (session|export)", block):
        first = world.bash('codeloop run "say hello"')
        assert first.returncode == 0, first.stderr
    for page in PAGES:
        for name, text in programs(page):
            (world.folder / "project" / name).write_text(text)
    done = world.bash(script_of(block))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_result_that_is_shown_has_the_fields_of_a_real_one(world: World, model_server: str) -> None:
    world.configure(all_served_by(model_server))
    real = world.bash("codeloop run --format json hello | tail -n 1").stdout
    shown = re.search(r'^\{"type":"result".*', (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    assert json.loads(real)["type"] == "result"
    assert re.findall(
        r'"(\w+)":', shown[0].replace(", ...", ',"reasoning":0,"cache":{"read":0,"write":0}')
    ) == re.findall(r'"(\w+)":', real)


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_settings_that_are_shown_are_read_without_a_warning(text: str, world: World) -> None:
    world.configure(text)
    done = world.bash("set +x; codeloop debug config")
    assert (done.returncode, done.stderr.removeprefix("+ set +x\n")) == (0, "")
    assert json.loads(done.stdout)


def test_the_project_can_be_installed_as_the_pages_say() -> None:
    installs = [words for page in PAGES for words in commands(page) if "install" in words]
    assert {tuple(words[-2:]) for words in installs} == {("install", ".")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"]["codeloop"] == "codeloop.cli.main:main"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_tests_and_files_that_are_named_are_there(page: Path) -> None:
    named = re.findall(r"`((?:tests|scripts|bench|src)/[\w/.-]+\.(?:py|md|toml))`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_the_page_of_tools_names_them_all() -> None:
    rows = re.findall(r"^\| (`\w.*?) \|", (ROOT / "docs" / "tools.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {tool.name for tool in BUILTIN} | {"batch"}


def test_the_picture_shows_what_the_demo_shows(tmp_path: Path) -> None:
    assert PICTURE.stat().st_size < 40_000
    drawn = ET.fromstring(PICTURE.read_bytes())
    texts = " ".join("".join(element.itertext()) for element in drawn.iter("{http://www.w3.org/2000/svg}text"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [CODELOOP, "demo"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    said = set(re.findall(r"\b[^\W\d_]{3,}\b", re.sub(r"ses_\w+", "", done.stdout + done.stderr)))
    assert said - set(re.findall(r"\b[^\W\d_]{3,}\b", texts)) == set(), "make picture"
