"""Version 2 of the Agent Client Protocol, a draft, with `codeloop acp --protocol 2`."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tests.cli.editor import Editor, choose, editing, text
from tests.cli.program import Desk, bash, call, serving, steps
from tests.support.answers import Answer

OLD, NEW = "one\ntwo\nthree\n", "one\nTWO\nthree\n"


def states(editor: Editor) -> list[tuple[str, str | None]]:
    found = [each for each in editor.updates if each["sessionUpdate"] == "state_update"]
    return [(each["state"], each.get("stopReason")) for each in found]


def prompt(editor: Editor, session_id: str, words: str) -> str:
    """Prompt, and wait for the end of the turn; return the id of the message."""
    editor.updates.clear()
    stored = editor.ask("session/prompt", sessionId=session_id, prompt=text(words))
    editor.until(lambda: any(state == "idle" for state, _ in states(editor)))
    return stored["messageId"]


@pytest.mark.slow
def test_a_piece_of_work_is_shown_and_asked_about(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a.txt").write_text(OLD)
    todos = [
        {"content": "Change a.txt", "status": "in_progress", "priority": "high"},
        {"content": "Change b.txt", "status": "cancelled", "priority": "low"},
    ]
    answers = steps(
        call("todowrite", todos=todos),
        call("edit", filePath="a.txt", oldString="two", newString="TWO"),
        bash("cat a.txt; printf '\\033[31mred\\033[0m'; exit 3"),
        Answer(text="It says **TWO** now."),
    )
    with serving(answers) as model:
        desk.use(model, permission={"edit": "ask", "bash": "ask"})
        with editing(desk, choose("once"), "--protocol", "2") as editor:
            session = editor.begin(desk)
            session_id, path = session["sessionId"], str(desk.work / "a.txt")
            assert "modes" not in session
            assert [option["configId"] for option in session["configOptions"]] == [
                "mode",
                "model",
                "profile",
            ]
            message_id = prompt(editor, session_id, "Change it")
            assert editor.last("user_message") == {
                "sessionUpdate": "user_message",
                "messageId": message_id,
                "content": text("Change it"),
            }
            working = [("running", None), ("requires_action", None)] * 2 + [
                ("running", None),
                ("idle", "end_turn"),
            ]
            assert states(editor) == working
            assert [entry["status"] for entry in editor.last("plan_update")["plan"]["entries"]] == [
                "in_progress",
                "cancelled",
            ]
            (edit_asked, bash_asked) = [params for _, params in editor.asked]
            (diff,) = edit_asked["subject"]["toolCall"]["content"]
            assert diff["changes"] == [{"operation": "modify", "path": path, "fileType": "text"}]
            assert diff["patch"]["text"].startswith(
                f"diff --git {path} {path}\n--- {path}\n+++ {path}\n@@ "
            )
            assert bash_asked["subject"]["command"].startswith("cat a.txt")
            assert bash_asked["subject"]["cwd"] == str(desk.work)
            terminal = editor.calls("bash")["content"][0]["terminalId"]
            of_it = [each for each in editor.updates if each.get("terminalId") == terminal]
            assert of_it[0]["command"].startswith("cat a.txt")
            assert of_it[-1]["exitStatus"]["exitCode"] == 3
            shown = b"".join(b64decode(each["data"]) for each in of_it if "data" in each)
            assert shown == NEW.replace("\n", "\r\n").encode() + b"\033[31mred\033[0m"
            assert editor.texts() == "It says **TWO** now."
            _is_sent_again(desk, editor, session_id)
    assert (desk.work / "a.txt").read_text() == NEW


def _is_sent_again(desk: Desk, before: Editor, session_id: str) -> None:
    with editing(desk, choose("once"), "--protocol", "2") as editor:
        editor.greet()
        assert (
            editor.ask("session/load", sessionId=session_id, cwd=str(desk.work))["code"] == -32601
        )
        given = {"sessionId": session_id, "cwd": str(desk.work)}
        editor.ask("session/resume", **given)
        assert editor.texts() == ""
        editor.ask("session/resume", **given, replayFrom={"type": "start"})
        assert editor.texts() == before.texts()
        assert editor.calls("bash")["content"] == before.calls("bash")["content"]
        assert (
            editor.ask("session/resume", **given, replayFrom={"type": "middle"})["code"] == -32602
        )


@pytest.mark.slow
def test_a_turn_that_is_stopped_or_fails_says_so_in_its_state(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    asks, refused = call("write", filePath="a.txt", content="x"), Answer(status=401, body="{}")
    with serving(lambda got: refused if b"Again" in got.body else asks) as model:
        desk.use(model, permission={"edit": "ask"})
        with editing(desk, lambda *_: None, "--protocol", "2") as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Ask"))
            editor.until(lambda: editor.asked)
            editor.notify("session/cancel", sessionId=session_id)
            editor.until(lambda: ("idle", "cancelled") in states(editor))
            prompt(editor, session_id, "Again")
            failed: Any = editor.last("state_update")
            assert failed["stopReason"] == "error"
            assert failed["error"]["code"] == -32000
            prompt(editor, session_id, "/nothing")
            assert "There is no command /nothing" in editor.texts()
            assert states(editor)[-1] == ("idle", "end_turn")


@pytest.mark.slow
def test_the_draft_is_spoken_only_where_both_want_it_and_takes_batches(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with editing(desk) as editor:
        assert (
            editor.ask("initialize", protocolVersion=2, info={"name": "e", "version": "1"})[
                "protocolVersion"
            ]
            == 1
        )
    with editing(desk, lambda *_: None, "--protocol", "2") as editor:
        editor.version = 1
        assert editor.ask("initialize", protocolVersion=1)["protocolVersion"] == 1
        editor.version = 2
        later = editor.ask("initialize", protocolVersion=9, info={"name": "e", "version": "1"})
        assert later["protocolVersion"] == 2
        assert later["authMethods"] == []
        terminal = {"auth": {"terminal": {}}}
        assert editor.greet(**terminal)["authMethods"][0]["methodId"] == "login"
        assert editor.process.stdin
        rows = [
            {"jsonrpc": "2.0", "id": f"b{at}", "method": "session/list", "params": {}}
            for at in (1, 2)
        ]
        editor.process.stdin.write(json.dumps([*rows, 5]) + "\n")
        editor.process.stdin.flush()
        editor.until(lambda: editor.batches)
        (answers,) = editor.batches
        assert sorted(str(each["id"]) for each in answers) == ["None", "b1", "b2"]
        assert [each["error"]["code"] for each in answers if "error" in each] == [-32600]
        editor.process.stdin.write("[]\n")
        editor.process.stdin.flush()
        editor.until(lambda: None in editor.answers)
        assert editor.answers[None]["code"] == -32600
