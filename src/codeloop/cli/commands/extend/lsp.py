"""`codeloop lsp`: lists language servers, installs and restarts them, and shows their logs."""

import asyncio
import sys
from pathlib import Path

import click

from codeloop.app.language.servers import (
    choose_servers,
    find_install_folder,
    find_restart_file,
    open_server_log,
)
from codeloop.app.language.start_check import StartCheck, check_servers
from codeloop.app.settings import ProjectSettings
from codeloop.cli.commands.extend.installer import run_installer
from codeloop.cli.commands.extend.tool_allow import allow_server
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.project import load_settings
from codeloop.kit.programs import find_program
from codeloop.kit.small_files import create_private_folder
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.lsp.servers.choice import ServerChoice
from codeloop.schema.bounds.language_tools import LSP_INSTALL
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON

# The words for the states of a server, in the order in which servers are listed.
_STATE_WORDS = {
    "found": "found",
    "failed": "can't start",
    "untrusted": "needs trust",
    "missing": "not installed",
    "disabled": "disabled",
}

# Characters of the last column, by state: the reason of a failure is longer
# than the name of a program.
_HOW_CHARS = {_STATE_WORDS["failed"]: 600}


@click.group(cls=CommandGroup)
def lsp() -> None:
    """List, install and restart language servers, and show their logs."""


@lsp.command("list")
@click.option(
    "--no-start", "is_quick", is_flag=True, help="Only look for programs; start none of them."
)
@JSON_OPTION
def list_servers(*, as_json: bool, is_quick: bool) -> None:
    """List the language servers, those that can run here first.
    Starts each that was found, to see whether it can.
    """
    settings = load_settings()
    servers = choose_servers(settings)
    present_servers = [server for server in servers if server.state == "found"]
    start_checks = (
        asyncio.run(check_servers(settings, present_servers))
        if present_servers and not is_quick
        else {}
    )
    rows = [_describe_server(server, start_checks.get(server.row.name)) for server in servers]
    order = list(_STATE_WORDS.values())
    rows.sort(key=lambda row: order.index(row["state"]))
    if as_json:
        print_json(rows)
        return
    cells = [
        (
            row["name"],
            row["state"],
            one_line(" ".join(row["files"]), 32),
            one_line(row["how"], _HOW_CHARS.get(row["state"], 80)),
        )
        for row in rows
    ]
    click.echo(align_columns([("name", "state", "files", "program, or how to get it"), *cells]))


def _describe_server(server: ServerChoice, start_check: StartCheck | None) -> JSON:
    """Return a server as a row of the list; `start_check`: None if the server was not started."""
    row = server.row
    state = "failed" if start_check is not None and start_check.problem else server.state
    how = " ".join(server.command)
    is_sandboxed = row.sandbox is not False if start_check is None else start_check.is_sandboxed
    if start_check is not None and start_check.problem:
        how = f"{start_check.problem} ({how})"
    elif server.state == "untrusted":
        how = "it would run code of this project: codeloop trust"
    elif server.state == "missing":
        # The first word of `install` is an installer;
        # `by`: the others tell the user how to get the server.
        can_install = row.install[:1] not in ([], ["by"])
        instructions = " ".join(row.install[1:]) or "its `command` is not there"
        how = f"codeloop lsp install {row.name}" if can_install else instructions
    if state == "found" and not is_sandboxed:
        how = f"(without a sandbox) {how}"
    return {
        "name": escape_controls(row.name),
        "state": _STATE_WORDS[state],
        "files": list(row.languages),
        "how": escape_controls(how),
    }


lsp.add_command(allow_server)


@lsp.command()
@click.argument("name")
def install(name: str) -> None:
    """Install a language server for yourself, with pip, npm, go, gem or dotnet.
    Shows what is run.
    """
    settings = load_settings()
    server = _find_server(settings, name)
    installer, *packages = server.row.install or [""]
    folder = find_install_folder(settings)
    create_private_folder(folder)
    (folder / "bin").mkdir(exist_ok=True)
    for command in _list_install_commands(installer, packages, folder, server):
        _run_install_command(command, settings)
    program = server.row.commands[0][0]
    # Programs are looked for in `bin` and in npm's folder for them; a venv has a `bin` of its own.
    if installer == "pip":
        link = folder / "bin" / program
        link.unlink(missing_ok=True)
        link.symlink_to(folder / "python" / "bin" / program)
    click.echo(
        f"Installed {name} in {folder}. It starts with the first edit of a file that it serves."
    )


def _list_install_commands(
    installer: str, packages: list[str], folder: Path, server: ServerChoice
) -> list[list[str]]:
    """Return the commands that install packages below `folder`.
    Raises UsageProblem if it can't be done from here.
    """
    python, bin_folder = folder / "python" / "bin" / "python", str(folder / "bin")
    match installer:
        case "pip":
            make_venv = (
                [] if python.exists() else [[sys.executable, "-m", "venv", str(folder / "python")]]
            )
            return [*make_venv, [str(python), "-m", "pip", "install", "--upgrade", *packages]]
        case "npm":
            return [
                ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", *packages]
            ]
        case "go":
            return [["env", f"GOBIN={bin_folder}", "go", "install", *packages]]
        case "gem":
            return [
                [
                    "gem",
                    "install",
                    "--install-dir",
                    str(folder / "gems"),
                    "--bindir",
                    bin_folder,
                    *packages,
                ]
            ]
        case "dotnet":
            return [["dotnet", "tool", "install", "--tool-path", bin_folder, *packages]]
        case "by":
            raise UsageProblem(
                f"{server.row.name} can't be installed from here. Get it by: {' '.join(packages)}"
            )
        case _:
            raise UsageProblem(
                f"{escape_controls(server.row.name)} is a server of your configuration: install its `command`."
            )


def _run_install_command(command: list[str], settings: ProjectSettings) -> None:
    # `env GOBIN=... go install ...` needs go.
    program = next(word for word in command if word != "env" and "=" not in word)
    if (
        "/" not in program
        and find_program(program, settings.environment.get("PATH"), in_project=True) is None
    ):
        raise CodeloopError(
            f"{program} is not on the PATH, and this server is installed with it. Install it first."
        )
    if code := run_installer(command, LSP_INSTALL):
        raise CodeloopError(f"{program} failed with exit code {code}; nothing was done after it.")


@lsp.command()
@click.argument("name")
def restart(name: str) -> None:
    """Start a language server anew at the next edit, also one that was given up,
    in whatever process it runs.
    """
    settings = load_settings()
    _find_server(settings, name)
    # Every process of this project that runs the server compares the time of this file.
    file = find_restart_file(settings, name)
    create_private_folder(file.parent)
    file.touch()
    click.echo(f"{escape_controls(name)} starts anew with the next edit of a file that it serves.")


@lsp.command()
@click.argument("name")
def log(name: str) -> None:
    """Show what a language server wrote in this project, and what became of it."""
    settings = load_settings()
    _find_server(settings, name)
    text = open_server_log(settings, name).read()
    if text:
        click.echo(escape_controls(text.rstrip("\n")))
    else:
        click.echo(f"{escape_controls(name)} has not run in this project.", err=True)


def _find_server(settings: ProjectSettings, name: str) -> ServerChoice:
    server = next((choice for choice in choose_servers(settings) if choice.row.name == name), None)
    if server is None:
        raise UsageProblem(
            f"There is no language server {escape_controls(name)!r}. List them: codeloop lsp list"
        )
    return server
