"""`codeloop run` repairs a real repository through a real model server;
its session is shown and gone on with.
"""

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Desk, Protocol, bash, call, events, result, serving, steps
from tests.support.answers import Answer, Call
from tests.support.stored_rows import open_rows

BROKEN = "def total(prices):\n    return sum(prices[1:])\n"
TEST = (
    "from shop import total\n\nassert total([1, 2, 3]) == 6, total([1, 2, 3])\nprint('all good')\n"
)
RUN_TEST = f"'{sys.executable}' test_shop.py"
REPAIR = (
    Answer(text="I run the test.", calls=(Call("bash", json.dumps({"command": RUN_TEST}), "c1"),)),
    Answer(
        reasoning="The slice drops the first price.",
        signature="signed",
        calls=(Call("read", json.dumps({"filePath": "shop.py"}), "c2"),),
    ),
    call(
        "edit",
        call_id="c3",
        filePath="shop.py",
        oldString="sum(prices[1:])",
        newString="sum(prices)",
    ),
    bash(RUN_TEST, "c4"),
    Answer(text="The first price was left out. It is fixed, and the test passes."),
)


def repository(folder: Path) -> Desk:
    desk = Desk(folder)
    (desk.work / "shop.py").write_text(BROKEN)
    (desk.work / "test_shop.py").write_text(TEST)
    desk.git("init", "-q")
    desk.git("add", ".")
    desk.git("commit", "-qm", "start")
    return desk


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_failing_test_is_repaired_and_shown_as_text(tmp_path: Path, protocol: Protocol) -> None:
    desk = repository(tmp_path)
    with serving(steps(*REPAIR)) as server:
        desk.use(server, protocol)
        done = desk.run("run", "fix", "the", "failing", "test")
    assert done.returncode == 0, done.stderr
    assert desk.git("diff", "--stat").strip().endswith("1 insertion(+), 1 deletion(-)")
    assert "return sum(prices)\n" in (desk.work / "shop.py").read_text()
    assert "I run the test." in done.stderr
    assert done.stdout == "The first price was left out. It is fixed, and the test passes.\n"
    assert "-    return sum(prices[1:])" in done.stderr
    assert "+    return sum(prices)" in done.stderr
    assert "✗ bash" in done.stderr
    assert "AssertionError: 5" in done.stderr
    assert "all good" in done.stderr
    assert "5 steps" in done.stderr.splitlines()[-1]
    assert "$0.0007" in done.stderr.splitlines()[-1]
    last = (
        server.requests[-1].json["messages"] if protocol == "openai" else server.requests[-1].body
    )
    assert "all good" in str(last)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_failing_test_is_repaired_and_told_as_json(tmp_path: Path, protocol: Protocol) -> None:
    desk = repository(tmp_path)
    with serving(steps(*REPAIR)) as server:
        desk.use(server, protocol)
        done = desk.run("run", "--format", "json", stdin="fix the failing test\n")
    ended = result(done)
    assert done.returncode == 0, done.stderr
    lines = events(done.stdout)
    assert [line["part"]["tool"] for line in lines if line["type"] == "tool_use"] == [
        "bash",
        "read",
        "edit",
        "bash",
    ]
    edit = next(
        line["part"]["state"]
        for line in lines
        if line["type"] == "tool_use" and line["part"]["tool"] == "edit"
    )
    assert "+    return sum(prices)" in edit["metadata"]["diff"]
    assert [line["part"]["text"] for line in lines if line["type"] == "reasoning"] == [
        "The slice drops the first price."
    ]
    assert {line["sessionID"] for line in lines} == {ended["sessionID"]}
    assert sum(line["type"] == "step_start" for line in lines) == ended["steps"] == 5
    assert ended["reason"] == "done"
    assert ended["text"].startswith("The first price")
    assert ended["tokens"]["input"] == 500
    assert ended["cost"] == pytest.approx(5 * (100 * 1e-6 + 20 * 2e-6))
    assert ended["denied"] == []


@pytest.mark.slow
def test_a_stored_session_is_shown_exported_gone_on_with_and_deleted(tmp_path: Path) -> None:
    desk = repository(tmp_path)
    with serving(steps(*REPAIR)) as server:
        desk.use(server, "anthropic")
        first = result(
            desk.run("run", "--format", "json", "--title", "Shop", "fix the failing test")
        )["sessionID"]
        other = result(desk.run("run", "--format", "json", "--title", "Other", "something else"))[
            "sessionID"
        ]
        again = result(desk.run("run", "--format", "json", "--session", first, "and now?"))
        assert again["sessionID"] == first
        server.requests.clear()
        latest = result(desk.run("run", "--format", "json", "--continue", "still there?"))
        assert latest["sessionID"] == first, "the session that changed last"
        sent = server.requests[-1].body.decode()
        assert (
            sent.index("fix the failing test") < sent.index("and now?") < sent.index("still there?")
        )
        assert latest["exitCode"] == 0, latest
    rows = json.loads(desk.run("session", "list", "--json").stdout)
    assert [(row["id"], row["title"]) for row in rows] == [(first, "Shop"), (other, "Other")]
    assert first in desk.run("session", "list").stdout.splitlines()[0]
    shown = desk.run("session", "show", first[-6:]).stdout
    assert (
        shown.index("> fix the failing test")
        < shown.index("+    return sum(prices)")
        < shown.index("> and now?")
    )
    exported = json.loads(desk.run("export", first).stdout)
    assert exported["info"]["id"] == first
    assert [each["info"]["role"] for each in exported["messages"]].count("user") == 3
    target = tmp_path / "session.json"
    assert desk.run("export", "-o", str(target)).returncode == 0
    assert json.loads(target.read_text())["info"]["id"] == first
    assert desk.run("session", "delete", first).returncode == 0
    assert desk.run("session", "show", first).returncode == 2
    assert [row["id"] for row in json.loads(desk.run("session", "list", "--json").stdout)] == [
        other
    ]
    with closing(open_rows(desk.database())) as database:
        for table in ("part", "message"):
            left = database.execute(f"SELECT count(*) FROM {table}").fetchone()
            of_other = database.execute(
                f"SELECT count(*) FROM stored_{table} WHERE session_id = ?", (other,)
            ).fetchone()
            assert left == of_other


@pytest.mark.slow
def test_two_runs_at_once_in_one_project_both_work(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("sleep 0.1; echo one >> log"), Answer(text="Done."))) as server:
        desk.use(server)
        running = [desk.start("run", "--format", "json", f"task {number}") for number in range(3)]
        ended = [child.communicate(timeout=60) for child in running]
    assert [child.returncode for child in running] == [0, 0, 0], ended
    ids = {events(out)[-1]["sessionID"] for out, _ in ended}
    assert len(ids) == 3
    assert (desk.work / "log").read_text() == "one\n" * 3
    for out, _ in ended:
        lines = events(out)
        assert {line["sessionID"] for line in lines} == {lines[-1]["sessionID"]}
    assert len(json.loads(desk.run("session", "list", "--json").stdout)) == 3


@pytest.mark.slow
def test_hidden_lines_are_counted_in_the_whole_output(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("seq 1 20000"), Answer(text="Counted."))) as server:
        desk.use(server)
        done = desk.run("run", "count")
    assert "… 19,994 lines above" in done.stderr
    assert "  20000\n" in done.stderr
