"""`codeloop acp` as an editor starts it: over its stdin and stdout, which hold the protocol only."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self

import pytest

from tests.cli.program import Desk, bash, call, lives, serving, steps
from tests.support.answers import Answer

FORMS = {"elicitation": {"form": {}}, "session": {"notices": {}}}
OLD, NEW = "one\ntwo\nthree\n", "one\nTWO\nthree\n"


class Editor:
    """An editor: asks, answers what it is asked with `decide`, and keeps the updates."""

    def __init__(self, process: subprocess.Popen[str], decide: Callable[[str, Any], Any]) -> None:
        self.process = process
        self.decide = decide
        self.updates: list[dict[str, Any]] = []
        self.asked: list[tuple[str, Any]] = []
        self.cancelled: list[int] = []
        self.answers: dict[int | None, Any] = {}
        self._last = 0
        self._coming: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def send(self, method: str, **params: Any) -> int:
        """Send a request without waiting for its answer."""
        self._last += 1
        self.write({"id": self._last, "method": method, "params": params})
        return self._last

    def notify(self, method: str, **params: Any) -> None:
        self.write({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its result; an error as it is."""
        return self.answer_to(self.send(method, **params))

    def answer_to(self, number: int) -> Any:
        while number not in self.answers:
            self.take()
        return self.answers.pop(number)

    def until(self, holds: Callable[[], Any]) -> None:
        while not holds():
            self.take()

    def take(self) -> None:
        """Take the next message."""
        try:
            message = self._coming.get(timeout=60)
        except Empty:
            pytest.fail(f"nothing came for a minute; updates: {self.updates[-5:]}")
        assert message is not None, f"it ended: {self.process.poll()}"
        assert message["jsonrpc"] == "2.0"
        method = message.get("method")
        if method is None:
            self.answers[message["id"]] = message.get("result", message.get("error"))
        elif method == "session/update":
            self.updates.append(message["params"]["update"])
        elif method == "$/cancel_request":
            self.cancelled.append(message["params"]["requestId"])
        else:
            self.asked.append((method, message["params"]))
            if (result := self.decide(method, message["params"])) is not None:
                self.write({"id": message["id"], "result": result})

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def begin(self, desk: Desk, **capabilities: Any) -> dict[str, Any]:
        """Greet, and open a session in the project."""
        greeting = self.ask("initialize", protocolVersion=1, clientCapabilities=capabilities)
        assert greeting["agentInfo"]["name"] == "codeloop"
        opened = self.ask("session/new", cwd=str(desk.work), mcpServers=[])
        assert "sessionId" in opened, opened
        return opened

    def texts(self, kind: str = "agent_message_chunk") -> str:
        return "".join(each["content"]["text"] for each in self.updates if each["sessionUpdate"] == kind)

    def calls(self, tool: str) -> dict[str, Any]:
        """Return the last state of the call of a tool, merged as an editor does."""
        known: dict[str, dict[str, Any]] = {}
        for each in self.updates:
            if each["sessionUpdate"] in {"tool_call", "tool_call_update"}:
                known[each["toolCallId"]] = {**known.get(each["toolCallId"], {}), **each}
        return next(each for each in known.values() if each["name"] == tool)

    def last(self, kind: str) -> dict[str, Any]:
        return [each for each in self.updates if each["sessionUpdate"] == kind][-1]

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._coming.put(json.loads(line))
        self._coming.put(None)


def choose(option: str) -> Callable[[str, Any], Any]:
    """Return an editor's user who always chooses the same option."""

    def decide(method: str, _params: Any) -> Any:
        assert method == "session/request_permission"
        return {"outcome": {"outcome": "selected", "optionId": option}}

    return decide


@contextmanager
def editing(desk: Desk, decide: Callable[[str, Any], Any] = lambda *_: None, *flags: str) -> Generator[Editor]:
    pipe = subprocess.PIPE
    command = [*desk.command, "acp", *flags]
    process = subprocess.Popen(command, **desk.options(), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    with Editor(process, decide) as editor:
        yield editor


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


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
            assert editor.ask("session/prompt", sessionId=session["sessionId"], prompt=text("Change it")) == {
                "stopReason": "end_turn"
            }
            assert editor.texts() == "It says **TWO** now."
            assert editor.last("plan")["entries"] == [
                {"content": "Change a.txt", "priority": "high", "status": "in_progress"}
            ]
            (edit_asked, bash_asked) = [params for _, params in editor.asked]
            assert edit_asked["toolCall"]["toolCallId"] == editor.calls("edit")["toolCallId"]
            diff = next(each for each in edit_asked["toolCall"]["content"] if each["type"] == "diff")
            path = str(desk.work / "a.txt")
            assert diff == {"type": "diff", "path": path, "oldText": OLD.rstrip(), "newText": NEW.rstrip()}
            assert bash_asked["toolCall"]["title"] == "cat a.txt"
            assert bash_asked["toolCall"]["rawInput"]["command"] == "cat a.txt"
            assert [option["kind"] for option in bash_asked["options"]][-1] == "reject_once"
            done = editor.calls("bash")
            assert (done["status"], done["kind"], done["title"]) == ("completed", "execute", "cat a.txt")
            assert NEW in done["content"][0]["content"]["text"]
            assert editor.calls("edit")["locations"] == [{"path": path, "line": 2}]
            usage = editor.last("usage_update")
            assert usage["size"] == 200_000
            assert usage["cost"]["amount"] > 0
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
    with serving(steps(call("write", filePath="a.txt", content="x"), Answer(text="Well."))) as model:
        desk.use(model, permission={"edit": "ask"})
        with editing(desk, choose("reject")) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Write"))
            assert editor.calls("write")["status"] == "failed"
    assert not (desk.work / "a.txt").exists()


@pytest.mark.slow
def test_a_cancelled_prompt_stops_what_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo $$ > pid; exec sleep 60"))) as model:
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
    with serving(steps(bash("echo $$ > pid; exec sleep 60"))) as model:
        desk.use(model, sandbox="off", permission={"bash": "allow"})
        with editing(desk) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.send("session/prompt", sessionId=session_id, prompt=text("Wait"))
            pid = _pid(desk.work / "pid")
            assert editor.process.stdin
            editor.process.stdin.close()
            assert editor.process.wait(timeout=30) == 0
        assert not lives(pid)


@pytest.mark.slow
def test_bad_input_is_refused_in_words_and_the_next_request_is_answered(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
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
        assert "empty" in editor.ask("session/prompt", sessionId=session_id, prompt=text(" "))["message"]
        refused = editor.ask("session/prompt", sessionId=session_id, prompt=text("Hi"))
        assert refused.get("code") == -32000, refused
        assert "codeloop auth login" in refused["message"]
        assert "build" not in str(editor.ask("session/set_mode", sessionId=session_id, modeId="nobody").get("data"))


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
            chosen = editor.ask("session/set_config_option", sessionId=session_id, configId="profile", value="ask")
            assert {each["id"]: each["currentValue"] for each in chosen["configOptions"]}["profile"] == "ask"
            wrong = editor.ask("session/set_config_option", sessionId=session_id, configId="model", value="a/b")
            assert wrong["code"] == -32602
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Plan it"))
        assert b"plan" in model.requests[-1].body


@pytest.mark.slow
def test_the_models_question_is_a_form_where_the_editor_has_forms_and_a_choice_where_not(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    options = [{"label": "Half even", "description": "as banks"}, {"label": "Half up", "description": "as shops"}]
    question = call("question", questions=[{"question": "How?", "header": "Rounding", "options": options}])
    with serving(steps(question, Answer(text="So."), question, Answer(text="So."))) as model:
        desk.use(model)

        def fill_in(method: str, params: Any) -> Any:
            assert method == "elicitation/create"
            assert params["mode"] == "form"
            return {"action": "accept", "content": {"answer_1": "Half up"}}

        with editing(desk, fill_in) as editor:
            editor.ask("session/prompt", sessionId=editor.begin(desk, **FORMS)["sessionId"], prompt=text("Ask"))
        assert b"Half up" in model.requests[-1].body.rpartition(b'"role":"tool"')[2]
        with editing(desk, choose("0")) as editor:
            editor.ask("session/prompt", sessionId=editor.begin(desk)["sessionId"], prompt=text("Ask"))
            assert editor.asked[0][1]["toolCall"]["title"] == "How?"
        assert b"Half even" in model.requests[-1].body.rpartition(b'"role":"tool"')[2]


@pytest.mark.slow
def test_pictures_files_and_unsaved_text_reach_the_model(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "b.txt").write_text("on the disk\n")
    unsaved = {"uri": f"file://{desk.work}/a.txt", "text": "not saved yet\n", "mimeType": "text/plain"}
    with serving(steps(Answer(text="Seen."))) as model:
        desk.use(model)
        with editing(desk) as editor:
            prompt = [
                *text("Look at "),
                {"type": "resource_link", "name": "b.txt", "uri": f"file://{desk.work}/b.txt"},
                {"type": "resource", "resource": unsaved},
            ]
            editor.ask("session/prompt", sessionId=editor.begin(desk)["sessionId"], prompt=prompt)
        body = model.requests[0].body
    assert b"Look at @b.txt" in body
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
        steps(Answer(text="Hello."), call("write", filePath="a.txt", content=NEW), Answer(text="Done."))
    ) as model:
        desk.use(model)
        with editing(desk, choose("once")) as editor:
            session_id = editor.begin(desk)["sessionId"]
            editor.until(lambda: any(each["sessionUpdate"] == "available_commands_update" for each in editor.updates))
            names = [each["name"] for each in editor.last("available_commands_update")["availableCommands"]]
            assert {"greet", "compact", "undo", "redo"} <= set(names)
            editor.ask("session/prompt", sessionId=session_id, prompt=text("/greet Ann"))
            assert b"Greet Ann" in model.requests[0].body
            editor.ask("session/prompt", sessionId=session_id, prompt=text("/gret"))
            assert "There is no command /gret" in editor.texts()
            editor.ask("session/prompt", sessionId=session_id, prompt=text("/undo"))
            assert "Undone: “/greet Ann”" in editor.texts()


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
    held = {desk.work / "a.txt": "unsaved\n" + OLD, desk.work / "b.txt": "b\n", desk.work / "new.txt": "draft\n"}
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
            session_id = editor.begin(desk, fs={"readTextFile": True, "writeTextFile": True})["sessionId"]
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
            session_id = editor.begin(desk, fs={"readTextFile": True, "writeTextFile": True})["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Read a.txt"))
            assert editor.texts() == "Read."
        with editing(desk) as editor:
            session_id = editor.begin(desk, fs={"readTextFile": True})["sessionId"]
            editor.ask("session/prompt", sessionId=session_id, prompt=text("Read a.txt"))
            assert editor.asked == []  # what can't be saved is not asked for
    assert (desk.work / "a.txt").read_text() == OLD
