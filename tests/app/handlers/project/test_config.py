"""The configuration over the operations: what is shown holds no secret,
what is changed lands in the project's file.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from codeloop.app.models.open_models import SingleModel
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient
from codeloop.config.config_text import NotEditable, edit_text, find_changed_settings
from codeloop.config.forms.rules_form import convert_rules_to_config
from codeloop.model.testing.replay import ScriptedModel
from codeloop.schema.api.config import CONFIG_GET, CONFIG_UPDATE, UpdateConfig
from codeloop.schema.api.mcp import MCP_STATUS
from codeloop.schema.api.providers import CONFIG_PROVIDERS, PROVIDER_LIST
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES, CONFIG_DEPTH
from codeloop.schema.operation import AnyOperation, NoArguments
from codeloop.schema.wire import JSON
from tests.server.support.serving import served
from tests.support.scripted_project import make_startup


class Opened:
    """An open project and its files."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.work = project.settings.project_root.root
        self.client = LocalClient(project)

    @property
    def file(self) -> Path:
        return self.work / "codeloop.json"

    async def shown(self) -> Any:
        return await self.client.call(CONFIG_GET, NoArguments())

    async def change(self, **settings: Any) -> Any:
        return await self.client.call(CONFIG_UPDATE, UpdateConfig(config=settings))

    async def refused(self, **settings: Any) -> str:
        before = self.file.read_bytes() if self.file.exists() else None
        with pytest.raises(CodeloopError) as raised:
            await self.change(**settings)
        assert (self.file.read_bytes() if self.file.exists() else None) == before
        return str(raised.value)


@asynccontextmanager
async def opened(
    tmp_path: Path,
    config: Any = None,
    *,
    trust: bool = True,
    own: Any = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> AsyncGenerator[Opened]:
    """Open a project with a configuration file of its own, and one of the person's."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir(exist_ok=True)
    if config is not None:
        (work / "codeloop.json").write_text(
            config if isinstance(config, str) else json.dumps(config)
        )
    if own is not None:
        (home / "config").mkdir(parents=True)
        (home / "config" / "codeloop.json").write_text(json.dumps(own))
    plain = make_startup(home, work)
    begin = Startup(
        directory=work, environment={**plain.environment, "USER": "ann", **variables}, trust=trust
    )
    project = await open_project(begin, SingleModel(ScriptedModel([])))
    try:
        yield Opened(project)
    finally:
        await project.close()


def key(place: str) -> str:
    return f"sk-{place}-0123456789abcdef"


SECRETS: dict[str, Any] = {
    "provider": {
        "acme": {
            "name": "Acme",
            "api": f"https://user:{key('api')}@acme.example/v1",
            "options": {
                "apiKey": key("apikey"),
                "baseURL": f"https://acme.example/v1?key={key('query')}",
                "headers": {"authorization": f"Bearer {key('header')}", "x-team": key("team")},
                "accessToken": key("token"),
                "nested": {"clientSecret": key("nested")},
                "extra": key("extra"),
            },
            "models": {
                "m": {
                    "headers": {"x-key": key("modelheader")},
                    "options": {
                        "password": key("modeloption"),
                        "deep": [{"apiKey": key("deep")}],
                        "effort": "high",
                    },
                }
            },
        },
        "late": {
            "options": {"baseURL": "https://late.example/v1", "apiKey": "{env:LATE}"},
            "models": {"x": {}},
        },
    },
    "mcp": {
        "local": {
            "type": "local",
            "command": ["npx", "--token", key("argument")],
            "environment": {"API": key("environment")},
        },
        "remote": {
            "type": "remote",
            "url": f"https://u:{key('userinfo')}@mcp.example/x?token={key('mcpquery')}",
            "headers": {"authorization": key("mcpheader")},
            "oauth": {"clientId": "a", "clientSecret": key("oauth")},
            "enabled": False,
        },
    },
    "search": {"provider": "tavily", "apiKey": key("search")},
    "lsp": {"mine": {"command": ["lsp"], "extensions": [".x"], "env": {"KEY": key("lsp")}}},
    "formatter": {"mine": {"command": ["fmt"], "environment": {"KEY": key("formatter")}}},
    "plugin": [["a-plugin", {"apiKey": key("plugin")}], f"git+https://{key('git')}@host.example/p"],
    "agent": {
        "mine": {
            "prompt": "{file:prompt.txt}",
            "apiToken": key("agent"),
            "options": {"secret": key("secret")},
        }
    },
    "command": {
        "curl": {"template": f"curl -H {key('header')} {{env:INSIDE}} $1"},
    },
    "experimental": {"credentials": {"x": key("experimental")}},
    "skills": {"urls": [f"https://skills.example/?key={key('skills')}"]},
}


@pytest.mark.slow
async def test_no_key_is_in_any_answer_wherever_it_stands(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "prompt.txt").write_text(f"Say {key('file')}.")
    variables = {"LATE": key("late"), "INSIDE": key("inside"), "OPENAI_API_KEY": key("openai")}
    async with opened(tmp_path, SECRETS, variables=variables) as it:
        operations: list[AnyOperation] = [CONFIG_GET, CONFIG_PROVIDERS, PROVIDER_LIST, MCP_STATUS]
        for operation in operations:
            answer = msgspec.json.encode(await it.client.call(operation, NoArguments())).decode()
            assert "sk-" not in answer, operation.id
            assert "0123456789abcdef" not in answer, operation.id
        shown = await it.shown()
    assert shown["provider"]["acme"]["options"] == {"baseURL": "https://acme.example/v1"}
    assert shown["provider"]["acme"]["models"]["m"]["options"] == {"deep": [{}], "effort": "high"}
    assert shown["mcp"]["local"] == {"type": "local", "command": ["npx"]}
    assert shown["mcp"]["remote"] == {
        "type": "remote",
        "url": "https://mcp.example/x",
        "enabled": False,
    }
    assert shown["command"]["curl"]["template"] == "curl -H *** {env:INSIDE} $1"
    assert shown["agent"]["mine"]["prompt"] == "{file:prompt.txt}"


async def test_the_merged_configuration_has_the_form_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "work" / ".codeloop" / "command").mkdir(parents=True)
    (tmp_path / "work" / ".codeloop" / "command" / "hi.md").write_text("Say hi to $1.")
    config = {
        "model": "acme/m",
        "logLevel": "debug",
        "share": "disabled",
        "permission": {"bash": {"*": "ask", "git *": "allow"}, "edit": "deny"},
        "agent": {"mine": {"mode": "subagent", "steps": 3, "permission": {"edit": "ask"}}},
        "provider": {
            "acme": {"models": {"m": {"limit": {"context": 5}, "cost": {"input": 1, "output": 2}}}}
        },
    }
    async with opened(tmp_path, config, own={"instructions": ["A.md"]}) as it:
        assert await it.shown() == {
            "username": "ann",
            "model": "acme/m",
            "logLevel": "DEBUG",
            "share": "disabled",
            "instructions": ["A.md"],
            "permission": {"bash": {"*": "ask", "git *": "allow"}, "edit": "deny"},
            "agent": {"mine": {"mode": "subagent", "steps": 3, "permission": {"edit": "ask"}}},
            "command": {"hi": {"template": "Say hi to $1."}},
            "provider": {"acme": {"models": {"m": {"cost": {"input": 1.0, "output": 2.0}}}}},
            "mode": {},
            "plugin": [],
        }


@pytest.mark.parametrize(
    ("rules", "form"),
    [
        ([("*", "*", "ask")], {"*": "ask"}),
        ([("bash", "ls", "ask"), ("bash", "*", "deny")], {"bash": "deny"}),
        (
            [("bash", "*", "ask"), ("*", "*", "deny"), ("bash", "ls", "allow")],
            {"*": "deny", "bash": {"ls": "allow"}},
        ),
        ([("bash", "a", "ask"), ("bash", "a", "allow")], {"bash": {"a": "allow"}}),
    ],
)
def test_rules_become_what_a_file_says_without_what_no_longer_counts(
    rules: list[tuple[str, str, str]], form: object
) -> None:
    named: list[Any] = [
        dict(zip(("permission", "pattern", "action"), rule, strict=True)) for rule in rules
    ]
    assert convert_rules_to_config(named) == form


async def test_a_change_is_written_into_the_projects_own_file_and_holds(tmp_path: Path) -> None:
    async with opened(tmp_path) as it:
        answer = await it.change(model="a/b", agent={"mine": {"prompt": "Hello."}})
        assert (answer["model"], answer["agent"]) == ("a/b", {"mine": {"prompt": "Hello."}})
        assert json.loads(it.file.read_text()) == {
            "model": "a/b",
            "agent": {"mine": {"prompt": "Hello."}},
        }


async def test_a_change_leaves_everything_else_in_the_file_as_it_was(tmp_path: Path) -> None:
    text = '{\n\t"model": "a/b",\n\t"theme": "dark",\n\t"provider": {"x": {"options": {"apiKey": "k", "n": 1.50}}}\n}\n'
    async with opened(tmp_path, text) as it:
        it.file.chmod(0o640)
        await it.change(provider={"x": {"name": "X"}}, share="disabled")
        assert it.file.stat().st_mode & 0o777 == 0o640
        assert json.loads(it.file.read_text()) == {
            "model": "a/b",
            "theme": "dark",
            "provider": {"x": {"options": {"apiKey": "k", "n": 1.5}, "name": "X"}},
            "share": "disabled",
        }
        assert it.file.read_text().startswith('{\n\t"model"')
        assert sorted(path.name for path in it.work.iterdir()) == ["codeloop.json"]


async def test_the_file_that_counts_last_is_changed(tmp_path: Path) -> None:
    async with opened(tmp_path) as it:
        (it.work / "opencode.json").write_text('{"model": "a/b"}')
        (it.work / "opencode.jsonc").write_text('{"model": "c/d"}')
        await it.change(model="e/f")
        assert json.loads((it.work / "opencode.jsonc").read_text()) == {"model": "e/f"}
        assert json.loads((it.work / "opencode.json").read_text()) == {"model": "a/b"}


async def test_sending_back_what_was_read_changes_nothing(tmp_path: Path) -> None:
    own = {
        "provider": {"mine": {"options": {"apiKey": key("own"), "timeout": 5}}},
        "small_model": "a/b",
    }
    async with opened(tmp_path, own=own) as it:
        shown = await it.shown()
        assert await it.change(**shown) == shown
        assert not it.file.exists()
        await it.change(**{**shown, "model": "c/d"})
        assert json.loads(it.file.read_text()) == {"model": "c/d"}


async def test_null_takes_a_setting_out(tmp_path: Path) -> None:
    async with opened(
        tmp_path, {"model": "a/b", "agent": {"mine": {"prompt": "p", "steps": 3}}}
    ) as it:
        answer = await it.change(model=None, agent={"mine": {"steps": None}})
        assert "model" not in answer
        assert json.loads(it.file.read_text()) == {"agent": {"mine": {"prompt": "p"}}}


async def test_a_changed_rule_comes_last_so_that_it_counts(tmp_path: Path) -> None:
    async with opened(
        tmp_path, {"permission": {"bash": {"git *": "allow", "*": "ask"}, "*": "allow"}}
    ) as it:
        await it.change(permission={"bash": {"git *": "deny"}})
        written = json.loads(it.file.read_text())["permission"]
        assert list(written) == ["*", "bash"]
        assert list(written["bash"].items()) == [("*", "ask"), ("git *", "deny")]


def test_a_single_rule_for_everything_stays_when_another_is_added() -> None:
    after = json.loads(edit_text('{"permission": "ask"}', {"permission": {"bash": "deny"}}))
    assert after == {"permission": {"*": "ask", "bash": "deny"}}


def test_what_is_so_already_is_no_news() -> None:
    now = {"a": {"b": 1, "c": [1]}, "permission": {"x": "ask", "y": "deny"}}
    assert find_changed_settings(
        {"a": {"b": 1, "c": [1, 2]}, "permission": {"x": "ask"}, "d": {}}, now
    ) == {
        "a": {"c": [1, 2]},
        "permission": {"x": "ask"},
        "d": {},
    }


def test_what_is_not_shown_of_an_entry_can_be_removed() -> None:
    shown = {"mcp": {"own": {"type": "local", "command": ["a"]}}}
    change = {"mcp": {"own": {"type": "remote", "url": "u", "command": None, "environment": None}}}
    assert find_changed_settings(change, shown) == change
    assert find_changed_settings({"model": None}, shown) == {}


@pytest.mark.parametrize("comment", ["", "// mine\n"])
@pytest.mark.parametrize(
    "held",
    [
        {"mcpServers": {"docs": {"command": "npx", "args": ["-y"]}}},
        {"mcp": {"mcpServers": {"docs": {"url": "http://127.0.0.1:9/"}}}},
        {"mcp": {"docs": {"command": "npx", "args": ["-y"]}}},
    ],
)
def test_a_server_in_another_form_is_not_shadowed_by_a_part_of_it(held: JSON, comment: str) -> None:
    text = comment + json.dumps(held)
    with pytest.raises(NotEditable, match="docs is in the form of other programs"):
        edit_text(text, {"mcp": {"docs": {"environment": {"A": "1"}}}})
    if "docs" in held.get("mcp", {}):
        assert "docs" not in edit_text(text, {"mcp": {"docs": None}})
    else:
        with pytest.raises(NotEditable, match="docs is in the form of other programs"):
            edit_text(text, {"mcp": {"docs": None}})
    entry = {"type": "remote", "url": "http://127.0.0.1:9/"}
    assert '"new"' in edit_text(text, {"mcp": {"new": entry}})


def test_another_order_of_rules_is_a_change_and_of_other_settings_is_none() -> None:
    now = {
        "permission": {"bash": {"*": "ask", "git *": "allow"}},
        "server": {"port": 1, "hostname": "a"},
    }
    stricter = {"bash": {"git *": "allow", "*": "ask"}}
    change = find_changed_settings(
        {"permission": stricter, "server": {"hostname": "a", "port": 1}}, now
    )
    assert change == {"permission": stricter}
    written = json.loads(edit_text(json.dumps(now), change))["permission"]["bash"]
    assert list(written) == ["git *", "*"]


@pytest.mark.parametrize("text", ["{", "[]", "5", '{"a": NaN}', ""])
async def test_a_file_that_would_lose_something_is_left_to_its_owner(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(NotEditable):
        edit_text(text, {"model": "a/b"})
    async with opened(tmp_path) as it:
        it.file.write_text(text)
        message = await it.refused(model="a/b")
        assert str(it.file) in message
        assert "by hand" in message or "expected" in message


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"share": "everywhere"}, "share"),
        ({"modell": "a/b"}, "modell"),
        ({"agent": {"x": {"steps": "many"}}}, "agent.x.steps"),
        ({"agent": 5}, "agent"),
        ({"permission": {"bash": "perhaps"}}, "permission.bash"),
        ({"command": {"x": {"description": "no template"}}}, "command.x"),
        ({"agent": {"x": {"prompt": "{file:missing.txt}"}}}, "missing.txt"),
    ],
)
async def test_a_setting_that_no_file_may_hold_is_refused_by_name(
    tmp_path: Path, settings: Any, named: str
) -> None:
    async with opened(tmp_path, {"model": "a/b"}) as it:
        assert named in await it.refused(**settings)


async def test_settings_that_are_too_deep_or_too_large_are_refused(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(CONFIG_DEPTH.value + 1):
        deep = {"a": deep}
    async with opened(tmp_path) as it:
        assert "deep" in await it.refused(experimental=deep)
        assert "larger" in await it.refused(experimental={"a": "x" * CONFIG_BYTES.value})


async def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.json"
    target.write_text("{}")
    async with opened(tmp_path) as it:
        it.file.symlink_to(target)
        assert "link" in await it.refused(model="a/b")
        assert target.read_text() == "{}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as it:
        it.work.chmod(0o500)
        try:
            assert "can't be written" in await it.refused(model="a/b")
        finally:
            it.work.chmod(0o700)


async def test_without_trust_only_what_takes_effect_is_stored(tmp_path: Path) -> None:
    async with opened(tmp_path, trust=False, own={"model": "a/b"}) as it:
        for settings in (
            {"model": "c/d"},
            {"permission": {"bash": "allow"}},
            {"mcp": {"x": {"enabled": False}}},
        ):
            message = await it.refused(**settings)
            assert "codeloop trust" in message
            assert next(iter(settings)) in message
        answer = await it.change(small_model="c/d", permission={"bash": "deny"})
        assert answer["small_model"] == "c/d"
        await it.change(small_model=None)
        assert json.loads(it.file.read_text()) == {"permission": {"bash": "deny"}}


async def test_over_http_a_change_counts_from_the_next_request_on(tmp_path: Path) -> None:
    (tmp_path / "home" / "state").mkdir(parents=True)
    trusted = {"directories": {str(tmp_path / "work"): {"time": 1}}}
    (tmp_path / "home" / "state" / "trust.json").write_text(json.dumps(trusted))
    async with served(tmp_path) as it:
        before = await it.project()
        answer = await it.http.patch("/config", json={"agent": {"mine": {"prompt": "Hello."}}})
        assert (answer.status_code, answer.json()["agent"]) == (200, {"mine": {"prompt": "Hello."}})
        assert "mine" in [agent["name"] for agent in await it.get("/agent")]
        assert await it.project() is not before
        refused = await it.http.patch("/config", json={"share": 5})
        assert (refused.status_code, refused.json()["name"]) == (400, "BadRequest")
        assert (await it.http.patch("/config", json=[])).status_code == 400


async def test_two_changes_at_once_are_both_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as it:
        await asyncio.gather(
            it.change(model="a/b"), it.change(small_model="c/d"), it.change(share="manual")
        )
        assert json.loads(it.file.read_text()) == {
            "model": "a/b",
            "small_model": "c/d",
            "share": "manual",
        }
