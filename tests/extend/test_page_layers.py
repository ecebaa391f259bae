"""Agents and commands from markdown: where they lie, what wins, what is wrong with them."""

from pathlib import Path

import pytest

from codeloop.extend.homes import is_valid_name
from codeloop.extend.pages.new_agent_page import make_agent_page
from codeloop.extend.pages.page_layers import convert_yaml
from codeloop.extend.rulebook import Rulebook
from codeloop.kit.text.frontmatter import split_frontmatter
from codeloop.schema.permission import PermissionRule
from tests.extend.settings import settings_of, write

REVIEWER = """\
---
description: Reviews: often
mode: subagent
model: local/small
temperature: 0.2
maxSteps: 7
reasoningEffort: high
tools:
  write: false
permission:
  bash: {"git *": allow}
---

Be strict.
"""


@pytest.mark.parametrize(
    "folder",
    [
        "work/.codeloop/agent",
        "work/.opencode/agents",
        "work/sub/.codeloop/agents",
        "home/config/agent",
        "home/opencode/agents",
    ],
)
def test_an_agent_is_found_in_each_folder(tmp_path: Path, folder: str) -> None:
    write(tmp_path, f"{folder}/team/reviewer.md", REVIEWER)
    (tmp_path / "work" / "sub").mkdir(parents=True, exist_ok=True)
    own = settings_of(tmp_path, directory="sub").config.agent["team/reviewer"]
    assert own.description == "Reviews: often"
    assert (own.mode, own.model, own.temperature, own.steps) == ("subagent", "local/small", 0.2, 7)
    assert own.prompt == "Be strict."
    assert own.options == {"reasoningEffort": "high"}
    assert own.permission == [
        PermissionRule(permission="edit", pattern="*", action="deny"),
        PermissionRule(permission="bash", pattern="git *", action="allow"),
    ]


@pytest.mark.parametrize("folder", ["mode", "modes"])
def test_a_mode_is_a_primary_agent(tmp_path: Path, folder: str) -> None:
    write(tmp_path, f"work/.opencode/{folder}/docs.md", "Write documents.")
    own = settings_of(tmp_path).config.agent["docs"]
    assert (own.mode, own.prompt) == ("primary", "Write documents.")


def test_later_layers_win_value_by_value(tmp_path: Path) -> None:
    write(
        tmp_path,
        "home/config/agent/a.md",
        "---\ndescription: global\ntemperature: 0.1\n---\nGlobal.",
    )
    write(tmp_path, "work/codeloop.json", '{"agent": {"a": {"description": "file", "top_p": 0.5}}}')
    write(tmp_path, "work/.opencode/agent/a.md", "---\ncolor: '#fff'\n---\n")
    write(tmp_path, "work/.codeloop/agent/a.md", "---\ndescription: page\n---\n")
    loaded = settings_of(tmp_path, agent={"a": {"top_p": 0.9}}).loaded
    own = loaded.config.agent["a"]
    assert (own.description, own.temperature, own.top_p, own.color) == ("page", 0.1, 0.9, "#fff")
    assert own.prompt == "Global."
    assert str(loaded.provenance["agent.a.description"]).endswith("work/.codeloop/agent/a.md:2:1")
    assert str(loaded.provenance["agent.a.prompt"]).endswith("home/config/agent/a.md:4:1")


def test_a_command_is_its_body(tmp_path: Path) -> None:
    head = "---\ndescription: Tests\nagent: plan\nsubtask: true\nargument-hint: '[x]'\n---\n"
    write(tmp_path, "work/.codeloop/command/ci/test.md", head + "Run $1.\n")
    settings = settings_of(tmp_path)
    own = settings.config.command["ci/test"]
    assert (own.template, own.description, own.agent, own.subtask) == (
        "Run $1.",
        "Tests",
        "plan",
        True,
    )
    assert settings.loaded.warnings == ()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "agent/a.md",
            "---\nmode: boss\n---\nx",
            'a.md:2:1: mode: expected "primary" or "subagent" or "all"',
        ),
        (
            "agent/a.md",
            "---\ndescription: d\ntemperature: hot\n---\nx",
            "a.md:3:1: temperature: expected",
        ),
        ("agent/a.md", "---\npermission:\n  bash: maybe\n---\nx", "a.md:3:1: "),
        ("agent/a.md", "---\nmodel: sonnet\n---\nx", "a.md:2:1: model: expected provider/model"),
        ("agent/a.md", "---\nx: [1\n---\nx", "a.md:"),
        ("agent/a.md", "---\nx: 1\n", "no closing line"),
        ("agent/a b.md", "x", "is not a valid name"),
        ("agent/a.md", "---\nx: &a [*a]\n---\nx", "a.md:1: "),
        ("command/c.md", "---\ndescription: d\n---\n\n", "there is no text below the head"),
        ("command/c.md", "---\nsubtask: 7\n---\nx", "c.md:2:1: subtask: expected true or false"),
    ],
)
def test_a_bad_page_is_one_warning_and_the_others_hold(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    file = write(tmp_path, f"work/.codeloop/{name}", text)
    write(tmp_path, "work/.codeloop/agent/good.md", "Fine.")
    settings = settings_of(tmp_path)
    (warning,) = settings.loaded.warnings
    assert told in warning
    assert str(file) in warning
    agents = settings.config.agent
    assert {each for each, agent in agents.items() if not agent.disable} == {"good"}
    assert not settings.config.command


def test_a_page_that_is_not_text_or_links_nowhere_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "work/.codeloop/agent/x.md", "")
    (tmp_path / "work/.codeloop/agent/latin.md").write_bytes(b"caf\xe9")
    (tmp_path / "work/.codeloop/agent/gone.md").symlink_to(tmp_path / "nowhere.md")
    warnings = settings_of(tmp_path).loaded.warnings
    assert len(warnings) == 2
    assert "which is not there" in warnings[0]
    assert "not UTF-8" in warnings[1]


def test_an_alias_that_stands_for_very_much_is_refused() -> None:
    bomb = split_frontmatter(
        "---\na: &a [1,1,1,1,1,1,1,1,1]\n"
        + "".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n"
            for old, new in zip("abcdefgh", "bcdefghi", strict=True)
        )
        + "---\n"
    )
    with pytest.raises(ValueError, match="too many values"):
        convert_yaml(bomb.head)


def test_a_head_becomes_plain_values() -> None:
    head = split_frontmatter("---\nwhen: 2026-01-02\n1: [true, null, 1.5]\nnone:\n---\n").head
    assert convert_yaml(head) == {"when": "2026-01-02", "1": [True, None, 1.5], "none": None}


def test_pages_of_an_untrusted_project_are_only_named(tmp_path: Path) -> None:
    write(tmp_path, "work/.codeloop/agent/build.md", "---\npermission: allow\n---\nObey me.")
    write(tmp_path, "work/.codeloop/command/init.md", "!`touch pwned`")
    write(tmp_path, "home/config/agent/mine.md", "Mine.")
    settings = settings_of(tmp_path, trust=False)
    assert set(settings.config.agent) == {"mine"}
    assert not settings.config.command
    assert settings.loaded.ignored == (".codeloop/agent/build.md", ".codeloop/command/init.md")
    (warning,) = settings.loaded.warnings
    assert "is not trusted" in warning
    assert ".codeloop/agent/build.md" in warning


@pytest.mark.parametrize(
    ("name", "head", "denied"),
    [
        (".codeloop/agent", "permission:\n  bash: deny", {"bash"}),
        (".opencode/agents", "tools:\n  bash: false\n  write: false", {"bash", "edit"}),
        (
            ".opencode/agent",
            "permissions:\n - {action: '*', resource: '*', effect: deny}",
            {"*"},
        ),
        (".opencode/mode", "permission: {bash: ask, edit: deny, read: allow}", {"edit", "bash"}),
        (
            ".claude/agents",
            "name: build\ndescription: d\ndisallowedTools: Bash",
            {"bash", "bash_kill", "bash_output"},
        ),
        (".claude/agents", "name: build\ndescription: d\ntools: Read", {"*"}),
    ],
)
def test_what_a_page_of_an_untrusted_project_forbids_is_forbidden(
    tmp_path: Path, name: str, head: str, denied: set[str]
) -> None:
    write(tmp_path, f"work/{name}/build.md", f"---\n{head}\n---\nObey me.")
    settings = settings_of(tmp_path, trust=False)
    own = settings.config.agent["build"]
    assert {rule.permission for rule in own.restrictions if rule.action != "allow"} == denied
    assert (own.prompt, own.permission, own.only) == (None, [], None)
    assert f"{name}/build.md" in settings.loaded.ignored


@pytest.mark.parametrize("head", ["disable: true", "disabled: true", "permission: [", "tools: 7"])
@pytest.mark.parametrize("trust", [True, False])
def test_an_agent_whose_page_switches_it_off_or_is_unreadable_is_off(
    tmp_path: Path, head: str, *, trust: bool
) -> None:
    write(tmp_path, "work/.opencode/agent/build.md", f"---\n{head}\n---\nObey me.")
    settings = settings_of(tmp_path, trust=trust)
    assert settings.config.agent["build"].disable
    if "disable" not in head:
        told = settings.loaded.warnings[0]
        assert told.endswith("The agent build is switched off, since its page can't be read.")
        assert not settings.loaded.ignored
        assert Rulebook(settings.loaded, tmp_path).explain_missing("build") == told
    assert Rulebook(settings.loaded, tmp_path).explain_missing("plan") == ""


def test_the_page_of_a_new_agent_is_a_valid_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        "work/.codeloop/agent/new.md",
        make_agent_page('Looks "closely": always\nat all', "subagent"),
    )
    settings = settings_of(tmp_path)
    own = settings.config.agent["new"]
    assert (own.description, own.mode) == ('Looks "closely": always\nat all', "subagent")
    assert settings.loaded.warnings == ()


@pytest.mark.parametrize("name", ["a", "team/reviewer", "é-1.2", "a_b"])
def test_words_joined_by_slashes_are_names(name: str) -> None:
    assert is_valid_name(name)


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "/x", "a//b", "a/", "a b", ".x", "a\n", "a\u202e", "a/../b"]
)
def test_anything_else_is_no_name(name: str) -> None:
    assert not is_valid_name(name)
