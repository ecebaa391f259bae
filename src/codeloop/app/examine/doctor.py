"""Runs the checks of `codeloop doctor`, which change nothing."""

import asyncio

from codeloop.app.examine.finding import Finding
from codeloop.app.examine.machine import (
    examine_folders,
    examine_network,
    examine_programs,
    examine_sandbox,
    examine_terminal,
    examine_versions,
)
from codeloop.app.examine.setup import (
    examine_configuration,
    examine_extensions,
    examine_homes,
    examine_languages,
    examine_model,
    examine_servers,
)
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.schema.config import SandboxConfig
from codeloop.schema.errors import CodeloopError

_ORDER = ("codeloop", "configuration", "model", "this machine", "folders", "network")
"""The first groups; the others follow as they come."""


async def examine(startup: Startup, columns: int, rows: int, *, is_online: bool) -> list[Finding]:
    """Run all checks; return the findings by group. `columns`, `rows`: of the terminal, 0 without one.

    `is_online`: the model is asked for one word, and MCP servers are started. Raises CodeloopError without a home.
    """
    environment = startup.environment
    paths = find_paths(environment)
    project_root = find_project_root(startup.directory, paths, environment)
    findings = [*examine_versions(), *examine_folders(paths), *examine_network(environment)]
    settings: ProjectSettings | None = None
    try:
        settings = find_settings(startup)
    except CodeloopError as error:
        findings.append(
            Finding("configuration", "files", "problem", str(error), "Correct it; nothing runs until then.")
        )
    terminal, programs, sandbox, configuration_findings = await asyncio.gather(
        examine_terminal(environment, columns, rows),
        examine_programs(environment),
        examine_sandbox(project_root, paths, settings.config.sandbox if settings else SandboxConfig(), environment),
        _examine_settings(settings, is_online=is_online) if settings is not None else _list_nothing(),
    )
    findings += [*programs, *terminal, sandbox, *configuration_findings]
    groups = list(dict.fromkeys([*_ORDER, *(each.group for each in findings)]))
    return sorted(findings, key=lambda each: groups.index(each.group))


async def _examine_settings(settings: ProjectSettings, *, is_online: bool) -> list[Finding]:
    findings = [*examine_configuration(settings), *examine_homes(settings)]
    models, ref = await examine_model(settings)
    servers = [*examine_servers(settings)]
    if is_online:
        from codeloop.app.examine.online import examine_online

        online_findings = await examine_online(settings, ref)
        names = {(each.group, each.name) for each in online_findings}
        models, servers = (
            [each for each in part if (each.group, each.name) not in names] for part in (models, servers)
        )
        models += [each for each in online_findings if each.group == "model"]
        servers += [each for each in online_findings if each.group != "model"]
    return [*findings, *models, *servers, *examine_languages(settings), *examine_extensions(settings)]


async def _list_nothing() -> list[Finding]:
    return []
