"""Reads the command lines that a project's CI runs,
and those that its instructions for contributors name. None is run.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from codeloop.kit.text.patterns import compile_once
from codeloop.workspace.project_reader import ProjectReader

# Files with instructions, as they are usually called; the first words of their names.
_INSTRUCTION_STEMS = ("agents", "claude", "contributing", "hacking", "development")
_INSTRUCTION_ENDINGS = ("", ".md", ".rst", ".txt", ".adoc", ".markdown")
_CI_FILES = (
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    ".travis.yml",
    ".cirrus.yml",
    ".drone.yml",
    ".woodpecker.yml",
    ".buildkite/pipeline.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "Jenkinsfile",
)
_CI_FOLDERS = (".github/workflows", ".forgejo/workflows", ".gitea/workflows", ".woodpecker")
_OTHER_WORKFLOWS = (
    r"(?i)release|publish|deploy|docs?\b|codeql|scorecard|stale|label|lock|pages|nightly"
)
_MAX_WORKFLOWS = 12
_MAX_LINES = 2_000
# `run: make test`, `- script: |`; the keys of the usual services.
_COMMAND_KEY = (
    r"(?P<indent>[ \t]*+)(?P<dash>-[ ]+)?(?:run|scripts?|commands?|test_script|build_script|bash"
    r"|pwsh|sh):[ \t]*(?P<value>.*)"
)
_LIST_ITEM = r"(?P<indent>[ \t]*)-[ ]+(?P<value>.*)"
_BLOCK_MARK = r"[|>][+-]?\d?[ \t]*(?:#.*)?"
_FOLDER_KEY = (
    r"[ \t]*(?:-[ ]+)?(?:working-directory|workingDirectory|working_directory|dir):[ \t]*\S"
)
_JENKINS_STEP = r"\bsh\s*\(?\s*['\"]{1,3}([^'\"\n]+)"
_FENCE = r"[ \t]*(?:```|~~~)"
_INLINE_CODE = r"``?([^`\n]{4,100})``?"


def read_written_lines(reader: ProjectReader) -> Iterator[list[str]]:
    """Yield the command lines of instructions, then those of CI: each list in one shell."""
    yield from filter(None, _list_instruction_blocks(reader))
    yield from filter(None, _list_ci_blocks(reader))


def _list_instruction_blocks(reader: ProjectReader) -> Iterator[list[str]]:
    """Yield the commands in fences, and each one between backquotes."""
    folders = ("", *(name for name in (".github", "docs") if name in reader.names))
    for folder in folders:
        for name in sorted(reader.names) if not folder else reader.list_names(folder):
            if _is_instruction(name.lower()):
                yield from _list_code_blocks(reader.read_text(f"{folder}/{name}".lstrip("/")))


def _is_instruction(name: str) -> bool:
    stem = name.partition(".")[0]
    return stem in _INSTRUCTION_STEMS and name[len(stem) :] in _INSTRUCTION_ENDINGS


def _list_code_blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    is_fenced = False
    for line in islice(text.splitlines(), _MAX_LINES):
        if re.match(_FENCE, line):
            yield _clean_lines(block)
            block, is_fenced = [], not is_fenced
        elif is_fenced or line.startswith(("    ", "\t")):
            block.append(line)
        else:
            yield _clean_lines(block)
            block = []
            # One word is a name as often as a command.
            yield from ([code] for code in re.findall(_INLINE_CODE, line) if " " in code)
    yield _clean_lines(block)


def _list_ci_blocks(reader: ProjectReader) -> Iterator[list[str]]:
    for path in _list_ci_files(reader):
        text = reader.read_text(path)
        if path == "Jenkinsfile":
            yield from ([command] for command in re.findall(_JENKINS_STEP, text))
        else:
            yield from _list_yaml_blocks(text.splitlines()[:_MAX_LINES])


def _list_ci_files(reader: ProjectReader) -> Iterator[str]:
    yield from (path for path in _CI_FILES if path.partition("/")[0] in reader.names)
    for folder in _CI_FOLDERS:
        if folder.partition("/")[0] in reader.names:
            workflows = (
                f"{folder}/{name}"
                for name in reader.list_names(folder)
                if name.endswith((".yml", ".yaml")) and not re.search(_OTHER_WORKFLOWS, name)
            )
            yield from islice(workflows, _MAX_WORKFLOWS)


def _list_yaml_blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the command lines of each step that runs in the folder of the project."""
    number = 0
    while number < len(lines):
        key = compile_once(_COMMAND_KEY).fullmatch(lines[number])
        number += 1
        if key is None:
            continue
        depth = len(key["indent"]) + len(key["dash"] or "")
        first = number
        while number < len(lines) and _belongs(lines[number], depth, len(key["indent"])):
            number += 1
        value = key["value"].strip()
        below = lines[first:number]
        if _has_folder(lines, first - 1, number, depth):
            continue
        if not value and not all(re.fullmatch(_LIST_ITEM, line) for line in below[:1]):
            # A step with keys of its own (CircleCI), or a job of that name.
            number = first
        elif not value or re.fullmatch(_BLOCK_MARK, value):
            joined = [" ".join(map(str.strip, below))] if value.startswith(">") else below
            yield _clean_lines(joined)
        else:
            yield _clean_lines([value])
            number = first


def _belongs(line: str, depth: int, indent: int) -> bool:
    """Return whether a line is below a key: deeper, or an item of its list, as deep."""
    own = len(line) - len(line.lstrip())
    is_item = line.lstrip().startswith("- ") and own >= indent and own >= depth
    return not line.strip() or own > depth or is_item


def _has_folder(lines: Sequence[str], first: int, end: int, depth: int) -> bool:
    """Return whether the keys beside a step's command name a folder to run it in."""

    def is_beside(line: str) -> bool:
        own = len(line) - len(line.lstrip("- "))
        return not line.strip() or own >= depth

    before = first
    while (
        before > 0 and not lines[before].lstrip().startswith("- ") and is_beside(lines[before - 1])
    ):
        before -= 1
    after = end
    while (
        after < len(lines)
        and is_beside(lines[after])
        and not lines[after].lstrip().startswith("- ")
    ):
        after += 1
    return any(re.match(_FOLDER_KEY, line) for line in lines[before:after])


def _clean_lines(lines: Sequence[str]) -> list[str]:
    """Return commands without prompts, marks of lists, quotes around them and comments;
    lines that go on are joined.
    """
    text = "\n".join(lines).replace("\\\n", " ")
    cleaned: list[str] = []
    for line in text.split("\n"):
        item = re.fullmatch(_LIST_ITEM, line)
        command = (item["value"] if item else line).strip()
        command = re.sub(r"^(?:\$|%|>) ", "", command)
        if command[:1] in {'"', "'"} and command[-1:] == command[:1]:
            command = command[1:-1]
        if command and not command.startswith("#"):
            cleaned.append(re.sub(r"\s#\s.*$", "", command))
    return cleaned
