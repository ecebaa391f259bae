"""The skeleton of `codeloop plugin new`: a package with a tool, a hook, a command, a skill,
and passing tests.
"""

import re
from pathlib import Path

from codeloop.extend.packages.manifest import MANIFEST
from codeloop.schema.errors import UsageProblem

_PACKAGE_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
_FILE_TEMPLATES = {
    MANIFEST: """{
  "name": "{name}",
  "version": "0.1.0",
  "description": "Counts words, and keeps secrets out of commits."
  // MCP servers, as in codeloop.json: "mcp": {"docs": {"type": "local", "command": ["docs-server"]}}
}
""",
    "README.md": """# {name}

A package of extensions for codeloop.

| what | where |
|---|---|
| tools: each public function is one | `tool/` |
| hooks | `plugin/` |
| commands and skills | `command/`, `skill/` |
| MCP servers | `mcp` in `plugin.json` |

    codeloop plugin add ./{name}      # use it in all projects; --project in this one
    pytest {name}                     # test it
""",
    "conftest.py": '"""Lets the tests import the tools."""\n',
    "tool/{module}_words.py": '''"""Tools: each public function is one; docstring and annotations describe it."""

from pathlib import Path


def {module}_words(path: str, longest: int = 3) -> str:
    """Count the words of a text file, and name its longest ones.

    Args:
        path: the file
        longest: how many words to name
    """
    words = Path(path).read_text(encoding="utf-8").split()
    named = sorted(set(words), key=lambda word: (-len(word), word))[:longest]
    return f"{len(words)} words; the longest: {', '.join(named)}"
''',
    "plugin/{module}_guard.py": '''"""Hooks: asked at points of a turn. What they raise refuses; the model reads why."""

from codeloop.extension import hook


@hook("tool.execute.before", policy=True)
def no_secrets(input, output):
    """Keep `.env` out of commits."""
    command = str(output["args"].get("command", ""))
    if input["tool"] == "bash" and "git add" in command and ".env" in command:
        raise ValueError("Files with secrets are not committed here. Leave .env out.")
    return output
''',
    "command/{name}.md": """---
description: Count the words of the documentation.
---
Count the words of each file in $ARGUMENTS with the tool {module}_words, and say which one is too long.
""",
    "skill/{name}/SKILL.md": """---
name: {name}
description: How texts are written in this project. Use it before you write documentation.
---
Write short sentences. Say what a reader can do now, not how it came about.
""",
    "tests/test_{module}.py": '''"""Tests of the package; they need pytest, and codeloop for the hook."""

from pathlib import Path

import pytest
from tool.{module}_words import {module}_words


def test_words_are_counted(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be")
    assert {module}_words(str(text), longest=1) == "6 words; the longest: not"


def test_secrets_stay_out_of_commits() -> None:
    pytest.importorskip("codeloop.extension")
    from plugin.{module}_guard import no_secrets

    call = {"tool": "bash"}
    assert no_secrets(call, {"args": {"command": "git add a.py"}})
    with pytest.raises(ValueError, match="secrets"):
        no_secrets(call, {"args": {"command": "git add .env"}})
''',
}


def write_skeleton(folder: Path, name: str) -> list[Path]:
    """Write a package that works into a new folder, and return its files. Raises UsageProblem."""
    if not re.fullmatch(_PACKAGE_NAME, name):
        raise UsageProblem(
            f"{name!a} is not a valid package name: use lower-case letters, digits and hyphens."
        )
    if folder.exists():
        raise UsageProblem(f"{folder} exists already. Choose another name.")
    paths: list[Path] = []
    for path, text in _FILE_TEMPLATES.items():
        file = folder / _fill_template(path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_fill_template(text, name), encoding="utf-8")
        paths.append(file)
    return paths


def _fill_template(text: str, name: str) -> str:
    return text.replace("{name}", name).replace("{module}", name.replace("-", "_"))
