"""A corpus of sessions of strong and weak models: requests, bytes and ends may not grow,
whatever is changed.

Each file of `sessions` is a recording as `--replay` plays it (`codeloop run --record` makes a new
one); the row of `expected.json` has its prompt and what it came to. `CODELOOP_GOLDEN=write` writes
the figures anew: read the diff.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.chat import ModelInfo
from codeloop.model.protocols.chat_completions.request import ChatCompletionsRequestEncoder
from codeloop.model.quirks import find_quirks
from codeloop.model.testing.replay import ReplayModel
from codeloop.model.testing.script import ProjectPaths
from codeloop.schema.api.session_inputs import RunLimits
from tests.cli.program import Desk, result
from tests.support.sandbox_support import find_sandbox, has_sandbox
from tests.support.scripted_project import join_texts, open_scripted_project

HERE = Path(__file__).parent
EXPECTED_FILE = HERE / "expected.json"
EXPECTED: dict[str, dict[str, Any]] = json.loads(EXPECTED_FILE.read_text())
NAMES = sorted(EXPECTED)
INFO = ModelInfo(provider_id="acme", id="some-model", name="Some model")
ROOM, WEAK_SANDBOX = 1.01, 200
"""What names of a machine may add to the bytes of a session,
and a weak sandbox to those of a request.
"""
PERMISSION = {"bash": "allow", "external_directory": "allow", "doom_loop": "deny"}
"""As `run --auto` decides, where nobody can be asked."""
CART = """def total(prices, counts):
    total = 0
    for price, count in zip(prices, counts):
        # The price of all pieces.
        total += price + count
    return total * (100 + get_rate()) // 100


from shop.tax import get_rate
"""
TAX = "RATE = 19\n\n\ndef get_rate():\n    return RATE\n\n\ndef add_tax(amount):\n    return amount * get_rate()\n"
TEST = """check() { if grep -q "$2" "$3"; then echo "ok - $1"; else echo "not ok - $1: $2 is missing"; failed=1; fi; }
failed=0
check total 'price \\* count' shop/cart.py
check tax 'RATE = 19' shop/tax.py
exit $failed
"""


def make_shop(folder: Path) -> None:
    """Make the project of all sessions: a repository with two commits,
    a failing test and uncommitted work.
    """
    (folder / "shop").mkdir(parents=True)
    log = [
        f"{line:04} unit {line}: compiled shop/part_{line}.c with the usual options"
        for line in range(1200)
    ]
    log[612:613] = [
        "0612 unit 612: error",
        "     linker: undefined symbol tax_rate",
        "     1 error",
    ]
    files = {
        "shop/cart.py": CART,
        "shop/tax.py": TAX,
        "test.sh": TEST,
        "build.log": "\n".join(log),
        "README.md": "Shop\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    settings = ("user.name=me", "user.email=me@example.com", "gc.auto=0", "maintenance.auto=false")
    options = [word for setting in settings for word in ("-c", setting)]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *options, *words], cwd=folder, check=True)
    (folder / "README.md").write_text("Shop\n\nSecond.\n")
    subprocess.run(["git", *options, "commit", "-qam", "two"], cwd=folder, check=True)
    (folder / "notes.txt").write_text("mine\n")


async def play(tmp_path: Path, name: str) -> dict[str, Any]:
    """Play a session and return what it came to."""
    work = tmp_path / "work"
    make_shop(work)
    model = ReplayModel(
        HERE / "sessions" / f"{name}.jsonl", ProjectPaths(str(work), str(work)), INFO
    )
    async with open_scripted_project(tmp_path, model, permission=PERMISSION) as it:
        answer = await it.prompt(EXPECTED[name]["prompt"], limits=RunLimits(attended=False))
        requests = [request for request in it.model.requests if request.tools]
    encoder = ChatCompletionsRequestEncoder(INFO, find_quirks(INFO))
    bodies = [
        encoder.encode(request).replace(str(tmp_path).encode(), b"/home/user")
        for request in requests
    ]
    stop = answer.stop
    assert stop is not None
    facts = stop.facts
    return {
        "prompt": EXPECTED[name]["prompt"],
        "requests": len(bodies),
        "bytes": sum(map(len, bodies)),
        "reason": stop.reason,
        "answer": join_texts(answer.parts),
        "checks": facts.checks if facts else "",
        "false_claims": [*facts.false_claims] if facts else [],
        "lost_files": [*facts.lost_files] if facts else [],
    }


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="without a sandbox other things are said of commands")
@pytest.mark.parametrize("name", NAMES)
async def test_a_session_needs_no_more_than_before(tmp_path: Path, name: str) -> None:
    played, expected = await play(tmp_path, name), EXPECTED[name]
    if os.environ.get("CODELOOP_GOLDEN") == "write":
        rows = json.loads(EXPECTED_FILE.read_text()) | {name: played}
        EXPECTED_FILE.write_text(
            json.dumps(rows, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        )
        return
    extra = 0 if find_sandbox() == "namespaces" else WEAK_SANDBOX * expected["requests"]
    assert played["requests"] <= expected["requests"]
    assert played["bytes"] <= expected["bytes"] * ROOM + extra
    figures = {"requests", "bytes"}
    assert {key: value for key, value in played.items() if key not in figures} == {
        key: value for key, value in expected.items() if key not in figures
    }


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="without a sandbox every command is asked about")
@pytest.mark.parametrize("name", NAMES)
def test_a_session_is_replayed_by_the_program(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path)
    make_shop(desk.work)
    recording = HERE / "sessions" / f"{name}.jsonl"
    flags = ("--auto", "--format", "json", "--replay", str(recording))
    ended = result(desk.run("run", *flags, EXPECTED[name]["prompt"]))
    assert ended["text"] == EXPECTED[name]["answer"]
    assert ended["reason"] == EXPECTED[name]["reason"]


def test_each_recording_is_expected() -> None:
    assert sorted(file.stem for file in (HERE / "sessions").iterdir()) == NAMES
