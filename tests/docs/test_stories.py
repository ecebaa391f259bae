"""Every block of every page is run, in its order, and prints what the page says."""

import os
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import serving
from tests.docs.model import Model
from tests.docs.pages import ROOT, Block, blocks, page_id
from tests.docs.story import KEY, difference, tell
from tests.support.model_server import ModelServer

TOLD = [
    page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if blocks(page)
]
LONG = {
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "agents",
            "benchmarking",
            "benchmarks",
            "ci",
            "cli",
            "extensions",
            "getting-started",
            "library",
            "mcp",
        )
    ),
    *(
        f"docs/{name}.md"
        for name in ("models", "permissions", "reliability", "server", "sessions", "tui")
    ),
    *(f"docs/{name}.md" for name in ("fleet", "goals", "stream-json", "worktrees")),
}
"""Pages that take more than 0.15 s of a core."""
KEYLESS = {"README.md", "docs/getting-started.md", "docs/models.md"}
"""Pages that begin without a key, since they tell how to get one in."""
NOT_EVERYWHERE = ("curl",)
"""Programs of blocks that are run, which a machine with Python, git and make need not have."""
PORT = "4096"
"""The port that pages show; in a test it is a free one, so that pages can be told side by side."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model server that answers as a page needs it;
    one for each, as it refuses a request the first time.
    """
    with serving(Model(), record=False) as server:
        yield server


def find_missing_program(story: list[Block]) -> str | None:
    """Return a program that a story runs and this machine lacks;
    None: it has all that are not always there.
    """
    lines = "\n".join(block.text for block in story if block.language in {"sh", "console"})
    names = [name for name in NOT_EVERYWHERE if re.search(rf"(?<![\w./-]){name}(?![\w./-])", lines)]
    return next((name for name in names if shutil.which(name) is None), None)


def free_port(page: Path) -> str:
    """Return a port for a page, below those that the system gives to clients,
    so that nobody takes it meanwhile.
    """
    for port in range(20_000 + 100 * TOLD.index(page) + os.getpid() % 100, 30_000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return str(port)
    raise AssertionError("no port is free")


def with_port(block: Block, port: str) -> Block:
    """Return a block with another port in place of the one that pages show."""
    return Block(
        block.page, block.line, block.language, block.text.replace(PORT, port), block.before
    )


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page_id(page), marks=[pytest.mark.slow] * (page_id(page) in LONG))
        for page in TOLD
    ],
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, server: ModelServer) -> None:
    port = free_port(page)
    if program := find_missing_program(blocks(page)):
        pytest.skip(f"the page runs {program}, which is not installed here")
    story = [with_port(block, port) for block in blocks(page)]
    told = tell(
        story,
        tmp_path,
        server.url,
        **({} if page_id(page) in KEYLESS else {"ANTHROPIC_API_KEY": KEY}),
    )
    at = story[min(len(told.ran), len(story) - 1)].place
    assert told.code == 0, f"{at}: exit code {told.code}\n{told.output}"
    for number, block in enumerate(story):
        assert told.said(number) == "", f"{block.place}: the program complains about the file"
        if block.language == "console":
            for step, (command, shown) in enumerate(block.steps()):
                wrong = difference(shown, told.printed(number, step))
                assert not wrong, f"{block.place}: $ {command}\n{wrong}"
    fences = len(re.findall(r"^\s*(?:```|~~~)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert told.ran == list(range(fences // 2)), f"{page_id(page)}: blocks were passed over"
