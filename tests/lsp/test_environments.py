"""The project's environment reaches its servers, wherever tools put it."""

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.lsp.client.server_settings import ServerSettings
from codeloop.lsp.servers.choice import ProgramSearch, list_servers
from codeloop.lsp.servers.environments import (
    activate_python,
    fill_places,
    find_places,
    list_python_folders,
)
from codeloop.schema.config import LspServerConfig
from tests.cli.program import Desk, call, serving, steps
from tests.lsp.real import folder_of
from tests.support.answers import Answer

PATIENT_EDITS = {
    f"language_tools.LSP_{name}": 60_000
    for name in ("START", "DIAGNOSTICS_TIME", "FIRST_DIAGNOSTICS_TIME")
}
"""An edit waits until the server has spoken, however busy the machine is."""


def make_environment(folder: Path, *, is_conda: bool = False) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to(sys.executable)
    (folder / "lib/python3.11/site-packages").mkdir(parents=True)
    if is_conda:
        (folder / "conda-meta").mkdir()
    else:
        (folder / "pyvenv.cfg").write_text("home = /opt/python/bin\n")
    return folder


def hash_path(path: Path, count: int) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(path)).digest()[:count]).decode()


def mark(folder: Path, name: str, text: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


Make = Callable[[Path, Path], Path]
PLACES: dict[str, Make] = {
    ".venv": lambda root, _: root / ".venv",
    "venv": lambda root, _: root / "venv",
    "of the folder above": lambda root, _: root.parent / ".venv",
    "pixi": lambda root, _: root / ".pixi/envs/default",
    "poetry": lambda root, home: (
        mark(root, "pyproject.toml")
        and home / f".cache/pypoetry/virtualenvs/app-{hash_path(root, 32)[:8]}-py3.11"
    ),
    "pipenv": lambda root, home: (
        mark(root, "Pipfile") and home / f".local/share/virtualenvs/app-{hash_path(root / 'Pipfile', 6)}"
    ),
    "pyenv": lambda root, home: mark(root, ".python-version", "mine\n") and home / ".pyenv/versions/mine",
    "pdm": lambda root, home: mark(root, ".pdm-python", f"{home}/pdm/bin/python") and home / "pdm",
    "a file in place of the folder": lambda root, home: (
        mark(root, ".venv", f"{home}/envs/shop\n") and home / "envs/shop"
    ),
    "its name in such a file": lambda root, home: mark(root, ".venv", "shop\n") and home / ".virtualenvs/shop",
    "virtualenvwrapper": lambda root, home: (
        mark(home / ".virtualenvs/shop", ".project", str(root)) and home / ".virtualenvs/shop"
    ),
    "pyright's own setting": lambda root, home: (
        mark(root, "pyrightconfig.json", '{"venvPath": "~/envs", "venv": "shop"}') and home / "envs/shop"
    ),
    "pyright's table": lambda root, home: (
        mark(root, "pyproject.toml", f"[tool.pyright]\nvenvPath = '{home}/envs'\nvenv = 'shop'\n")
        and home / "envs/shop"
    ),
    "an editor's setting": lambda root, _: (
        mark(
            root / ".vscode",
            "settings.json",
            '{"python.defaultInterpreterPath": "${workspaceFolder}/py/bin/python"}',
        )
        and root / "py"
    ),
    "mise": lambda root, home: (
        mark(root, "mise.toml", '[env]\n_.python.venv = { path = "~/envs/shop", create = true }\n')
        and home / "envs/shop"
    ),
    "another of pixi": lambda root, _: root / ".pixi/envs/dev",
    "poetry's own setting": lambda root, home: (
        mark(root, "pyproject.toml")
        and mark(root, "poetry.toml", '[virtualenvs]\ncreate = true\npath = "~/envs"\n')
        and home / f"envs/app-{hash_path(root, 32)[:8]}-py3.11"
    ),
    "direnv, a variable": lambda root, home: (
        mark(root, ".envrc", 'export A=1\nexport VIRTUAL_ENV="$HOME/envs/shop"\n') and home / "envs/shop"
    ),
    "direnv, uv": lambda root, home: (
        mark(root, ".envrc", "export UV_PROJECT_ENVIRONMENT=~/envs/shop # mine\n") and home / "envs/shop"
    ),
    "direnv, a script": lambda root, _: (
        mark(root, ".envrc", "source $PWD/../envs/a/bin/activate\n") and root / "../envs/a"
    ),
    "direnv, a layout": lambda root, _: mark(root, ".envrc", "layout python3\n") and root / ".direnv/python-3.11",
    "direnv, conda": lambda root, home: (
        mark(root, ".envrc", "layout anaconda shop\n") and home / "anaconda3/envs/shop"
    ),
    "conda": lambda root, home: mark(root, "environment.yml", "name: mine\n") and home / "miniconda3/envs/mine",
    "conda, listed": lambda root, home: (
        mark(root, "environment.yml", "name: mine\n")
        and mark(home / ".conda", "environments.txt", f"/gone/envs/mine\n{home}/far/envs/mine\n")
        and home / "far/envs/mine"
    ),
    "conda, by prefix": lambda root, home: mark(root, "environment.yml", f"prefix: {home}/e\n") and home / "e",
    "direnv": lambda root, _: root / ".direnv/python-3.11.7",
    "a name of one's own": lambda root, _: root / "py311",
    "pixi, not the default": lambda root, _: root / ".pixi/envs/dev",
    "hatch": lambda root, home: (
        mark(root, "pyproject.toml")
        and home / f".local/share/hatch/env/virtual/app/{hash_path(root, 32)[:8]}/app"
    ),
    "asdf": lambda root, home: (
        mark(root, ".tool-versions", "nodejs 20.1.0\npython 3.11.7 3.10.1\n")
        and home / ".asdf/installs/python/3.11.7"
    ),
    "the environment of mise": lambda root, home: (
        mark(root, ".tool-versions", "python 3.11.7\n")
        and home / ".local/share/mise/installs/python/3.11.7"
    ),
}  # fmt: skip


@pytest.mark.parametrize("tool", PLACES)
def test_it_is_found_where_tools_put_it(tmp_path: Path, tool: str) -> None:
    top, home = tmp_path / "work", tmp_path / "home"
    root = top / "package"
    root.mkdir(parents=True)
    folder = make_environment(PLACES[tool](root, home))
    assert (
        find_places(root, top, {"HOME": str(home)}, is_trusted=True)["python"]
        == f"{folder}/bin/python"
    )
    untrusted = find_places(root, top, {"HOME": str(home)}, is_trusted=False)
    assert untrusted == {
        "python-environment": str(folder),
        "python-imports": [f"{folder}/lib/python3.11/site-packages"],
    }, "it is not executed"


def test_an_activated_one_comes_first_but_that_of_codeloop(tmp_path: Path) -> None:
    own, mine = (
        make_environment(tmp_path / "work/.venv"),
        make_environment(tmp_path / "mine", is_conda=True),
    )
    top = tmp_path / "work"

    def find(**variables: str) -> str:
        return find_places(top, top, variables, is_trusted=True)["python"].removesuffix(
            "/bin/python"
        )

    assert find(VIRTUAL_ENV=str(mine)) == find(CONDA_PREFIX=str(mine)) == str(mine)
    assert find(CONDA_PREFIX=str(mine), CONDA_DEFAULT_ENV="base") == str(own)
    assert (
        find(VIRTUAL_ENV=sys.prefix)
        == find(VIRTUAL_ENV="relative")
        == find(UV_PROJECT_ENVIRONMENT="x")
        == str(own)
    )
    places = find_places(top, top, {"VIRTUAL_ENV": str(mine)}, is_trusted=False)
    assert places == {"python": f"{mine}/bin/python"}, "the user has named it"
    assert activate_python({"VIRTUAL_ENV": "/x", "A": "b"}, places) == {
        "A": "b",
        "CONDA_PREFIX": str(mine),
    }
    assert list_python_folders(find_places(top, top, {}, is_trusted=True)) == [
        own,
        Path("/opt/python"),
    ]


def test_places_without_a_value_are_left_out() -> None:
    value = {
        "python": {
            "pythonPath": "{python}",
            "a": ["{python}", "{other}", "x {python}"],
            "b": "{other}",
        }
    }
    filled = {"python": {"pythonPath": "/p", "a": ["/p", "x {python}"]}}
    assert fill_places(value, {"python": "/p"}) == filled
    assert fill_places("{python}", {}) is None


def test_what_the_configuration_says_reaches_servers_that_ask(tmp_path: Path) -> None:
    """In the form of OpenCode, where each section is answered with all of `initialization`,
    and by section.
    """
    search = ProgramSearch(tmp_path, tmp_path, is_trusted=True, path="", installed=tmp_path)

    def ask(entry: LspServerConfig, section: str) -> object:
        row = next(
            each.row
            for each in list_servers({"pyright": entry}, search)
            if each.row.name == "pyright"
        )
        settings = ServerSettings(
            lambda _root: fill_places(row.settings, {"python": "/found"}), row.answers
        )
        return settings.answer({"section": section}, tmp_path)

    assert ask(LspServerConfig(), "python") == {"pythonPath": "/found", "analysis": {}}
    for given in ({"pythonPath": "/mine"}, {"python": {"pythonPath": "/mine"}}):
        found = ask(LspServerConfig(initialization=given), "python")
        assert found == {"analysis": {}, "pythonPath": "/mine"}
    settings = {"python": {"analysis": {"typeCheckingMode": "strict"}}}
    found = ask(LspServerConfig(settings=settings), "python.analysis")
    assert found == {"typeCheckingMode": "strict"}
    assert ask(LspServerConfig(), "unknown") is None


@pytest.mark.lsp
@pytest.mark.parametrize("folder", ["venv", ".venv", "../elsewhere"])
@pytest.mark.parametrize("name", ["pyright", "basedpyright", "ty", "zuban"])
def test_what_the_project_has_installed_is_resolved(tmp_path: Path, name: str, folder: str) -> None:
    desk = Desk(tmp_path, limits=PATIENT_EDITS)
    environment = desk.work / folder
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "mypkgonly").mkdir()
    (packages / "mypkgonly/__init__.py").write_text("def give() -> int:\n    return 1\n")
    (packages / "mypkgonly/py.typed").touch()
    programs = folder_of(name)
    names = ("pyright", "basedpyright", "ty", "zuban", "pylsp", "jedi", "ruff")
    disabled = {each: {"disabled": True} for each in names if each != name}
    code = "import mypkgonly\n\nnumber: int = mypkgonly.give()\ntext: str = mypkgonly.give()\n"
    script = steps(
        call("write", call_id="c1", filePath="warm.py", content="a: int = 1\n"),
        call("write", call_id="c2", filePath="n.py", content=code),
        Answer(text="Done."),
    )
    variables = {"PATH": f"{programs}:{os.environ['PATH']}"}
    if folder.startswith(".."):
        variables["VIRTUAL_ENV"] = str(tmp_path / "elsewhere")
    with serving(script) as server:
        desk.use(server, lsp=disabled, permission={"edit": "allow"})
        assert desk.run("trust").returncode == 0
        done = desk.run("run", "--format", "json", "do it", **variables)
        assert done.returncode == 0, done.stderr
        told = [
            str(m["content"]) for m in server.requests[-1].json["messages"] if m["role"] == "tool"
        ][-1]
    assert "n.py:4" in told, json.dumps(told)
    assert "n.py:1" not in told
    assert "n.py:3" not in told
