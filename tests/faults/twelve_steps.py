"""A turn of twelve steps that uses what the program has, to be broken off anywhere;
and what must hold afterwards.
"""

import json
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from typing import Any

from tests.cli.program import Desk, bash, call, events, result
from tests.faults.stored_session import check_integrity, list_calls_without_result, read_parts
from tests.support.answers import Answer, Call, Counts
from tests.support.http_connection import ReceivedRequest
from tests.support.model_server import ModelServer

FULL_CONTEXT = Counts(input=190_000, output=50)
TODO_LIST = [{"id": "1", "content": "Work", "status": "in_progress", "priority": "high"}]
PATCH_TEXT = """*** Begin Patch
*** Update File: a.txt
@@
-beta
+gamma
*** Add File: d.txt
+four
*** Update File: b.txt
@@
-second
+patched
*** End Patch"""


def list_answers() -> tuple[Answer, ...]:
    """Return the twelve answers; each line that a command appends to `log` is appended
    once in the whole turn.
    """
    together = (
        *bash("echo two >> log", "c6a").calls,
        *call("read", call_id="c6b", filePath="b.txt").calls,
        *call("grep", call_id="c6c", pattern="beta").calls,
    )
    patched = Call("apply_patch", json.dumps({"patchText": PATCH_TEXT}), "c9b")
    return (
        bash("echo one >> log", "c1"),
        call("write", call_id="c2", filePath="b.txt", content="second\n"),
        call("read", call_id="c3", filePath="a.txt"),
        call("edit", call_id="c4", filePath="a.txt", oldString="alpha", newString="beta"),
        call("todowrite", call_id="c5", todos=TODO_LIST),
        Answer(text="Three at once.", calls=together),
        Answer(
            text="That fills it up.",
            calls=bash("echo three >> log", "c7").calls,
            counts=FULL_CONTEXT,
        ),
        Answer(text="After the note.", deltas=0, calls=bash("echo four >> log", "c8").calls),
        Answer(calls=(*bash("echo five >> log", "c9").calls, patched)),
        call("write", call_id="c10", filePath="c.txt", content="x\ny\n"),
        call("edit", call_id="c11", filePath="c.txt", oldString="x", newString="z"),
        Answer(
            reasoning="Is all done?",
            signature="s",
            text="All of the work is done now.",
            deltas=0,
            delay=0.01,
        ),
    )


class TwelveSteps:
    """Replies with the answers in order, whatever the history holds: an interrupted
    step is not asked for again.
    """

    def __init__(self) -> None:
        self._answers = list_answers()
        self._given = 0

    def __call__(self, received: ReceivedRequest) -> Answer:
        """Choose an answer; a request without tools asks for a summary."""
        if b'"tools"' not in received.body:
            return Answer(text="NOTE: the work goes on.", deltas=0)
        answer = self._answers[min(self._given, len(self._answers) - 1)]
        self._given += 1
        return answer


def prepare_project(desk: Desk, server: ModelServer) -> None:
    """Put the project and the configuration there."""
    desk.use(server)
    (desk.work / "a.txt").write_text("alpha\n")


def run_with_fault(desk: Desk, fault: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the turn, or what `arguments` say, with a fault."""
    said = arguments or ("--title", "T", "work")
    return desk.run("run", "--auto", "--format", "json", *said, CODELOOP_FAULT=fault)


def check_shown_parts(desk: Desk, stdout: str) -> None:
    """Check that every part that was shown, in a line that came whole,
    is stored as it was shown.
    """
    whole = stdout[: stdout.rfind("\n") + 1]
    lines = events(whole) if whole else []
    shown = [line["part"] for line in lines if "part" in line]
    stored = {part["id"]: part for part in read_parts(desk)} if shown else {}
    for part in shown:
        assert stored[part["id"]] == part


def list_open_calls(desk: Desk) -> list[str]:
    """Return the ids of calls that the fault left running."""
    running = [
        part
        for part in read_parts(desk)
        if part["type"] == "tool" and part["state"]["status"] == "running"
    ]
    return [part["callID"] for part in running]


def has_sessions(desk: Desk) -> bool:
    """Return whether a session with a prompt is there to go on with."""
    with closing(sqlite3.connect(desk.database())) as database:
        try:
            return bool(database.execute("SELECT count(*) FROM session").fetchone()[0])
        except sqlite3.OperationalError:  # not even the tables are there
            return False


def continue_work(desk: Desk, server: ModelServer, *, told: list[str]) -> dict[str, Any]:
    """Go on as a person would, to the end of the work; return the result.
    The server checks every history.
    """
    before = len(server.requests)
    again = ("-c", "go on") if has_sessions(desk) else ("--title", "T", "work")
    ended = result(desk.run("run", "--auto", "--format", "json", *again))
    assert (ended["exitCode"], ended["reason"]) == (0, "done"), ended
    sent = server.requests[before].body.decode()
    is_note = '"tools"' not in sent  # what had filled the window is summarised first, calls as text
    for call_id in told:
        assert ("Interrupted: the call was started" if is_note else call_id) in sent
    assert not told or "Interrupted: the call was started" in sent
    return ended


def check_all(desk: Desk) -> None:
    """Check the database, the pairing of calls and results,
    that nothing was done twice and nothing left behind.
    """
    check_integrity(desk)
    assert list_calls_without_result(desk) == []
    tools = [part for part in read_parts(desk) if part["type"] == "tool"]
    calls = Counter(part["callID"] for part in tools)
    assert set(calls.values()) <= {1}, calls
    log = (desk.work / "log").read_text().split() if (desk.work / "log").exists() else []
    assert max(Counter(log).values(), default=1) == 1, log
    done = [
        part for part in tools if (part["tool"], part["state"]["status"]) == ("bash", "completed")
    ]
    assert {part["state"]["input"]["command"].split()[1] for part in done} <= set(log), (
        "what is told as done is done"
    )
    left = [path.name for path in desk.work.iterdir() if path.name.startswith(".codeloop-")]
    assert left == [], "what a killed write leaves beside its files is removed by the next run"
    for name, contents in ALLOWED_TEXTS.items():
        if (desk.work / name).exists():
            assert (desk.work / name).read_text() in contents, name


ALLOWED_TEXTS = {
    "a.txt": {"alpha\n", "beta\n", "gamma\n"},
    "b.txt": {"second\n", "patched\n"},
    "c.txt": {"x\ny\n", "z\ny\n"},
    "d.txt": {"four\n"},
}
"""What each file may hold: what it was before a step or after it, nothing in between."""
