"""What is looked for in a result as the path of a file, and how much of a file is copied."""

import os
import time
from pathlib import Path

import pytest

from codeloop.extend.mcp.tools import handed_files
from codeloop.extend.mcp.tools.handed_files import copy_file, list_path_words
from codeloop.schema.bounds.extension import MCP_HANDED_FILE
from codeloop.schema.wire import replace


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("see /tmp/@a/x.yml and @b.csv", ["/tmp/@a/x.yml", "@b.csv"]),
        ("node_modules/@scope/x.js", ["node_modules/@scope/x.js"]),
        ("to me@host.org", ["me@host.org"]),
        ("file:///tmp/x.pdf", ["/tmp/x.pdf"]),
    ],
)
def test_a_path_is_one_word(text: str, words: list[str]) -> None:
    assert list_path_words(text) == words


@pytest.mark.parametrize("part", ["@", "a@", "@/", "./", ".", "a.", "%", "-", "+", '"a.', "://"])
def test_no_text_takes_long_to_search(part: str) -> None:
    start = time.thread_time()
    list_path_words(part * 20_000)
    # What grows with the square took minutes of this thread's own time, or several seconds.
    assert time.thread_time() - start < 2


def test_a_file_that_turns_out_larger_than_it_says_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The system says of such a file that it is empty.
    file, top = Path(f"/proc/{os.getpid()}/maps"), Path("/proc")
    copy = copy_file(file, top, tmp_path)
    assert copy is not None
    assert copy.stat().st_size > 10
    copy.unlink()
    monkeypatch.setattr(handed_files, "MCP_HANDED_FILE", replace(MCP_HANDED_FILE, value=10))
    assert copy_file(file, top, tmp_path) is None
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]
