"""`codeloop run --schema`: stdout holds the JSON alone;
a schema or an answer that is wrong has its exit code.
"""

import json
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.support.answers import Answer, Call

SCHEMA = """{
  // what is asked of each file
  "type": "object",
  "properties": {
    "title": {"type": "string"},
    "files": {"type": "array", "items": {"type": "string", "pattern": "^[a-z.]+$"}}
  },
  "required": ["title", "files"]
}
"""
GOOD = {"title": "ä \u202e", "files": ["a.py"]}


@pytest.mark.slow
def test_stdout_is_the_json_and_nothing_else(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "schema.json").write_text(SCHEMA)
    (desk.work / "a.py").write_text("")
    wrong = call("StructuredOutput", title="t", files=["A"])
    right = Answer(text="Here it is.", calls=(Call("StructuredOutput", json.dumps(GOOD)),))
    recording = str(tmp_path / "answers.jsonl")
    with serving(steps(bash("ls"), wrong, right)) as server:
        desk.use(server)
        flags = ["--schema", "schema.json", "--record", recording]
        done = desk.run("run", *flags, "list the files")
        bodies = [request.json for request in server.requests if "tools" in request.json]
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == GOOD
    assert done.stdout == '{"title":"ä \\u202e","files":["a.py"]}\n'
    assert "Here it is." in done.stderr
    assert "`files[0]`: 'A' does not match" in done.stderr
    assert all(body["tool_choice"] == "required" for body in bodies)
    assert "`files[0]`: 'A' does not match" in bodies[-1]["messages"][-1]["content"]
    replayed = desk.run("run", "--schema", "schema.json", "--replay", recording, "list the files")
    assert (replayed.returncode, replayed.stdout) == (0, done.stdout), replayed.stderr
    ended = result(
        desk.run(
            "run", "--format", "json", "--schema", "schema.json", "--replay", recording, "list"
        )
    )
    assert ended["structured"] == GOOD


@pytest.mark.slow
def test_a_model_that_never_gives_it_is_exit_code_6(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "schema.json").write_text(SCHEMA)
    with serving(lambda _: Answer(text="I can't.")) as server:
        desk.use(server)
        done = desk.run("run", "--schema", "schema.json", "list the files")
        assert (done.returncode, done.stdout) == (6, "")
        assert "in 3 tries" in done.stderr
        assert "Traceback" not in done.stderr
        ended = result(
            desk.run("run", "--format", "json", "--schema", "schema.json", "list the files")
        )
    assert (ended["exitCode"], ended["reason"]) == (6, "error")
    assert "structured" not in ended


@pytest.mark.slow
def test_a_schema_that_is_wrong_is_refused_with_line_and_reason(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for text, said in (
        (
            '{"type": "object",\n "properties": {"a": {"type": "str"}}}',
            "schema.json:2:31: `properties.a.type`: 'str' is",
        ),
        ('{"type": "object",\n "properties": {"a": }}', "schema.json:2:"),
        (
            '{\n"$ref": "other.json"\n}',
            "schema.json:2:9: `$ref`: 'other.json' is not in the schema",
        ),
        ("[]", "schema.json:1:1: the whole: a schema is a JSON object"),
        ("", "schema.json:1:1: "),
        (None, "schema.json can't be read: No such file or directory."),
    ):
        path = desk.work / "schema.json"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        done = desk.run("run", "--schema", "schema.json", "go")
        assert done.returncode == 2
        assert said in done.stderr
        assert done.stdout == ""
