"""`codeloop lsp`: which language servers there are and can run here; install one, start it anew, read its log."""

import asyncio
import sys
from pathlib import Path

import click

from codeloop.app.language.servers import choose_servers, find_install_folder, find_restart_file, open_server_log
from codeloop.app.language.start_check import StartCheck, check_servers
from codeloop.app.settings import ProjectSettings
from codeloop.cli.commands.extend.installer import run_installer
from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.style import align_columns, print_json
from codeloop.cli.target.project import load_settings
from codeloop.kit.processes import find_program
from codeloop.kit.small_files import make_private
from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.lsp.servers.choice import ServerChoice
from codeloop.schema.bounds.language_tools import LSP_INSTALL
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

_STATE_WORDS = {
    "found": "found",
    "failed": "can't start",
    "untrusted": "needs trust",
    "missing": "not installed",
    "disabled": "disabled",
}
"""The states in words, in the order in which servers are listed."""

_HOW_CHARS = {_STATE_WORDS["failed"]: 240}
"""Characters that are shown of why a server can't start; of the others' programs fewer will do."""


@click.group(cls=CommandGroup)
def lsp() -> None:
    """List, install and restart language servers, and show their logs."""


@lsp.command("list")
@click.option("--no-start", "is_quick", is_flag=True, help="Only look for programs; start none of them.")
@JSON_OPTION
def list_servers(*, as_json: bool, is_quick: bool) -> None:
    """List the language servers, those that can run here first. Starts each that was found, to see whether it can."""
    settings = load_settings()
    servers = choose_servers(settings)
    present_servers = [each for each in servers if each.state == "found"]
    start_checks = asyncio.run(check_servers(settings, present_servers)) if present_servers and not is_quick else {}
    rows = [_describe_server(each, start_checks.get(each.row.name)) for each in servers]
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
    row, state = server.row, "failed" if start_check is not None and start_check.problem else server.state
    how = " ".join(server.command)
    is_free = state == "found" and (row.sandbox is False if start_check is None else not start_check.is_sandboxed)
    if start_check is not None and start_check.problem:
        how = f"{start_check.problem} ({how})"
    elif server.state == "untrusted":
        how = "it would run code of this project: codeloop trust"
    elif server.state == "missing":
        is_ours = row.install[:1] not in ([], ["by"])
        how = (
            f"codeloop lsp install {row.name}" if is_ours else " ".join(row.install[1:]) or "its `command` is not there"
        )
    how = f"(without a sandbox) {how}" if is_free else how
    return {
        "name": escape_controls(row.name),
        "state": _STATE_WORDS[state],
        "files": list(row.languages),
        "how": escape_controls(how),
    }


@lsp.command()
@click.argument("name")
def install(name: str) -> None:
    """Install a language server for yourself, with pip, npm, go, gem or dotnet. Shows what is run."""
    settings = load_settings()
    server = _find_server(settings, name)
    with_what, *packages = server.row.install or [""]
    folder = find_install_folder(settings)
    make_private(folder)
    (folder / "bin").mkdir(exist_ok=True)
    for command in _list_install_commands(with_what, packages, folder, server):
        _run_install_command(command, settings)
    program = server.row.commands[0][0]
    if with_what == "pip":
        link = folder / "bin" / program
        link.unlink(missing_ok=True)
        link.symlink_to(folder / "python" / "bin" / program)
    click.echo(f"Installed {name} in {folder}. It starts with the first edit of a file that it serves.")


def _list_install_commands(with_what: str, packages: list[str], folder: Path, server: ServerChoice) -> list[list[str]]:
    python, ours = folder / "python" / "bin" / "python", str(folder / "bin")
    match with_what:
        case "pip":
            steps = [] if python.exists() else [[sys.executable, "-m", "venv", str(folder / "python")]]
            return [*steps, [str(python), "-m", "pip", "install", "--upgrade", *packages]]
        case "npm":
            return [["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", *packages]]
        case "go":
            return [["env", f"GOBIN={ours}", "go", "install", *packages]]
        case "gem":
            return [["gem", "install", "--install-dir", str(folder / "gems"), "--bindir", ours, *packages]]
        case "dotnet":
            return [["dotnet", "tool", "install", "--tool-path", ours, *packages]]
        case "by":
            raise UsageProblem(f"{server.row.name} can't be installed from here. Get it by: {' '.join(packages)}")
        case _:
            raise UsageProblem(
                f"{escape_controls(server.row.name)} is a server of your configuration: install its `command`."
            )


def _run_install_command(command: list[str], settings: ProjectSettings) -> None:
    program = next(word for word in command if word != "env" and "=" not in word)
    if "/" not in program and find_program(program, settings.environment.get("PATH"), in_project=True) is None:
        raise CodeloopError(f"{program} is not on the PATH, and this server is installed with it. Install it first.")
    if code := run_installer(command, LSP_INSTALL):
        raise CodeloopError(f"{program} failed with exit code {code}; nothing else was done.")


@lsp.command()
@click.argument("name")
def restart(name: str) -> None:
    """Start a language server anew at the next edit, also one that was given up, in whatever process it runs."""
    settings = load_settings()
    _find_server(settings, name)
    file = find_restart_file(settings, name)
    make_private(file.parent)
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
    server = next((each for each in choose_servers(settings) if each.row.name == name), None)
    if server is None:
        raise UsageProblem(f"There is no language server {escape_controls(name)!r}. List them: codeloop lsp list")
    return server
