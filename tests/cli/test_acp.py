"""`codeloop acp` as an editor starts it: over its stdin and stdout,
which hold the protocol only.
"""

import base64
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.editor import Editor, choose, editing, text
from tests.cli.program import Desk, bash, call, last_work, lives, serving, steps
from tests.extend.mcp.world import PLAIN
from tests.support.answers import Answer, Call
from tests.support.http_connection import ReceivedRequest

FORMS = {"elicitation": {"form": {}}, "session": {"notices": {}}}
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
OLD, NEW = "one\ntwo\nthree\n", "one\nTWO\nthree\n"


@pytest.mark.slow
def test_a_piece_of_work_is_shown_and_asked_about(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a.txt").write_text(OLD)
    todos = [{"content": "Change a.txt", "status": "in_progress", "priority": "high"}]
    answers = steps(
        call("read", filePath="a.txt"),
        call("todowrite", todos=todos),
        call("edit", filePath="a.txt", oldString="two", newString="TWO"),
        bash("cat a.txt"),
        Answer(text="It says **TWO** now."),
    )
    with serving(answers) as model:
        desk.use(model, permission={"edit": "ask", "bash": "ask"})
        with editing(desk, choose("once")) as editor:
            session = editor.begin(desk)
            assert [mode["id"] for mode in session["modes"]["availableModes"]] == ["build", "plan"]
            assert editor.ask(
                "session/prompt", sessionId=session["sessionId"], prompt=text("Change it")
            ) == {"stopReason": "end_turn"}
            assert editor.texts() == "It says **TWO** now."
            assert editor.last("plan")["entries"] == [
                {"content": "Change a.txt", "priority": "high", "status": "in_progress"}
            ]
            (edit_asked, bash_asked) = [params for _, params in editor.asked]
            assert edit_asked["toolCall"]["toolCallId"] == editor.calls("edit")["toolCallId"]
            diff = next(
                each for each in edit_asked["toolCall"]["content"] if each["type"] == "diff"
            )
            path = str(desk.work / "a.txt")
            assert diff == {
                "type": "diff",
                "path": path,
                "oldText": OLD.rstrip(),
                "newText": NEW.rstrip(),
            }
            assert bash_asked["toolCall"]["title"] == "cat a.txt"
            assert bash_asked["toolCall"]["rawInput"]["command"] == "cat a.txt"
            assert [option["kind"] for option in bash_asked["options"]][-1] == "reject_once"
            done = editor.calls("bash")
            assert (done["status"], done["kind"], done["title"]) == (
                "completed",
                "execute",
                "cat a.txt",
            )
            assert NEW in done["content"][0]["content"]["text"]
            assert "rawOutput" not in done
            assert "two" in editor.calls("read")["rawOutput"]["output"]
            assert editor.calls("edit")["locations"] == [{"path": path, "line": 2}]
            usage = editor.last("usage_update")
            assert usage["size"] == 200_000
            assert usage["cost"]["amount"] > 0.00069, "the last step counts, too"
            _is_the_same_elsewhere(desk, editor, session["sessionId"])
    assert (desk.work / "a.txt").read_text() == NEW


def _is_the_same_elsewhere(desk: Desk, before: Editor, session_id: str) -> None:
    """A second process lists, loads, copies and deletes the session."""
    with editing(desk) as editor:
        editor.ask("initialize", protocolVersion=1)
        (row,) = editor.ask("session/list", cwd=str(desk.work))["sessions"]
        assert (row["sessionId"], row["cwd"]) == (session_id, str(desk.work))
        editor.ask("session/load", sessionId=session_id, cwd=str(desk.work), mcpServers=[])
        assert editor.texts("user_message_chunk") == "Change it"
        editor.until(
            lambda: any(each["sessionUpdate"] == "usage_update" for each in editor.updates)
        )
        assert editor.last("usage_update")["used"] == before.last("usage_update")["used"]
        assert editor.texts() == before.texts()
        assert editor.calls("edit")["content"] == before.calls("edit")["content"]
        copy = editor.ask("session/fork", sessionId=session_id, cwd=str(desk.work))["sessionId"]
        assert copy != session_id
        assert editor.ask("session/delete", sessionId=copy) == {}
        assert editor.ask("session/resume", sessionId=copy, cwd=str(desk.work))["code"] == -32002
        assert len(editor.ask("session/list")["sessions"]) == 1


@pytest.mark.slow
def test_a_refusal_is_the_users_and_nothing_is_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(
        steps(call("write", filePath="a.txt", content="x"), Answer(text="Well."))
    ) as model:
        desk.use(model, permission={"edit": "ask"})
        with editing(desk, choose("reject")) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Write"))
            assert editor.calls("write")["status"] == "failed"
    assert not (desk.work / "a.txt").exists()


@pytest.mark.slow
def test_a_cancelled_prompt_stops_what_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo $$ > pid; exec sleep 600"))) as model:
        desk.use(model, sandbox="off", permission={"bash": "allow"})
        with editing(desk) as editor:
            session_id = editor.begin(desk)["sessionId"]
            number = editor.send("session/prompt", sessionId=session_id, prompt=text("Wait"))
            pid = _pid(desk.work / "pid")
            editor.notify("session/cancel", sessionId=session_id)
            assert editor.answer_to(number) == {"stopReason": "cancelled"}
            assert not lives(pid)


@pytest.mark.slow
def test_a_cancelled_prompt_takes_its_question_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(call("write", filePath="a.txt", content="x"))) as model:
        desk.use(model, permission={"edit": "ask"})
        with editing(desk) as editor:
            session_id = editor.begin(desk)["sessionId"]
            number = editor.send("session/prompt", sessionId=session_id, prompt=text("Ask"))
            editor.until(lambda: editor.asked)
            editor.notify("session/cancel", sessionId=session_id)
            assert editor.answer_to(number) == {"stopReason": "cancelled"}
            editor.until(lambda: editor.cancelled)
    assert not (desk.work / "a.txt").exists()


@pytest.mark.slow
def test_an_editor_that_dies_leaves_nothing_running(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo $$ > pid; exec sleep 600"))) as model:
        desk.use(model, sandbox="off", permission={"bash": "allow"})
        with editing(desk) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.send("session/prompt", sessionId=session_id, prompt=text("Wait"))
            pid = _pid(desk.work / "pid")
            assert editor.process.stdin
            editor.process.stdin.close()
            assert editor.process.wait(timeout=60) == 0
        assert not lives(pid)


@pytest.mark.slow
def test_bad_input_is_refused_in_words_and_the_next_request_is_answered(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(enabled_providers=["anthropic"])  # no server of this machine
    with editing(desk) as editor:
        assert editor.process.stdin
        editor.process.stdin.write("no json\n")
        editor.process.stdin.flush()
        editor.until(lambda: None in editor.answers)
        assert editor.answers.pop(None)["code"] == -32700
        assert editor.ask("session/nothing")["code"] == -32601
        assert "cwd" in editor.ask("session/new", mcpServers=[])["message"]
        assert editor.ask("session/new", cwd="relative", mcpServers=[])["code"] == -32602
        missing = str(tmp_path / "missing")
        assert missing in editor.ask("session/new", cwd=missing, mcpServers=[])["message"]
        assert editor.ask("session/prompt", sessionId="ses_x", prompt=text("Hi"))["code"] == -32002
        session_id = editor.begin(desk)["sessionId"]
        assert (
            "empty"
            in editor.ask("session/prompt", sessionId=session_id, prompt=text(" "))["message"]
        )
        refused = editor.ask("session/prompt", sessionId=session_id, prompt=text("Hi"))
        assert refused.get("code") == -32000, refused
        assert "codeloop auth login" in refused["message"]
        assert "build" not in str(
            editor.ask("session/set_mode", sessionId=session_id, modeId="nobody").get("data")
        )


@pytest.mark.slow
def test_agent_model_and_profile_are_chosen_and_told_to_the_editor(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Planned."))) as model:
        desk.use(model)
        with editing(desk) as editor:
            session = editor.begin(desk)
            session_id = session["sessionId"]
            options = {option["id"]: option["currentValue"] for option in session["configOptions"]}
            assert options == {"mode": "build", "model": "local/m", "profile": "auto"}
            assert editor.ask("session/set_mode", sessionId=session_id, modeId="plan") == {}
            assert editor.last("current_mode_update")["currentModeId"] == "plan"
            chosen = editor.ask(
                "session/set_config_option", sessionId=session_id, configId="profile", value="ask"
            )
            assert {each["id"]: each["currentValue"] for each in chosen["configOptions"]}[
                "profile"
            ] == "ask"
            # By its former name.
            chosen = editor.ask(
                "session/set_config_option", sessionId=session_id, configId="profile", value="plan"
            )
            assert {each["id"]: each["currentValue"] for each in chosen["configOptions"]}[
                "profile"
            ] == "read-only"
            editor.ask(
                "session/set_config_option", sessionId=session_id, configId="profile", value="ask"
            )
            wrong = editor.ask(
                "session/set_config_option", sessionId=session_id, configId="model", value="a/b"
            )
            assert wrong["code"] == -32602
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Plan it"))
        assert b"plan" in last_work(model).body


@pytest.mark.slow
def test_the_models_question_is_a_form_where_the_editor_has_forms_and_a_choice_where_not(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    options = [
        {"label": "Half even", "description": "as banks"},
        {"label": "Half up", "description": "as shops"},
    ]
    question = call(
        "question", questions=[{"question": "How?", "header": "Rounding", "options": options}]
    )
    with serving(steps(question, Answer(text="So."), question, Answer(text="So."))) as model:
        desk.use(model)

        def fill_in(method: str, params: Any) -> Any:
            assert method == "elicitation/create"
            assert params["mode"] == "form"
            return {"action": "accept", "content": {"answer_1": "Half up"}}

        with editing(desk, fill_in) as editor:
            editor.ask(
                "session/prompt",
                sessionId=editor.begin(desk, **FORMS)["sessionId"],
                prompt=text("Ask"),
            )
        assert b"Half up" in last_work(model).body.rpartition(b'"role":"tool"')[2]
        with editing(desk, choose("0")) as editor:
            editor.ask(
                "session/prompt", sessionId=editor.begin(desk)["sessionId"], prompt=text("Ask")
            )
            assert editor.asked[0][1]["toolCall"]["title"] == "How?"
        assert b"Half even" in last_work(model).body.rpartition(b'"role":"tool"')[2]


@pytest.mark.slow
def test_several_questions_are_asked_one_after_the_other_where_the_editor_has_no_forms(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    options = [
        {"label": "Half even", "description": "as banks"},
        {"label": "Half up", "description": "as shops"},
    ]
    questions = [
        {"question": "How?", "header": "Rounding", "options": options},
        {
            "question": "Since when?",
            "header": "Date",
            "options": [{"label": "Now", "description": ""}],
        },
    ]
    with serving(steps(call("question", questions=questions), Answer(text="So."))) as model:
        desk.use(model)
        with editing(desk, choose("0")) as editor:
            editor.ask(
                "session/prompt", sessionId=editor.begin(desk)["sessionId"], prompt=text("Ask")
            )
            titles = [params["toolCall"]["title"] for _, params in editor.asked]
        results = last_work(model).body.rpartition(b'"role":"tool"')[2]
    assert titles == ["How? (1 of 2)", "Since when? (2 of 2)"]
    assert b"Half even" in results
    assert b"Now" in results


@pytest.mark.slow
def test_a_picture_that_a_tool_returns_is_shown_in_the_editor(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "dot.png").write_bytes(DOT)

    def answer(got: ReceivedRequest) -> Answer:
        # A picture goes to the model as a message of its own.
        has_seen = b"data:image/png" in got.body or b'"type":"image"' in got.body
        return (
            Answer(text="A dot.")
            if has_seen
            else Answer(calls=(Call("read", '{"filePath": "dot.png"}'),))
        )

    with serving(answer) as model:
        desk.use(model)
        with editing(desk) as editor:
            editor.ask(
                "session/prompt", sessionId=editor.begin(desk)["sessionId"], prompt=text("Look")
            )
            content = next(
                each["content"] for each in editor.updates if each.get("status") == "completed"
            )
    pictures = [each["content"] for each in content if each["content"]["type"] == "image"]
    assert [(each["mimeType"], base64.b64decode(each["data"])) for each in pictures] == [
        ("image/png", DOT)
    ]


@pytest.mark.slow
def test_pictures_files_and_unsaved_text_reach_the_model(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "b.txt").write_text("on the disk\n")
    unsaved = {
        "uri": f"file://{desk.work}/a.txt",
        "text": "not saved yet\n",
        "mimeType": "text/plain",
    }
    with serving(steps(Answer(text="Seen."))) as model:
        desk.use(model)
        with editing(desk) as editor:
            prompt = [
                *text("Look at "),
                {"type": "resource_link", "name": "b.txt", "uri": f"file://{desk.work}/b.txt"},
                {
                    "type": "resource_link",
                    "name": "gone.txt",
                    "uri": f"file://{desk.work}/gone.txt",
                },
                {"type": "resource", "resource": unsaved},
            ]
            editor.ask("session/prompt", sessionId=editor.begin(desk)["sessionId"], prompt=prompt)
        body = model.requests[0].body
    assert b"Look at @b.txt@gone.txt" in body
    assert b"on the disk" in body
    assert b"not saved yet" in body


@pytest.mark.slow
def test_commands_run_by_name_and_unknown_ones_are_said_to_be(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    folder = desk.home / "config" / "command"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("---\ndescription: Greets\n---\nGreet $ARGUMENTS\n")
    (desk.work / "a.txt").write_text(OLD)
    with serving(
        steps(
            Answer(text="Hello."),
            call("write", filePath="a.txt", content=NEW),
            Answer(text="Done."),
        )
    ) as model:
        desk.use(model)
        with editing(desk, choose("once")) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.until(
                lambda: any(
                    each["sessionUpdate"] == "available_commands_update" for each in editor.updates
                )
            )
            names = [
                each["name"]
                for each in editor.last("available_commands_update")["availableCommands"]
            ]
            assert {"greet", "compact", "undo", "redo"} <= set(names)
            editor.ask("session/prompt", sessionId=session_id, prompt=text("/greet Ann"))
            assert b"Greet Ann" in model.requests[0].body
            editor.ask("session/prompt", sessionId=session_id, prompt=text("/gret"))
            assert "There is no command /gret" in editor.texts()
            editor.ask("session/prompt", sessionId=session_id, prompt=text("/undo"))
            assert "Undone: “/greet Ann”" in editor.texts()


def test_the_arguments_of_a_command_may_begin_on_its_second_line(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    folder = desk.home / "config" / "command"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("---\ndescription: Greets\n---\nGreet $ARGUMENTS\n")
    with serving(steps(Answer(text="Hello."))) as model:
        desk.use(model)
        with editing(desk) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.until(
                lambda: any(
                    each["sessionUpdate"] == "available_commands_update" for each in editor.updates
                )
            )
            editor.ask("session/prompt", sessionId=session_id, prompt=text("/greet\nAnn and Bea"))
            assert editor.texts() == "Hello."
            assert b"Greet Ann and Bea" in model.requests[0].body


@pytest.mark.slow
def test_what_another_client_says_in_the_session_is_shown(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Well."))) as model:
        desk.use(model)
        with editing(desk) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("One"))
            done = desk.run("run", "--session", session_id, "Two")
            assert done.returncode == 0, done.stderr
            editor.until(lambda: editor.texts() == "Well.Well.")
            assert editor.texts("user_message_chunk") == "Two"


def _pid(path: Path) -> int:
    until = time.monotonic() + 60
    while not path.exists() or not path.read_text().strip():
        assert time.monotonic() < until
        time.sleep(0.01)
    return int(path.read_text())


@pytest.mark.slow
def test_what_the_editor_has_not_saved_is_what_is_read_and_edited(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a.txt").write_text(OLD)
    (desk.work / "b.txt").write_text("b\n")
    held = {
        desk.work / "a.txt": "unsaved\n" + OLD,
        desk.work / "b.txt": "b\n",
        desk.work / "new.txt": "draft\n",
    }
    wants: list[tuple[str, str]] = []

    def decide(method: str, params: Any) -> Any:
        path = Path(params["path"])
        wants.append((method, path.name))
        if method == "fs/write_text_file":
            path.write_text(params["content"])
            return {}
        return {"content": held[path]}

    looks = [
        call("read", call_id="1", filePath="a.txt"),
        call("read", call_id="2", filePath="b.txt"),
        call("read", call_id="3", filePath="new.txt"),
        call("edit", call_id="4", filePath="a.txt", oldString="two", newString="TWO"),
    ]
    with serving(steps(*looks, Answer(text="Done."))) as model:
        desk.use(model)
        with editing(desk, decide) as editor:
            session_id = editor.begin(desk, fs={"readTextFile": True, "writeTextFile": True})[
                "sessionId"
            ]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Edit a.txt"))
            assert "unsaved" in json.dumps(editor.calls("read")) + str(editor.updates)
    assert (desk.work / "a.txt").read_text() == "unsaved\n" + NEW
    assert (desk.work / "new.txt").read_text() == "draft\n"
    saved = [name for method, name in wants if method == "fs/write_text_file"]
    assert saved == ["a.txt", "new.txt"]  # b.txt is as on the disk


@pytest.mark.slow
def test_an_editor_that_can_not_say_what_it_holds_costs_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a.txt").write_text(OLD)
    looks = [call("read", call_id="1", filePath="a.txt"), Answer(text="Read.")]
    with serving(steps(*looks)) as model:
        desk.use(model)
        with editing(desk, lambda *_: {"content": 5}) as editor:
            session_id = editor.begin(desk, fs={"readTextFile": True, "writeTextFile": True})[
                "sessionId"
            ]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Read a.txt"))
            assert editor.texts() == "Read."
        with editing(desk) as editor:
            session_id = editor.begin(desk, fs={"readTextFile": True})["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Read a.txt"))
            assert editor.asked == []  # what can't be saved is not asked for
    assert (desk.work / "a.txt").read_text() == OLD


@pytest.mark.slow
def test_what_is_allowed_for_the_session_is_asked_once_there_and_again_in_the_next(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    turn = [bash("echo one"), bash("echo two"), Answer(text="Done.")]
    with serving(steps(*turn, *turn)) as model:
        desk.use(model, permission={"bash": "ask"})
        with editing(desk, choose("session")) as editor:
            for count in (1, 2):
                opened = (
                    editor.begin(desk)
                    if count == 1
                    else editor.ask("session/new", cwd=str(desk.work), mcpServers=[])
                )
                editor.ask("session/prompt", sessionId=opened["sessionId"], prompt=text("Run"))
                assert len(editor.asked) == 2 * count, "what is broad is asked about again"
            kinds = [(each["optionId"], each["kind"]) for each in editor.asked[0][1]["options"]]
            assert kinds == [
                ("once", "allow_once"),
                ("session", "allow_always"),
                ("always", "allow_always"),
                ("reject", "reject_once"),
            ]
            assert (
                editor.asked[0][1]["options"][1]["name"] == "Allow for this session: every `echo *`"
            )


@pytest.mark.slow
def test_output_is_a_terminal_where_the_editor_shows_those(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(
        steps(bash("echo one; printf '\\033[31mred\\033[0m\\033[2J'; exit 3"), Answer(text="Done."))
    ) as model:
        desk.use(model, permission={"bash": "ask"})
        with editing(desk, choose("once")) as editor:
            opened = editor.begin(desk, _meta={"terminal_output": True})
            editor.ask("session/prompt", sessionId=opened["sessionId"], prompt=text("Run"))
            first = next(each for each in editor.updates if each["sessionUpdate"] == "tool_call")
            terminal = first["toolCallId"]
            assert first["_meta"]["terminal_info"] == {
                "terminal_id": terminal,
                "cwd": str(desk.work),
            }
            assert first["content"] == [{"type": "terminal", "terminalId": terminal}]
            done = editor.calls("bash")
            # What the question showed in its place is gone.
            assert done["content"][0] == first["content"][0]
            meta = [
                each["_meta"]
                for each in editor.updates
                if each["sessionUpdate"] == "tool_call_update" and "_meta" in each
            ]
            shown = "".join(
                each["terminal_output"]["data"] for each in meta if "terminal_output" in each
            )
            assert shown == "one\r\n\x1b[31mred\x1b[0m"
            assert meta[-1]["terminal_exit"] == {
                "terminal_id": terminal,
                "exit_code": 3,
                "signal": None,
            }


@pytest.mark.slow
def test_further_roots_are_reached_without_a_question_until_they_are_left_out(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("beside\n")
    looks = [
        call("read", call_id="1", filePath=str(other / "b.txt")),
        call("write", call_id="2", filePath=str(other / "c.txt"), content="new\n"),
        bash(f"cat {other}/b.txt > {other}/d.txt; cat {other}/d.txt", call_id="3"),
        Answer(text="Done."),
    ]
    with serving(steps(*looks)) as model:
        desk.use(model)
        with editing(desk, choose("reject")) as editor:
            editor.greet()
            given = {"cwd": str(desk.work), "mcpServers": []}
            session_id = editor.ask("session/new", **given, additionalDirectories=[str(other)])[
                "sessionId"
            ]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Look"))
            assert editor.asked == []
            assert (other / "c.txt").read_text() == "new\n"
            assert (other / "d.txt").read_text() == "beside\n"
            (row,) = editor.ask("session/list", cwd=str(desk.work))["sessions"]
            assert row["additionalDirectories"] == [str(other)]
            # Nor does a terminal that continues the session, or a copy of it, find them open.
            for words in (("--session", session_id), ("--session", session_id, "--fork")):
                assert desk.run("run", *words, "Look there").returncode == 5
            editor.ask("session/resume", **given, sessionId=session_id)
            rows = editor.ask("session/list", cwd=str(desk.work))["sessions"]
            assert [
                "additionalDirectories" in row for row in rows if row["sessionId"] == session_id
            ] == [False]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Look again"))
            assert editor.asked != []


@pytest.mark.slow
def test_a_servers_page_is_opened_by_the_editor_and_a_summary_is_no_answer(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    able = {"elicitation": {"form": {}, "url": {}}, "session": {"compaction": {}}}
    server = {
        "name": "plain",
        "command": sys.executable,
        "args": [str(PLAIN), str(tmp_path)],
        "env": [],
    }
    visit = call("plain_visit")

    def answer(got: ReceivedRequest) -> Answer:
        if b'"tools"' not in got.body:
            return Answer(text="A summary.")
        return Answer(text="Visited.") if b'"role":"tool"' in got.body else visit

    with serving(answer) as model:
        desk.use(model, permission={"*": "allow"})

        def open_page(method: str, params: Any) -> Any:
            if method == "session/request_permission":
                # The server is started with a folder, which it may want to write to.
                return {"outcome": {"outcome": "selected", "optionId": "once"}}
            assert (method, params["mode"], params["url"]) == (
                "elicitation/create",
                "url",
                "https://x.example/a",
            )
            return {"action": "accept"}

        with editing(desk, open_page) as editor:
            editor.greet(**able)
            session_id = editor.ask("session/new", cwd=str(desk.work), mcpServers=[server])[
                "sessionId"
            ]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Visit"))
            assert len(editor.asked) == 2
            assert "accept" in editor.calls("plain_visit")["content"][0]["content"]["text"]
            editor.updates.clear()
            editor.ask("session/prompt", sessionId=session_id, prompt=text("/compact"))
            kinds = [each["sessionUpdate"] for each in editor.updates if "compactionId" in each]
            assert kinds == ["compaction_update", "compaction_summary_chunk", "compaction_update"]
            assert "A summary." not in editor.texts()
            editor.updates.clear()
            editor.ask("session/load", sessionId=session_id, cwd=str(desk.work), mcpServers=[])
            assert [each.get("status") for each in editor.updates if "compactionId" in each] == [
                "in_progress",
                None,
                "completed",
            ]


@pytest.mark.slow
def test_signing_out_forgets_what_is_stored(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(enabled_providers=["anthropic"])  # no server of this machine
    assert (
        desk.run(
            "auth", "login", "anthropic", "--key-stdin", stdin="sk-ant-0123456789abcdef\n"
        ).returncode
        == 0
    )
    with editing(desk) as editor:
        assert editor.greet()["agentCapabilities"]["auth"] == {"logout": {}}
        opened = editor.ask("session/new", cwd=str(desk.work), mcpServers=[])
        assert any(option["id"] == "model" for option in opened["configOptions"])
        assert editor.ask("logout") == {}
        refused = editor.ask("session/prompt", sessionId=opened["sessionId"], prompt=text("Hi"))
        assert refused["code"] == -32000
    assert "anthropic" not in desk.run("auth", "list").stdout


@pytest.mark.slow
def test_what_leaves_the_sandbox_runs_in_the_editors_terminal_where_that_is_wanted(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    wants: list[tuple[str, Any]] = []

    def decide(method: str, params: Any) -> Any:
        wants.append((method, params))
        if method == "session/request_permission":
            return {"outcome": {"outcome": "selected", "optionId": "once"}}
        done = {"exitCode": 3, "signal": None}
        return {
            "terminal/create": {"terminalId": "t1"},
            "terminal/wait_for_exit": done,
            "terminal/output": {
                "output": "in the editor\n",
                "truncated": False,
                "exitStatus": done,
            },
        }.get(method, {})

    def leaving(command: str, number: str) -> Answer:
        return call(
            "bash", call_id=number, command=command, description="x", outside="It needs a key."
        )

    runs = [bash("echo inside", "1"), leaving("git push", "2"), Answer(text="Done.")]
    with serving(steps(*runs)) as model:
        desk.use(model, permission={"bash": "allow", "sandbox": "ask"})
        with editing(desk, decide, "--editor-terminal") as editor:
            session_id = editor.begin(desk, terminal=True)["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Push"))
            (asked, created, *_) = [params for _, params in wants]
            assert "outside the sandbox" in json.dumps(asked["toolCall"]["content"])
            assert [method for method, _ in wants][1] == "terminal/create"
            assert (created["cwd"], created["args"][-2:]) == (str(desk.work), ["-c", "git push"])
            assert wants[-1] == ("terminal/release", {"sessionId": session_id, "terminalId": "t1"})
            assert editor.calls("bash", 1)["content"][0] == {"type": "terminal", "terminalId": "t1"}
            told = last_work(model).json["messages"][-1]["content"]
            assert "in the editor" in told
            assert "exit code 3" in told
            editor.updates.clear()
        with editing(desk, decide, "--editor-terminal") as editor:
            editor.greet(terminal=True)
            editor.ask("session/load", sessionId=session_id, cwd=str(desk.work), mcpServers=[])
            # This editor has no terminal t1.
            assert "in the editor" in json.dumps(editor.calls("bash", 1)["content"])
        wants.clear()
        with editing(desk, decide) as editor:
            session_id = editor.begin(desk, terminal=True)["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Push"))
            assert not any(method.startswith("terminal/") for method, _ in wants)


@pytest.mark.slow
def test_always_begins_with_the_file_and_what_is_broad_is_asked_about_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    offers: list[list[str]] = []
    chosen = iter(("always", "always:1", "always:1"))

    def decide(_method: str, params: Any) -> Any:
        offers.append([option["name"] for option in params["options"]])
        return {"outcome": {"outcome": "selected", "optionId": next(chosen)}}

    writes = [
        call("write", call_id=name, filePath=name, content="x\n")
        for name in ("a.py", "b.py", "c.py")
    ]
    with serving(steps(*writes, Answer(text="Done."))) as model:
        desk.use(model, permission={"edit": "ask"})
        with editing(desk, decide) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Write"))
    first, second, sure = offers
    assert first[1:4] == [
        "Allow for this session: changing `a.py`",
        "Allow always: changing `a.py` in this project",
        "Allow always: every file change in this project",
    ]
    assert second[2] == "Allow always: changing `b.py` in this project", (
        "the first one was for its file"
    )
    assert sure[1:] == ["Yes, that broad: always every file change in this project", "Reject"]
    assert (desk.work / "c.py").exists()
