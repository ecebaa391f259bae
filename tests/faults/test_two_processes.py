"""Several processes on one project: nothing lost, nothing interleaved, one writer a session (F9,
F10).
"""

import json
import signal
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.program import (
    COMMAND,
    HANGING,
    UNCONFINED,
    Desk,
    bash,
    events,
    result,
    serving,
    steps,
)
from tests.faults.stored_session import check_integrity, list_calls_without_result, read_parts
from tests.faults.test_kill import kill, wait_for
from tests.support.answers import Answer
from tests.support.stored_rows import open_rows, read_feed

ROOT = Path(__file__).resolve().parents[2]
HELLO = Answer(text="Hello.")
WORKER = """
import sys, time
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from codeloop.store.store import Store
from tests.store.states import created, put, said, session, text, updated, user
store = Store(Path(sys.argv[1]))
name, count = sys.argv[2], int(sys.argv[3])
one = session(f"ses_{name}")
store.append(created(one))
message = user(one.id)
for number in range(count):
    part = text(message, f"{name} {number}")
    store.append(said(message), put(part), updated(session(one.id, title=f"{name} {number}", at=number)))
    print(number, flush=True)
view = store.read_conversation(one.id)
assert [part.text for part in view.entries[0].parts] == [f"{name} {number}" for number in range(count)]
"""
STOPPED = """
import sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from codeloop.store.store import Store
from codeloop.store.database import transaction
from tests.store.states import created, session
store = Store(Path(sys.argv[1]))
with store._db.transaction():
    store._db.execute("INSERT INTO todo (session_id, data) VALUES ('ses_half', '[]')")
    print("inside", flush=True)
    sys.stdin.readline()
    raise SystemExit(3)
"""


def start(desk: Desk, code: str, database: Path, name: str, count: int) -> subprocess.Popen[str]:
    argv = [COMMAND[0], "-c", code, str(database), name, str(count), str(ROOT)]
    options = desk.options()
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, **options, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("writes", [200, pytest.param(1_000, marks=pytest.mark.slow)])
def test_eight_processes_and_two_turns_write_at_once_and_one_is_stopped_inside(
    tmp_path: Path, writes: int
) -> None:
    desk = Desk(tmp_path)
    turn = steps(*(bash(f"echo {number} >> log", f"c{number}") for number in range(12)), HELLO)
    with serving(turn) as server:
        desk.use(server)
        assert result(desk.run("run", "--format", "json", "hello"))["exitCode"] == 0
        before = max(number for number, _, _ in read_feed(desk.database()))
        database = desk.database()
        workers = [start(desk, WORKER, database, f"w{number}", writes) for number in range(8)]
        stopped = start(desk, STOPPED, database, "half", 0)
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == "inside\n"
        stopped.send_signal(signal.SIGSTOP)
        runs = [
            desk.start("run", "--auto", "--format", "json", "--title", f"T{n}", "work")
            for n in range(2)
        ]
        time.sleep(1.0)
        stopped.send_signal(signal.SIGCONT)
        assert stopped.communicate("go\n", timeout=60)[1] == ""
        said = [worker.communicate(timeout=HANGING) for worker in workers]
        told = [run.communicate(timeout=HANGING) for run in runs]
        assert [
            (worker.returncode, err) for worker, (_, err) in zip(workers, said, strict=True)
        ] == [(0, "")] * 8
        assert [(run.returncode, err) for run, (_, err) in zip(runs, told, strict=True)] == [
            (0, "")
        ] * 2
    assert all(len(out.split()) == writes for out, _ in said)
    assert not any("locked" in text for pair in (*said, *told) for text in pair)
    check_integrity(desk)
    check_outbox(desk, before, writes)


def check_outbox(desk: Desk, before: int, writes: int) -> None:
    """Check that the events of each append stand together, all there,
    and nothing of what was rolled back.
    """
    rows = [row for row in read_feed(desk.database()) if row[0] > before]
    numbers = [number for number, _, _ in rows]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "no gap"
    kinds = ["message.updated", "message.part.updated", "session.updated"]
    mine = [
        row for row in rows if (row[1] or "").startswith("ses_w") and row[2] != "session.created"
    ]
    while (
        mine[0][2] != kinds[0] or mine[1][1] != mine[0][1]
    ):  # the oldest events are pruned, in the middle of an append
        del mine[0]
    for at in range(0, len(mine), 3):
        three = mine[at : at + 3]
        assert [row[2] for row in three] == kinds
        assert {(row[1], row[0] - number) for number, row in enumerate(three)} == {
            (three[0][1], three[0][0])
        }
    with closing(open_rows(desk.database())) as database:
        count = "SELECT session_id, count(*) FROM stored_part WHERE session_id LIKE 'ses_w_' GROUP BY session_id"
        assert dict(database.execute(count)) == {f"ses_w{number}": writes for number in range(8)}
        assert database.execute(
            "SELECT count(*) FROM todo WHERE session_id = 'ses_half'"
        ).fetchone() == (0,)


SLOW = "touch begun; sleep 60 & echo $! > pid; wait"


@pytest.mark.slow
def test_a_turn_of_another_process_is_stopped_by_the_name_of_its_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch begun; sleep 60"), HELLO)) as server:
        desk.use(server)
        first = desk.start("run", "--auto", "--title", "T", "work")
        wait_for((desk.work / "begun").exists)
        (row,) = json.loads(desk.run("status", "--json").stdout)
        stopped = replace(desk, limits={"session.STOP_ALL_TIME": 60_000}).run("stop", row["id"])
        assert (stopped.returncode, stopped.stdout.split()[:2]) == (0, ["stopped", row["id"]]), (
            stopped.stderr
        )
        first.communicate(timeout=60)
        assert first.returncode == 130
        assert not list((desk.home / "state").glob("**/*" + row["id"])), "the request is gone"
        server.answers = [HELLO]
        assert desk.run("run", "--session", row["id"], "go on").returncode == 0
        assert "Nothing was running" in desk.run("stop", row["id"]).stderr


def test_a_busy_session_refuses_a_second_process_and_keeps_what_it_does(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(
        steps(bash("touch begun; while [ ! -e go ]; do sleep 0.05; done"), HELLO)
    ) as server:
        desk.use(server)
        first = desk.start("run", "--auto", "--format", "json", "--title", "T", "work")
        wait_for((desk.work / "begun").exists)
        server.answers = [HELLO]
        stored = len(read_parts(desk))
        refused = desk.run("run", "--format", "json", "-c", "me too")
        ended = result(refused)
        assert (ended["exitCode"], ended["reason"]) == (1, "error")
        assert f"is being worked on by process {first.pid}" in ended["message"]
        assert "Wait until it is done, stop it (`codeloop stop " in ended["message"]
        assert len(read_parts(desk)) == stored, "what is refused is not stored"
        assert desk.run("run", "--format", "text", "-c", "me too").returncode == 1
        other = result(
            desk.run("run", "--format", "json", "--title", "T2", "--max-steps", "1", "hello")
        )
        assert other["reason"] in {"done", "limit"}, "another session is free"
        (desk.work / "go").touch()
        out, err = first.communicate(timeout=60)
        assert (first.returncode, err) == (0, "")
        session_id = events(out)[-1]["sessionID"]
        again = result(desk.run("run", "--format", "json", "-s", session_id, "now"))
        assert again["exitCode"] == 0
    with closing(open_rows(desk.database())) as database:
        said = [json.loads(row[0])["text"] for row in database.execute(PROMPTS, (session_id,))]
        assert database.execute("SELECT count(*) FROM lease").fetchone() == (0,)
    assert said == ["work", "now"]


PROMPTS = """
SELECT stored_part.data FROM stored_part JOIN stored_message ON stored_message.id = message_id
WHERE json_extract(stored_message.data, '$.role') = 'user' AND stored_part.session_id = ?
ORDER BY stored_part.created, stored_part.id"""


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_holder_that_is_killed_is_taken_over_from_at_once_a_stopped_one_is_not(
    tmp_path: Path, *, is_stopped: bool
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash(SLOW), HELLO)) as server:
        desk.use(server, **UNCONFINED)
        first = desk.start("run", "--auto", "--format", "json", "--title", "T", "work")
        wait_for((desk.work / "begun").exists)
        if is_stopped:
            first.send_signal(signal.SIGSTOP)
            assert result(desk.run("run", "--format", "json", "-c", "go on"))["exitCode"] == 1
        kill(first)
        server.answers = [HELLO]
        ended = result(desk.run("run", "--format", "json", "-c", "go on"))
        assert (ended["exitCode"], ended["text"]) == (0, "Hello."), ended
    assert list_calls_without_result(desk) == []
    check_integrity(desk)
