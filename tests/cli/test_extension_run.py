"""Tools and plugins of a project and of a person, in the real program."""

import importlib.util
import json
import py_compile
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, call, events, result, serving, steps
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest
from tests.support.javascript_extensions import find_host_command
from tests.support.sandbox_support import has_sandbox

WEATHER = '''
from pathlib import Path

Path("ran").touch()


async def weather(city: str, days: int = 1) -> str:
    """Tell the weather of a city.

    Args:
        city: Which one.
    """
    return f"sunny in {city} for {days}"


def read(filePath: str) -> str:
    """Say nothing of a file."""
    return "nothing to see"


def fails() -> str:
    raise ValueError("there is no rain")
'''
GUARD = """
from codeloop.extension import hook


@hook("tool.execute.before", policy=True)
def guard(input, output):
    if output["args"].get("command") == "touch forbidden":
        raise PermissionError("touch is not for you")


@hook("tool.execute.after")
def broken(input, output):
    raise RuntimeError("oh no")
"""


def project(desk: Desk, **files: str) -> None:
    """Write extensions of the project: `tool/NAME.py` as `tool__NAME`."""
    for name, text in files.items():
        file = desk.work / ".codeloop" / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def told(server: Any) -> list[str]:
    """Return what the model was told of its calls, in order."""
    return [
        str(each["content"])
        for each in server.requests[-1].json["messages"]
        if each["role"] == "tool"
    ]


@pytest.mark.slow
def test_a_project_s_tool_is_offered_called_and_takes_a_built_in_one_s_place(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    project(desk, tool__weather=WEATHER)
    script = [
        call("weather", city="Oslo"),
        call("read", filePath="x"),
        call("fails"),
        call("weather", days=3),
    ]
    with serving(steps(*script, Answer(text="Sunny."))) as model:
        desk.use(model, sandbox="off")
        done = desk.run("run", "--trust", "go")
        assert (done.returncode, done.stdout.strip()) == (0, "Sunny."), done.stderr
        offered = {
            each["function"]["name"]: each["function"] for each in model.requests[0].json["tools"]
        }
        again = desk.run("run", "--trust", "go")
        assert again.returncode == 0, again.stderr
    assert offered["weather"]["description"] == "Tell the weather of a city."
    assert offered["weather"]["parameters"]["properties"]["city"] == {
        "type": "string",
        "description": "Which one.",
    }
    assert offered["read"]["description"] == "Say nothing of a file."
    sunny, nothing, rain, wrong = told(model)
    assert sunny == "sunny in Oslo for 1"
    assert nothing == "nothing to see"
    assert "ValueError: there is no rain" in rain
    assert "missing required field `city`" in wrong
    for each in (done, again):
        assert (
            each.stderr.count(
                "The tool read of .codeloop/tool/weather.py takes the place of the built-in one."
            )
            == 1
        )


@pytest.mark.parametrize("arguments", [("run", "go"), ("debug", "config")])
def test_nothing_of_a_project_without_trust_runs(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    desk = Desk(tmp_path)
    project(
        desk,
        tool__weather=WEATHER,
        plugin__guard=WEATHER,
        tools__more=WEATHER,
        plugins__more=WEATHER,
    )
    (desk.work / "codeloop.json").write_text(json.dumps({"plugin": ["./other.py"]}))
    (desk.work / "other.py").write_text(WEATHER)
    with serving(steps(Answer(text="Hello."))) as model:
        desk.use(model, sandbox="off")
        done = desk.run(*arguments)
        assert done.returncode == 0, done.stderr
    assert not (desk.work / "ran").exists()
    if arguments[0] == "run":
        (line,) = [each for each in done.stderr.splitlines() if "not trusted" in each]
        for name in ("tool/weather.py", "plugin/guard.py", "tools/more.py", "plugins/more.py"):
            assert f".codeloop/{name}" in line
        assert "plugin" in line


@pytest.mark.slow
def test_a_policy_refuses_and_a_hook_that_fails_is_named_and_passed_over(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    project(desk, plugin__guard=GUARD)
    script = [
        call("bash", command="touch forbidden", description="a"),
        call("bash", command="echo x", description="b"),
    ]
    with serving(steps(*script, Answer(text="Done."))) as model:
        desk.use(model, sandbox="off", permission={"bash": "allow"})
        done = desk.run("run", "--trust", "go")
        assert done.returncode == 0, done.stderr
    refused, passed = told(model)
    assert "touch is not for you" in refused
    assert "guard.py" in refused
    assert "x" in passed
    assert not (desk.work / "forbidden").exists()
    assert done.stderr.count("guard.py failed at tool.execute.after") == 1, done.stderr
    assert "it raised RuntimeError: oh no" in done.stderr
    assert desk.run("trust").returncode == 0
    looked = [line.split() for line in desk.run("plugin", "debug", "guard").stdout.splitlines()]
    rows = {line[0]: line for line in looked if line and line[0].startswith("tool.execute")}
    assert [rows["tool.execute.before"][at] for at in (1, 6, 7)] == ["2", "0", "0"]
    assert [rows["tool.execute.after"][at] for at in (1, 6, 7)] == ["1", "1", "0"]


@pytest.mark.slow
def test_a_plugin_that_runs_leaves_its_project_trusted_and_its_source_counts(
    tmp_path: Path,
) -> None:
    """No compiled code is written beside it, and what somebody put there is not
    run in the place of it.
    """
    desk = Desk(tmp_path)
    project(desk, plugin__guard=GUARD)
    (desk.work / "codeloop.json").write_text('{"plugin": ["./own/plain.py"]}')
    plain, other = desk.work / "own" / "plain.py", tmp_path / "other.py"
    plain.parent.mkdir()
    plain.write_text(f"{GUARD}\nopen({str(desk.work / 'loaded')!r}, 'a').write('source')\n")
    other.write_text(f"open({str(desk.work / 'loaded')!r}, 'a').write('planted')\n")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    planted = importlib.util.cache_from_source(str(plain))
    py_compile.compile(str(other), planted, str(plain), invalidation_mode=unchecked)
    with serving([Answer(text="Done.")]) as model:
        desk.use(model, sandbox={"mode": "off", "extensions": False})
        assert desk.run("trust").returncode == 0
        desk.run("run", "go")
        assert "trust" not in desk.run("run", "go").stderr
    assert set((desk.work / "loaded").read_text().split("source")) == {""}


SMALL = """
from codeloop.extension import hook


@hook("experimental.provider.small_model")
def small(input, output):
    assert {"m", "tiny"} <= set(input["provider"]["models"])
    output["model"] = input["provider"]["models"].get("tiny", {"providerID": "local", "id": "none"})
"""


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [None, "local/own"])
def test_a_plugin_chooses_the_small_model_where_the_person_did_not(
    tmp_path: Path, chosen: str | None
) -> None:
    desk = Desk(tmp_path)
    plugin = desk.home / "config" / "plugin" / "small.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(SMALL)
    titled = threading.Event()

    def choose(received: ReceivedRequest) -> Answer:
        if b'"tools"' not in received.body:
            titled.set()
        return Answer(text="Done.", until=titled.is_set)  # no turn waits for its title

    with serving(choose) as model:
        models = {name: {"tool_call": True} for name in ("m", "tiny", "own")}
        row = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": model.url, "apiKey": "k"},
            "models": models,
        }
        small = {"small_model": chosen} if chosen is not None else {}
        desk.configure(provider={"local": row}, model="local/m", **small)
        done = desk.run("run", "go")
        assert done.returncode == 0, done.stderr
    titles = [each.json["model"] for each in model.requests if b'"tools"' not in each.body]
    assert titles == [(chosen or "local/tiny").partition("/")[2]]


@pytest.mark.slow
def test_a_tool_that_a_rule_denies_is_not_offered_to_a_subagent_of_an_allowed_one(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    project(desk, tool__weather=WEATHER)
    child = call("task", description="d", prompt="look", subagent_type="general")
    with serving(steps(child, Answer(text="Done."))) as model:
        desk.use(model, sandbox="off", permission={"weather": "deny"})
        done = desk.run("run", "--trust", "--format", "json", "go")
        assert result(done)["exitCode"] == 0, events(done.stdout)
        requests = [each.json for each in model.requests if b'"tools"' in each.body]
    names = [{tool["function"]["name"] for tool in each["tools"]} for each in requests]
    assert len(names) >= 3, "the subagent asked, too"
    assert all("weather" not in each and "fails" in each for each in names)


BAD = """
import os, time
from pathlib import Path


def kill() -> str:
    os.kill(os.getpid(), 9)


def noise() -> str:
    os.write(1, b'{"type":"result","id":1}\\n' * 20_000)
    return "quiet"


def huge() -> dict:
    return {"output": "y" * 20_000_000, "metadata": {"m": "z" * 1_000_000}}


def escape() -> str:
    try:
        Path(os.environ["HOME"], "escaped").write_text("x")
    except OSError as error:
        return f"kept: {error.strerror}"
    return "escaped"


def variables() -> str:
    return " ".join(sorted(os.environ))
"""
GARBAGE = """
from codeloop.extension import hook


@hook("tool.execute.after")
def garbage(input, output):
    return 3
"""
JUDGE = """
import time
from codeloop.extension import hook


@hook("tool.execute.before", policy=True)
def judge(input, output):
    time.sleep(600)
"""


@pytest.mark.slow
def test_extensions_that_misbehave_in_every_way_stop_nobody(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    project(desk, tool__bad=BAD, plugin__garbage=GARBAGE)
    script = [call("kill"), call("noise"), call("huge"), call("variables")]
    with serving(steps(*script, Answer(text="Done."))) as model:
        desk.use(model, sandbox="off")
        done = desk.run("run", "--trust", "go", ANTHROPIC_API_KEY="sk-ant-secret")
        assert (done.returncode, done.stdout.strip()) == (0, "Done."), done.stderr
    killed, noise, huge, variables = told(model)
    assert "kill of .codeloop/tool/bad.py failed" in killed
    assert "signal 9" in killed
    assert noise == "quiet"
    assert 1_000 < len(huge) < 100_000
    assert "[long line" in huge
    assert "HOME" in variables
    assert "KEY" not in variables
    assert (
        "garbage.py failed at tool.execute.after and was passed over: it answered int, not an object"
        in done.stderr
    )


@pytest.mark.slow
def test_a_policy_that_hangs_refuses(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    project(desk, tool__bad=BAD, plugin__judge=JUDGE)
    with serving(steps(call("noise"), Answer(text="Done."))) as model:
        desk.use(model, sandbox="off", hook_timeout=1500)
        done = desk.run("run", "--trust", "go")
        assert (done.returncode, done.stdout.strip()) == (0, "Done."), done.stderr
    (refused,) = told(model)
    assert ".codeloop/plugin/judge.py decides about tool.execute.before, and could not" in refused
    assert "did not answer in 1.5 s" in refused
    assert desk.run("trust").returncode == 0
    looked = [line.split() for line in desk.run("plugin", "debug", "judge").stdout.splitlines()]
    (row,) = (line for line in looked if line and line[0] == "tool.execute.before")
    assert [row[1], *row[-2:]] == ["1", "1", "1"]


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here")
def test_a_project_s_tool_runs_in_the_sandbox_of_commands(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    project(desk, tool__bad=BAD)
    with serving(steps(call("escape"), Answer(text="Done."))) as model:
        desk.use(model)
        done = desk.run("run", "--trust", "go")
        assert done.returncode == 0, done.stderr
    assert told(model)[0]
    assert not (tmp_path / "escaped").exists()


SIGNER = """
export const Signer = async ({ client }) => ({
  auth: { provider: "acme", methods: [{ type: "api", label: JSON.stringify({ client }) }] },
})
"""


def test_the_list_of_plugins_names_where_one_signs_in(tmp_path: Path) -> None:
    find_host_command()  # skips without a runtime
    desk = Desk(tmp_path)
    file = desk.home / "config" / "plugin" / "signer.js"
    file.parent.mkdir(parents=True)
    file.write_text(SIGNER)
    (row,) = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert (row["state"], row["sign_ins"]) == ("ok", ["acme"]), row["why"]
