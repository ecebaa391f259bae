"""A session of thousands of messages: shown, exported, forked, and gone on with (F29)."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.long_session import TURNS_AFTER_COMPACTION, fill_session
from tests.cli.program import Desk, bash, result, serving, steps
from tests.faults.stored_session import check_integrity
from tests.support.answers import Answer


@pytest.mark.parametrize("messages", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_long_session_is_shown_exported_forked_and_gone_on_with(
    tmp_path: Path, messages: int
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo new >> log"), Answer(text="One more."))) as server:
        desk.use(server)
        first = result(desk.run("run", "--auto", "--format", "json", "--title", "Long", "begin"))
        session_id = first["sessionID"]
        fill_session(desk.database(), session_id, messages)
        stored = count(desk, session_id)
        assert stored == messages + 2 * TURNS_AFTER_COMPACTION + 2 + 3
        exported = json.loads(desk.run("export", session_id).stdout)
        assert len(exported["messages"]) == stored
        assert f"prompt {messages // 2 - 1}" in desk.run("session", "show", session_id).stdout
        forked = desk.run("session", "fork", session_id)
        assert forked.returncode == 0, forked.stderr
        ended = result(desk.run("run", "--auto", "--format", "json", "-s", session_id, "go on"))
        assert (ended["exitCode"], ended["text"], ended["steps"]) == (0, "One more.", 2), ended
        sent = server.requests[-1].body.decode()
        assert "NOTE: this is what was done." in sent
        assert len(sent) < 200_000, "what was summarised is not sent"
    assert count(desk, session_id) == stored + 3
    assert (desk.work / "log").read_text() == "new\nnew\n"
    with closing(sqlite3.connect(desk.database())) as database:
        (copies,) = database.execute(
            "SELECT count(*) FROM message WHERE session_id != ?", (session_id,)
        ).fetchone()
    assert copies == stored
    check_integrity(desk)


def count(desk: Desk, session_id: str) -> int:
    """Return how many messages a session has."""
    with closing(sqlite3.connect(desk.database())) as database:
        sql = "SELECT count(*) FROM message WHERE session_id = ?"
        return database.execute(sql, (session_id,)).fetchone()[0]
