"""`codeloop mcp allow`: lets a server do more than its sandbox does.
Its options are those of `add`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from codeloop.app.handlers.project.mcp import open_mcp_servers
from codeloop.app.settings import ProjectSettings
from codeloop.cli.target.project import load_settings, run_with_local_client
from codeloop.client.local import LocalClient
from codeloop.config.file_entries import (
    choose_entry_file,
    find_server_place,
    read_value,
    write_value,
)
from codeloop.config.files import read_text
from codeloop.config.forms.allowances import Allowance, widen_entry
from codeloop.config.trust.store import trust_changed_file
from codeloop.extend.mcp.transport.server_refusals import describe_access, forget_server_refusals
from codeloop.kit.jsonc import is_object
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import UsageProblem
from codeloop.schema.limits import CONFIG_BYTES

Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--read", "readable", metavar="PATH", multiple=True, help="Let it read PATH. Repeatable."
    ),
    click.option(
        "--write", "writable", metavar="PATH", multiple=True, help="Let it write PATH. Repeatable."
    ),
    click.option(
        "--host", "hosts", metavar="HOST", multiple=True, help="Let it reach HOST. Repeatable."
    ),
    click.option("--off", "is_off", is_flag=True, help="Run it without a sandbox, as you."),
)


def add_allowance_options(command: Command) -> Command:
    """Add the options that allow a server more to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def add_to_sandbox(file: Path, key: str, more: Iterable[str]) -> None:
    """Add paths or hosts to a list of the sandbox of commands. Those that a project adds hold only
    there, so the list is that of the file.
    """
    present = read_value(file, ("sandbox", key)) or ()
    write_value(file, ("sandbox", key), list(dict.fromkeys((*present, *more))))


@click.command("allow")
@click.argument("name")
@click.option(
    "--env",
    "variables",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="Give it your variable NAME, or this VALUE. Repeatable.",
)
@add_allowance_options
def allow(name: str, **flags: Any) -> None:
    """Let a server read, write or reach more than its sandbox does, or end the sandbox.

    Written to the configuration file that the server is in; counts from its next start.
    """
    allowance = Allowance(**flags)
    if allowance.is_empty:
        raise UsageProblem(
            "Say what it may: --read PATH, --write PATH, --host HOST, --env NAME, --off."
        )
    settings = load_settings()
    if name not in settings.config.mcp:
        names = ", ".join(map(escape_controls, settings.config.mcp)) or "none"
        raise UsageProblem(f"There is no server {escape_controls(name)!r}. There are: {names}.")
    if settings.config.mcp[name].get("type") == "remote":
        raise UsageProblem(
            f"{escape_controls(name)} is a remote server, which has no sandbox: nothing is to be allowed."
        )
    file = Path(settings.loaded.list_origins(("mcp", name))[-1].layer.source)
    if not (file.is_absolute() and file.is_file()):
        raise UsageProblem(
            f"{escape_controls(name)} stands in no file, but in {file}."
            " Change its `sandbox` and `environment` there."
        )
    _write_allowance(settings, file, name, allowance)
    click.echo(run_with_local_client(lambda client: _adopt(client, name)))
    click.echo(f"Written to {file}.")


def _write_allowance(
    settings: ProjectSettings, file: Path, name: str, allowance: Allowance
) -> None:
    """Write what is allowed to the entry of a server, wherever that stands in its file."""
    text = read_text(file, CONFIG_BYTES.value) or "{}"
    place = find_server_place(text, name)
    entry: Any = read_value(file, place)
    if not is_object(entry):
        raise UsageProblem(
            f"{file} has no object with the name {escape_controls(name)!r}, which could be changed."
            " Change the server's `sandbox` and `environment` there by hand."
        )
    variables = "env" if "env" in entry else "environment"
    widened = widen_entry({**entry, "environment": entry.get(variables) or {}}, allowance)
    if "sandbox" in widened and widened["sandbox"] != entry.get("sandbox"):
        write_value(file, (*place, "sandbox"), widened["sandbox"])
    if allowance.variables:
        write_value(file, (*place, variables), widened["environment"])
    is_projects = file.is_relative_to(settings.project_root.root)
    if is_projects and allowance.hosts:
        # What a project's server reaches is what commands reach.
        own_file = choose_entry_file(settings.paths, None)
        add_to_sandbox(own_file, "hosts", allowance.hosts)
    if is_projects and settings.trusted:
        root = settings.project_root
        trust_changed_file(settings.paths, root.root, root.directory, file)


async def _adopt(client: LocalClient, name: str) -> str:
    """Note that the user agrees to the changed entry; return what the server may do now."""
    server = open_mcp_servers(client.project).by_name[name]
    await server.consent.check()
    server.consent.approve()
    dependencies = server.consent.dependencies
    forget_server_refusals(server.definition, dependencies)
    access = describe_access(server.definition, dependencies)
    shown = access.describe() if access is not None else "runs without a sandbox"
    return f"{escape_controls(name)} {escape_controls(shown)}."
