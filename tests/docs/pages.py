"""Read the pages of the documentation: their blocks, the commands in these,
and the files that they show.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

FILE = re.compile(r"`([~\w./-]+\.(?:jsonl?|jsonc|md|pl|py|sh|toml|ts|txt))`")

INSTALLING = (
    r"(python3 -m venv|\S*pip install|mkdir -p ~/\.local/bin|pipx|uv tool|git pull|rm -rf? ~/\.)"
)
"""How lines begin that install, update or remove codeloop."""
NOT_RUN = {
    r"make (test|check)\b": "is what runs this; that the target exists is checked",
    r"make bench( |$)(?!((?!--only).)*--only((?!--only).)*$)": "takes long; one row is run, and the flags are checked",
    INSTALLING: "changes what is installed; tests/everyday/test_installing.py runs all of them",
    r"codeloop( --plain| -c| attach http\S+| \.\./.*)? +#": "needs a terminal; tests/tui works with the terminal UI",
    r"ollama ": "another project's program",
}
"""Lines that are not run, as patterns of how they begin, and why. All others are."""


def page_id(path: Path) -> str:
    """Return the path of a page from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: `before` is the paragraph above it, `line` that of its opening fence,
    from 1.
    """

    page: Path
    line: int
    language: str
    text: str
    before: str

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{page_id(self.page)}:{self.line}"

    @property
    def file(self) -> str:
        """The file that it is the content of: the last one that the paragraph above names."""
        named = FILE.findall(self.before)
        assert named, (
            f"{self.place}: no sentence says which file this {self.language or 'plain'} block is"
        )
        return named[-1]

    def lines(self) -> list[str]:
        """Return the lines of a shell block, continued ones joined."""
        return self.text.replace("\\\n", " ").splitlines()

    def steps(self) -> list[tuple[str, str]]:
        """Return the commands of a console block, each with what the page says that it prints."""
        found: list[tuple[str, str]] = []
        for line in self.lines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
                continue
            assert found, f"{self.place}: a console block begins with a command"
            command, printed = found[-1]
            found[-1] = (command, f"{printed}{line}\n")
        return found


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    found: list[Block] = []
    before: list[str] = []
    inside: list[str] | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(keepends=True), 1):
        if line.startswith("```") and inside is None:
            inside = []
            found.append(Block(page, number, line[3:].strip(), "", "".join(before)))
        elif line.startswith("```") and inside is not None:
            found[-1] = replace(found[-1], text="".join(inside))
            inside, before = None, []
        elif inside is not None:
            inside.append(line)
        elif line.strip():
            before = [*before, line] if before and before[-1].strip() else [line]
        else:
            before = [*before, line]
    return found


def is_run(line: str) -> bool:
    """Return whether a line of a shell block is run."""
    return not any(re.match(pattern, line.strip()) for pattern in NOT_RUN)


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each simple command in the shell and console blocks of a page."""
    for block in blocks(page):
        lines = (
            [command for command, _ in block.steps()]
            if block.language == "console"
            else block.lines()
        )
        if block.language in {"sh", "console"}:
            for line in lines:
                yield from simple_commands(line)


def simple_commands(line: str) -> list[list[str]]:
    """Split a line of shell into its simple commands, without assignments in front."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("();<>|&"):
            found.append([])
        elif found[-1] or not re.match(r"\w+=", word):
            found[-1].append(word)
    return [words for words in found if words]
