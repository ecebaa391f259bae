"""Files of state with bytes that are not UTF-8 count as missing: nothing ends because of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.extend.hooks.timings import get_timings_path, read_timings
from codeloop.extend.packages.lock_file import get_lock_path, read_lock
from codeloop.tui.settings.model_memory import ModelMemory, RememberedModels
from codeloop.tui.settings.session_pins import SessionPins
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.workspace.process.slow_commands import SlowCommands

READERS: list[tuple[str, bytes, Callable[[Path], object], object]] = [
    ("pinned.json", b'["\xff"]', lambda folder: SessionPins(folder).read(), ()),
    (
        "models.json",
        b'{"recent": ["\xff"]}',
        lambda folder: ModelMemory(folder).read(),
        RememberedModels(),
    ),
    ("history.jsonl", b'{"text": "\xff"}\n', lambda folder: PromptStore(folder).list_history(), []),
    ("stash.jsonl", b'{"text": "\xff"}\n', lambda folder: PromptStore(folder).list_stash(), []),
    (
        "a.slow.json",
        b'{"\xff": 1}',
        lambda folder: SlowCommands().find_seconds(folder / "a", "make"),
        0,
    ),
    (get_timings_path(Path()).name, b'[{"label": "\xff"}]', read_timings, []),
    (
        get_lock_path(Path("a")).name,
        b'{"name": "\xff"}',
        lambda folder: read_lock(folder / "a"),
        None,
    ),
]


@pytest.mark.parametrize(
    ("name", "content", "read", "expected"), READERS, ids=[row[0] for row in READERS]
)
def test_a_file_that_is_not_utf_8_counts_as_missing(
    tmp_path: Path, name: str, content: bytes, read: Callable[[Path], object], expected: object
) -> None:
    (tmp_path / name).write_bytes(content)
    assert read(tmp_path) == expected
