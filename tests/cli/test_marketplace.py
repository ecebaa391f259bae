"""Marketplaces of Claude Code: their plugins are added by name, with or without a manifest."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Desk

MARKET = {
    "name": "market",
    "plugins": [
        {"name": "whole", "source": "./plugins/whole"},
        {"name": "skilled", "source": "./plugins/skilled"},
        {
            "name": "served",
            "source": "./plugins/served",
            "strict": False,
            "lspServers": {
                "gopls": {"command": "gopls", "extensionToLanguage": {".go": "go"}},
                "rare": {
                    "command": "rare-ls",
                    "args": ["--stdio"],
                    "extensionToLanguage": {".rare": "rare"},
                },
            },
        },
        {"name": "far", "source": {"source": "url", "url": "https://git.example/far.git"}},
    ],
}
FILES = {
    ".claude-plugin/marketplace.json": json.dumps(MARKET),
    "plugins/whole/.claude-plugin/plugin.json": '{"name": "whole"}',
    "plugins/whole/commands/help.md": "Help with whole things.\n",
    "plugins/skilled/skills/knead/SKILL.md": "---\nname: knead\ndescription: Dough.\n---\nFold.\n",
    "plugins/served/README.md": "A language server.\n",
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    for name, text in FILES.items():
        file = tmp_path / "market" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Desk(tmp_path)


@pytest.mark.slow
def test_plugins_of_a_marketplace_are_added_by_name(desk: Desk) -> None:
    market = str(desk.folder / "market")
    bare = desk.run("plugin", "add", market)
    assert bare.returncode == 2
    assert "Its plugins: whole skilled served" in bare.stderr
    far = desk.run("plugin", "add", market, "far")
    assert "https://git.example/far.git: clone that" in far.stderr
    added = desk.run("plugin", "add", market, "whole", "skilled", "served")
    assert added.returncode == 0, added.stderr
    rows = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert {row["name"]: row["tools"] for row in rows} == {
        "whole": ["commands/"],
        "skilled": ["skills/"],
        "served": ["lsp rare"],
    }
    commands = desk.run("command", "list").stdout
    assert "/whole:help" in commands
    assert "/knead" in commands
    assert ".rare" in desk.run("lsp", "list").stdout


@pytest.mark.slow
def test_all_plugins_of_a_marketplace_are_added(desk: Desk) -> None:
    added = desk.run("plugin", "add", str(desk.folder / "market"), "--all")
    assert "1 of its plugins are elsewhere and are not added." in added.stdout
    assert len(json.loads(desk.run("plugin", "list", "--json").stdout)) == 3
