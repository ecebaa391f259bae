"""Runs all checks of `codeloop doctor`, and orders their findings.

Only `--online` asks a model, which costs money, and starts MCP servers.
"""

import asyncio
from collections.abc import Collection

from codeloop.app.doctor.effect_checks import examine_effects
from codeloop.app.doctor.finding import Finding
from codeloop.app.doctor.machine_checks import (
    examine_folders,
    examine_network,
    examine_programs,
    examine_proxies,
    examine_sandbox,
    examine_terminal,
    examine_versions,
)
from codeloop.app.doctor.setup_checks import (
    examine_configuration,
    examine_extensions,
    examine_homes,
    examine_language_servers,
    examine_mcp_servers,
    examine_model,
)
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.schema.config import SandboxConfig
from codeloop.schema.errors import CodeloopError

_FIRST_GROUPS = (
    "codeloop",
    "configuration",
    "effect",
    "model",
    "this machine",
    "folders",
    "network",
)
"""The groups that are listed first, in this order."""


async def run_checks(
    startup: Startup,
    columns: int,
    rows: int,
    *,
    is_online: bool,
    commands: Collection[str] = (),
) -> list[Finding]:
    """Run all checks; return the findings, sorted by group.
    `columns`, `rows`: the size of the terminal, 0 without one.

    `is_online`: the model is asked for one word, and MCP servers are started. `commands`: as for
    `examine_effects`. Raises CodeloopError without a home directory.
    """
    environment = startup.environment
    paths = find_paths(environment)
    project_root = find_project_root(startup.directory, paths, environment)
    findings = [*examine_versions(), *examine_folders(paths), *examine_network(environment)]
    # Without a valid configuration the checks of the machine still run.
    settings: ProjectSettings | None = None
    try:
        settings = find_settings(startup)
    except CodeloopError as error:
        findings.append(
            Finding(
                "configuration",
                "files",
                "problem",
                str(error),
                "Correct it; nothing runs until then.",
            )
        )
    terminal, programs, proxies, sandbox, setup = await asyncio.gather(
        examine_terminal(environment, columns, rows),
        examine_programs(environment),
        examine_proxies(environment),
        examine_sandbox(
            project_root,
            paths,
            settings.config.sandbox if settings else SandboxConfig(),
            environment,
        ),
        _examine_setup(settings, commands, is_online=is_online),
    )
    findings += [*programs, *terminal, sandbox, *proxies, *setup]
    groups = list(dict.fromkeys([*_FIRST_GROUPS, *(each.group for each in findings)]))
    return sorted(findings, key=lambda each: groups.index(each.group))


async def _examine_setup(
    settings: ProjectSettings | None, commands: Collection[str], *, is_online: bool
) -> list[Finding]:
    if settings is None:
        return []
    findings = [
        *examine_configuration(settings),
        *examine_homes(settings),
        *examine_effects(settings, commands),
    ]
    model_findings, ref = await examine_model(settings)
    server_findings = [*examine_mcp_servers(settings)]
    if is_online:
        from codeloop.app.doctor.online_checks import examine_online

        online_findings = await examine_online(settings, ref)
        # What was tried replaces what was only looked at.
        model_findings = _replace_tried(
            model_findings, [each for each in online_findings if each.group == "model"]
        )
        server_findings = _replace_tried(
            server_findings, [each for each in online_findings if each.group != "model"]
        )
    return [
        *findings,
        *model_findings,
        *server_findings,
        *examine_language_servers(settings),
        *examine_extensions(settings),
    ]


def _replace_tried(findings: list[Finding], online_findings: list[Finding]) -> list[Finding]:
    """Return the findings, with those about the same subjects replaced by the online ones."""
    tried = {(each.group, each.name) for each in online_findings}
    return [*(each for each in findings if (each.group, each.name) not in tried), *online_findings]
