"""What lies in a project does not decide what a server of the user's runs,
unless the project is trusted.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.mcp.definition import LocalDefinition, ServerDefinition
from codeloop.extend.mcp.transport import transports
from codeloop.extend.mcp.transport.transports import ServerTarget
from codeloop.workspace.process.program_log import ProgramLog
from tests.extend.mcp.world import PLAIN, plain, world


def planted(tmp_path: Path) -> Path:
    """Return the mark that every program of a project leaves,
    which lies where interpreters and runners look.
    """
    work, mark = tmp_path / "work", tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w').write('ran')\n"
    for folder in (work, work / "node_modules" / ".bin", work / ".venv" / "bin"):
        folder.mkdir(parents=True, exist_ok=True)
    for name in ("json", "sitecustomize", "usercustomize", "goodsrv"):
        (work / f"{name}.py").write_text(code)
    for folder in (work, work / "node_modules" / ".bin", work / ".venv" / "bin"):
        program = folder / "goodsrv"
        program.write_text(f"#!/bin/sh\necho ran > {mark}\n")
        program.chmod(0o755)
    (work / "node_modules" / "goodsrv.js").write_text(
        f"require('fs').writeFileSync({str(mark)!r}, 'ran')"
    )
    (work / ".npmrc").write_text(
        f"node-options=--require={work}/node_modules/goodsrv.js\nscript-shell={work}/goodsrv\n"
    )
    (work / "package.json").write_text('{"name": "x", "scripts": {"goodsrv": "goodsrv"}}')
    return mark


def module_server(tmp_path: Path) -> dict[str, Any]:
    """Return the definition of a server that Python runs as a module, with a token."""
    site = tmp_path / "site"
    site.mkdir(exist_ok=True)
    (site / "goodsrv.py").write_text(PLAIN.read_text())
    environment = {"PYTHONPATH": str(site), "TOKEN": "t"}
    return {
        "type": "local",
        "command": [sys.executable, "-m", "goodsrv"],
        "environment": environment,
    }


async def test_a_module_of_the_users_is_not_shadowed_by_a_projects(tmp_path: Path) -> None:
    mark = planted(tmp_path)
    for is_trusted in (False, True):
        async with world(tmp_path, {"p": module_server(tmp_path)}, is_trusted=is_trusted) as it:
            assert (await it.call("echo", text="x")).output == "echo: x"
            where = Path((await it.call("where")).output)
    assert not mark.exists()
    assert where == tmp_path / "home" / "data" / "servers" / "p"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["npx", "goodsrv"], ["npm", "exec", "goodsrv"], ["npm", "run", "goodsrv"]]
)
async def test_package_runners_take_no_program_and_no_options_of_a_project(
    tmp_path: Path, command: list[str]
) -> None:
    mark = planted(tmp_path)
    entry = {
        "type": "local",
        "command": command,
        "timeout": 5000,
        "environment": {"npm_config_offline": "true"},
    }
    async with world(tmp_path, {"p": entry}, is_trusted=False) as it:
        with pytest.raises(Exception, match="can't be used"):
            await it.server().connect()
    assert not mark.exists()


@pytest.mark.parametrize("folder", ["node_modules/.bin", ".venv/bin", "", "relative"])
async def test_no_folder_of_the_path_leads_into_a_project(tmp_path: Path, folder: str) -> None:
    planted(tmp_path)
    entry = {"type": "local", "command": ["goodsrv"]}
    before = "." if folder == "relative" else str(tmp_path / "work" / folder)
    async with world(tmp_path, {"p": entry}) as it:
        environment = it.ctx.workspace.environment
        environment["PATH"] = f"{before}:{environment['PATH']}"
        with pytest.raises(Exception, match="There is no program 'goodsrv' on the PATH"):
            await it.server().connect()
    assert not (tmp_path / "mark").exists()


async def test_no_variable_of_ours_leads_into_a_project(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "tools"
    async with world(tmp_path) as it:
        it.ctx.workspace.environment |= {
            "JAVA_HOME": f"{work}/jdk",
            "XDG_CONFIG_HOME": f"{work}/config",
            "XDG_DATA_DIRS": f"{work}/share:/usr/share",
            "CARGO_HOME": "./cargo",
            "NVM_DIR": str(outside),
            **dict.fromkeys(
                ("PYTHONPATH", "NODE_OPTIONS", "RUBYOPT", "JDK_JAVA_OPTIONS", "BASH_ENV", "MY_KEY"),
                "x",
            ),
        }
        seen = json.loads((await it.call("environment")).output)
    assert seen.keys() - {"PATH", "HOME", "LANG", "LC_CTYPE", "PWD", "SHLVL", "_"} == {
        "NVM_DIR",
        "XDG_DATA_DIRS",
    }
    assert (seen["NVM_DIR"], seen["XDG_DATA_DIRS"]) == (str(outside), "/usr/share")


async def test_a_folder_that_is_configured_counts_in_a_trusted_project_alone(
    tmp_path: Path,
) -> None:
    (tmp_path / "work" / "inner").mkdir(parents=True)
    where: list[str] = []
    for is_trusted in (False, True):
        async with world(
            tmp_path, {"p": plain(tmp_path, cwd="inner")}, is_trusted=is_trusted
        ) as it:
            where.append((await it.call("where")).output)
    own, inner = (
        os.path.realpath(tmp_path / each) for each in ("home/data/servers/p", "work/inner")
    )
    assert where == [own, inner]


async def test_a_path_of_the_project_is_a_path_of_it_once_it_is_trusted(tmp_path: Path) -> None:
    entry = plain(tmp_path)
    script = tmp_path / "work" / "tools" / "srv.py"
    script.parent.mkdir(parents=True)
    script.write_text(PLAIN.read_text())
    entry["command"][1] = "./tools/srv.py"
    async with world(tmp_path, {"p": entry}, is_trusted=False) as it:
        with pytest.raises(Exception, match="can't open file"):
            await it.server().connect()
    async with world(tmp_path, {"p": entry}) as it:
        assert (await it.call("echo", text="x")).output == "echo: x"


async def test_folders_of_ours_below_a_project_are_no_place_to_start_in(tmp_path: Path) -> None:
    planted(tmp_path)
    (tmp_path / "home").symlink_to(tmp_path / "work" / "home")
    (tmp_path / "work" / "home").mkdir()
    async with world(tmp_path, is_trusted=False) as it:
        assert (await it.call("where")).output == "/"


async def test_a_server_that_is_late_is_told_with_its_time_and_how_to_give_it_more(
    tmp_path: Path,
) -> None:
    entry = {"type": "local", "command": ["sleep", "61"], "timeout": 100}
    async with world(tmp_path, {"p": entry}) as it:
        with pytest.raises(Exception, match=r"no start within 0\.2 s\. `timeout` in its entry"):
            await it.server().connect()


@pytest.mark.parametrize(
    ("command", "downloader"),
    [
        (["npx", "-y", "server"], "npx"),
        (["/usr/bin/uvx", "server"], "uvx"),
        (["docker", "run", "-i", "server"], "docker"),
        (["pnpm", "dlx", "server"], "pnpm"),
        (["uv", "--quiet", "run", "server"], "uv"),
        (["uv", "sync"], ""),
        (["node", "run", "server.js"], ""),
    ],
)
def test_a_start_that_may_download_has_five_minutes(
    command: list[str], downloader: str, tmp_path: Path
) -> None:
    config = LocalDefinition(command=command)
    target = ServerTarget(
        ServerDefinition("p", config), config, None, ProgramLog(tmp_path / "log"), {}
    )
    assert target.downloader == downloader
    start = transports.MCP_DOWNLOAD if downloader else transports.MCP_START
    assert target.start_seconds == start.seconds + transports.MCP_LIST.seconds
    loading = f"{downloader} may still have been downloading it"
    assert (loading in target.describe_late_start()) == bool(downloader)
