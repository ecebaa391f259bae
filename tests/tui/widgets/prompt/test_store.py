"""What the prompt remembers, on the disk: by many processes at once, and by one that is killed."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codeloop.schema.bounds.tui import PROMPT_BLOB
from codeloop.schema.wire import replace
from codeloop.tui.editor.chips import Chip
from codeloop.tui.widgets.prompt.history import prompt_store
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt

LONG = "x" * 20_000


def texts(store: PromptStore) -> list[str]:
    return [prompt.text for prompt in store.list_history()]


def test_history_is_shared_by_all_processes_of_a_project(tmp_path: Path) -> None:
    one, other = PromptStore(tmp_path / "p"), PromptStore(tmp_path / "p")
    one.add_to_history(StoredPrompt("first"))
    other.add_to_history(StoredPrompt("second", "shell"))
    one.add_to_history(StoredPrompt("third"))
    one.add_to_history(StoredPrompt("third"))
    one.add_to_history(StoredPrompt("  "))
    assert texts(one) == texts(other) == ["first", "second", "third"]
    assert other.list_history()[1].mode == "shell"


@pytest.mark.slow
def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from codeloop.schema.wire import replace\n"
        "from codeloop.tui.widgets.prompt.history import prompt_store\n"
        "from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt\n"
        # After its usual time a writer goes on without the lock: it would not do for a
        # process that stands still.
        "prompt_store.PROMPT_LOCK = replace(prompt_store.PROMPT_LOCK, value=120_000)\n"
        "store = prompt_store.PromptStore(Path(sys.argv[1]))\n"
        "for n in range(150): store.add_to_history(StoredPrompt(f'{sys.argv[2]} {n}')); store.add_mention('shared')"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in "ab"
    ]
    assert [process.wait(120) for process in running] == [0, 0]
    found = texts(PromptStore(tmp_path))
    for name in "ab":
        assert [text for text in found if text.startswith(name)] == [
            f"{name} {n}" for n in range(150)
        ]
    assert PromptStore(tmp_path).read_mentions()["shared"][0] == pytest.approx(300, abs=0.1)


def test_of_a_history_that_is_too_large_the_latest_prompts_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_store, "PROMPT_BLOB", replace(PROMPT_BLOB, value=1_000))
    store = PromptStore(tmp_path)
    for number in range(40):
        store.add_to_history(StoredPrompt(f"prompt {number}"))
    read = texts(store)
    assert 1 < len(read) < 40
    assert read == [f"prompt {number}" for number in range(40 - len(read), 40)]


def test_a_line_that_was_cut_off_costs_no_other(tmp_path: Path) -> None:
    store = PromptStore(tmp_path)
    store.add_to_history(StoredPrompt("first"))
    with (tmp_path / "history.jsonl").open("ab") as file:
        file.write(b'{"text":"cut of')
    store.add_to_history(StoredPrompt("second"))
    (tmp_path / "stash.jsonl").write_bytes(b"\xff\x00 no json\n")
    (tmp_path / "mentions.json").write_text("[]")
    assert texts(store) == ["first", "second"]
    assert store.list_stash() == []
    assert store.compute_mention_weight("a") == 0


def test_history_is_trimmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from codeloop.kit.limit import Limit
    from codeloop.tui.widgets.prompt.history import prompt_store as module

    monkeypatch.setattr(module, "PROMPT_HISTORY", Limit("x", 10, "count", "for this test"))
    store = PromptStore(tmp_path)
    for number in range(40):
        store.add_to_history(StoredPrompt(str(number)))
    assert texts(store) == [str(number) for number in range(30, 40)]
    assert len((tmp_path / "history.jsonl").read_bytes().splitlines()) <= 13


def test_large_chips_have_files_of_their_own(tmp_path: Path) -> None:
    store = PromptStore(tmp_path)
    char = chr(0x100000)
    prompt = StoredPrompt(f"look {char}", chips={char: Chip("[Pasted 1 lines]", LONG)})
    store.add_to_history(prompt)
    store.push_stash(prompt)
    store.drafts.save("ses_1", prompt)
    assert len((tmp_path / "history.jsonl").read_bytes()) < 1_000
    found = store.chip_contents.unpack(store.list_history()[0])
    popped, draft = store.pop_stash(), store.drafts.load("ses_1")
    assert draft is not None
    assert popped is not None
    assert [each.chips[char].text for each in (found, popped, draft)] == [LONG] * 3
    for path in (tmp_path / "contents").iterdir():
        path.unlink()
    assert (
        store.chip_contents.unpack(store.list_history()[0]).chips[char].sent_text
        == "[Pasted 1 lines]"
    )


def test_what_was_put_aside_is_taken_back_in_any_order(tmp_path: Path) -> None:
    store = PromptStore(tmp_path)
    assert store.pop_stash() is None
    for name in ("one", "two", "three"):
        store.push_stash(StoredPrompt(name))
    assert [prompt.text for prompt in store.list_stash()] == ["one", "two", "three"]
    assert store.pop_stash(0) is not None
    last = store.pop_stash()
    assert last is not None
    assert last.text == "three"
    assert [prompt.text for prompt in PromptStore(tmp_path).list_stash()] == ["two"]
    assert store.pop_stash(5) is None


def test_a_draft_belongs_to_its_process_while_that_lives(tmp_path: Path) -> None:
    one, other = PromptStore(tmp_path), PromptStore(tmp_path)
    one.drafts.save("new", StoredPrompt("mine", cursor=2))
    assert not other.drafts.adopt("new")
    assert other.drafts.load("new") is None
    assert one.drafts.load("new") is not None
    one.drafts.close()
    assert other.drafts.adopt("new")
    found = other.drafts.load("new")
    assert found is not None
    assert (found.text, found.cursor) == ("mine", 2)
    third = PromptStore(tmp_path)
    assert not third.drafts.adopt("new")
    other.drafts.save("new", None)
    other.drafts.close()
    assert not third.drafts.adopt("new")
    assert list((tmp_path / "drafts").iterdir()) == []


def test_a_draft_survives_kill_9(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from codeloop.tui.widgets.prompt.history.stored_prompt import StoredPrompt\n"
        "from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore\n"
        "store = PromptStore(Path(sys.argv[1]))\n"
        "store.drafts.save('ses_1', StoredPrompt('half a thou')); print('written', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    store = PromptStore(tmp_path)
    assert not store.drafts.adopt("ses_1")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert store.drafts.adopt("ses_1")
    draft = store.drafts.load("ses_1")
    assert draft is not None
    assert draft.text == "half a thou"


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    store = PromptStore(tmp_path / "p")
    store.add_to_history(StoredPrompt("a"))
    store.drafts.save("new", StoredPrompt("a"))
    store.add_mention("a")
    for path in (tmp_path / "p").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_what_is_used_often_and_lately_weighs_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PromptStore(tmp_path)
    for name in ("often", "often", "once"):
        store.add_mention(name)
    assert (
        store.compute_mention_weight("often")
        > store.compute_mention_weight("once")
        > store.compute_mention_weight("never")
        == 0
    )
    week = 7 * 86_400_000
    monkeypatch.setattr(
        "codeloop.tui.widgets.prompt.history.prompt_store.now_ms",
        lambda: int(time.time() * 1000) + week,
    )
    assert store.compute_mention_weight("often") == pytest.approx(1, abs=0.01)
