"""Checks of the setup: configuration, trust, model and key, MCP and language servers, extensions.
None is started.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from codeloop.app.doctor.finding import Finding, FindingState
from codeloop.app.language.servers import choose_servers
from codeloop.app.models.open_models import make_providers
from codeloop.app.settings import ProjectSettings
from codeloop.config.opencode_variables import SETTING_VARIABLES
from codeloop.config.redact import redact_address
from codeloop.config.server_credential import PASSWORD_VARIABLES, USERNAME_VARIABLES
from codeloop.extend.homes import find_homes
from codeloop.extend.host.javascript.runtime import NoRuntime, check_runtime
from codeloop.extend.mcp.cache.last_failures import LastFailures
from codeloop.extend.mcp.cache.table import STATE_FOLDER
from codeloop.extend.mcp.definition import (
    LocalDefinition,
    RemoteDefinition,
    ServerDefinition,
    parse_definitions,
)
from codeloop.kit.programs import find_program
from codeloop.model.default_model import choose_default
from codeloop.model.errors import ModelUnavailable
from codeloop.model.providers import Providers
from codeloop.schema.errors import CodeloopError
from codeloop.tool.search_providers import ENABLE_EXA

_KEY_SOURCES = {
    "configuration": "its key is in the configuration",
    "environment": "its key is in the environment",
    "credentials": "its key is stored",
    "none": "no key is needed",
}
_READ_VARIABLES = frozenset(
    (
        *("OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", ENABLE_EXA),
        *(*SETTING_VARIABLES, "OPENCODE_MODELS_URL", "OPENCODE_DISABLE_MODELS_FETCH"),
        *(*PASSWORD_VARIABLES, *USERNAME_VARIABLES),
        # A key of its service, which is read as that of any provider.
        "OPENCODE_API_KEY",
        # OpenCode sets them for its own children: codeloop may run below it.
        *("OPENCODE", "OPENCODE_PID", "OPENCODE_RUN_ID", "OPENCODE_PROCESS_ROLE"),
    )
)
"""Variables of OpenCode that are read, or mean nothing."""
_TRUST_COMMANDS = "codeloop trust --show, then codeloop trust"


def examine_configuration(settings: ProjectSettings) -> Iterator[Finding]:
    """Yield findings on the configuration: its files, their problems, and what needs trust."""
    sources = settings.loaded.sources
    yield Finding("configuration", "files", "ok", ", ".join(sources) or "none: built-in settings")
    for warning in settings.loaded.warnings:
        yield Finding("configuration", "files", "warning", warning)
    if unread := _list_unread_variables(settings.environment):
        yield Finding(
            "configuration",
            "variables",
            "warning",
            f"variables of OpenCode that codeloop does not read: {', '.join(unread)}",
            "docs/configuration.md says which it reads, and what is set in a file instead",
        )
    if settings.trusted:
        yield Finding("configuration", "trust", "ok", f"{settings.project_root.root} is trusted")
    elif settings.loaded.ignored or settings.distrust:
        reason = settings.distrust or f"ignored without trust: {', '.join(settings.loaded.ignored)}"
        yield Finding("configuration", "trust", "warning", reason, _TRUST_COMMANDS)
    else:
        yield Finding("configuration", "trust", "ok", "not trusted, and nothing here needs that")


def _list_unread_variables(environment: Mapping[str, str]) -> list[str]:
    return sorted(
        name for name in environment if name.startswith("OPENCODE_") and name not in _READ_VARIABLES
    )


async def examine_model(settings: ProjectSettings) -> tuple[list[Finding], str]:
    """Return findings on the model and its key, and the model's `provider/model`, "" for none.
    Nothing is sent.
    """
    providers = make_providers(settings)
    try:
        ref = await choose_default(providers)
        providers.open_model(ref)
    except ModelUnavailable as error:
        first, _, fix = str(error).partition("\n")
        return [
            Finding(
                "model",
                "model",
                "problem",
                first,
                fix or "See what can be chosen: codeloop models --all",
            )
        ], ""
    choice = "the configured one" if settings.config.model else "chosen, as none is configured"
    findings = [Finding("model", "model", "ok", f"{ref} ({choice})")]
    text, state = _describe_key(providers, ref.partition("/")[0])
    findings.append(
        Finding(
            "model", "key", state, text, "" if state == "ok" else "codeloop auth login PROVIDER"
        )
    )
    if settings.config.small_model:
        try:
            providers.find_model(settings.config.small_model)
        except ModelUnavailable as error:
            findings.append(
                Finding("model", "small_model", "warning", str(error), "Correct small_model.")
            )
    agents = (agent.fallback or () for agent in settings.config.agent.values())
    for fallback in dict.fromkeys(chain(settings.config.fallback, *agents)):
        try:
            providers.open_model(fallback)
        except CodeloopError as error:
            first, _, fix = str(error).partition("\n")
            findings.append(
                Finding(
                    "model", "fallback", "warning", first, fix or f"Correct or remove {fallback}."
                )
            )
    return findings, ref


def examine_mcp_servers(settings: ProjectSettings) -> Iterator[Finding]:
    """Yield a finding for each MCP server: whether its program exists,
    and whether it failed last time.
    """
    failures = LastFailures(settings.paths.state / STATE_FOLDER)
    definitions = parse_definitions(settings.config.mcp, {}, settings.loaded.own_entries)
    for each in definitions.values():
        yield _examine_mcp_server(each, failures, settings.environment.get("PATH"))
    if not definitions:
        yield Finding("MCP servers", "servers", "ok", "none is configured")


def examine_language_servers(settings: ProjectSettings) -> Iterator[Finding]:
    """Yield findings on the language servers that can run here,
    and on the configured ones that can't.
    """
    servers = choose_servers(settings)
    names = [each.row.name for each in servers if each.state == "found"]
    yield Finding(
        "language servers",
        "servers",
        "ok",
        ", ".join(names) or "none is installed (codeloop lsp list)",
    )
    configured_servers = settings.config.lsp if isinstance(settings.config.lsp, dict) else {}
    for each in servers:
        if each.row.name in configured_servers and each.state == "missing":
            fix = f"Install it, or correct lsp.{each.row.name}.command."
            yield Finding(
                "language servers", each.row.name, "problem", "its program is not there", fix
            )
        elif each.row.name in configured_servers and each.state == "untrusted":
            yield Finding(
                "language servers",
                each.row.name,
                "warning",
                "it would run code of this project",
                _TRUST_COMMANDS,
            )


def examine_extensions(settings: ProjectSettings) -> Iterator[Finding]:
    """Yield findings on the extensions, and on their runtime; none is loaded."""
    if not settings.extensions:
        yield Finding("plugins", "extensions", "ok", "none")
        return
    names = ", ".join(each.name for each in settings.extensions)
    yield Finding(
        "plugins", "extensions", "ok", f"{names} (codeloop plugin list loads and tries them)"
    )
    for each in settings.extensions:
        if each.problem:
            yield Finding(
                "plugins", each.name, "problem", each.problem, f"codeloop plugin debug {each.name}"
            )
    if any(each.language == "javascript" for each in settings.extensions):
        try:
            runtime = Path(check_runtime(settings.environment.get("PATH"))[0])
            yield Finding("plugins", "JavaScript", "ok", str(runtime))
        except NoRuntime as error:
            yield Finding(
                "plugins", "JavaScript", "problem", str(error), "Install node 22 or newer, or bun."
            )


def examine_homes(settings: ProjectSettings) -> Iterator[Finding]:
    """Yield one finding, with the existing folders for agents, commands, skills and tools."""
    homes = [
        str(home.path)
        for home in find_homes(settings.project_root, settings.paths)
        if home.path.is_dir()
    ]
    yield Finding("configuration", "folders", "ok", ", ".join(homes) or "none of yours")


def _describe_key(providers: Providers, provider_id: str) -> tuple[str, FindingState]:
    """Return a text about the source of a provider's key, and the finding's state."""
    try:
        usable = next(
            (each for each in providers.list_usable() if each.provider.id == provider_id), None
        )
    except CodeloopError as error:
        return str(error), "problem"
    source = usable.key_source if usable is not None else "none"
    return f"{_KEY_SOURCES.get(source, source)}; not tried (--online tries it)", "ok"


def _examine_mcp_server(
    definition: ServerDefinition, failures: LastFailures, search_path: str | None
) -> Finding:
    name, config = definition.name, definition.config
    if definition.problem:
        return Finding("MCP servers", name, "problem", definition.problem, f"Correct mcp.{name}.")
    if not definition.is_enabled:
        return Finding("MCP servers", name, "ok", "switched off")
    failure = failures.get(definition.digest)
    if isinstance(config, LocalDefinition) and not _program_exists(config.command[0], search_path):
        fix = f"Install {config.command[0]}, or correct mcp.{name}.command."
        return Finding(
            "MCP servers", name, "problem", f"{config.command[0]} is not on the PATH", fix
        )
    if failure is not None:
        fix = (
            f"codeloop mcp auth {name}"
            if failure.state == "needs_auth"
            else f"codeloop mcp debug {name}"
        )
        return Finding(
            "MCP servers", name, "problem", f"when it was tried last: {failure.description}", fix
        )
    # Only the program of a command: its arguments may hold keys.
    address = (
        redact_address(config.url)
        if isinstance(config, RemoteDefinition)
        else " ".join(config.command[:1] if config else [])
    )
    return Finding("MCP servers", name, "ok", f"{address}; not tried (--online tries it)")


def _program_exists(program: str, search_path: str | None) -> bool:
    return (
        Path(program).exists()
        if "/" in program
        else find_program(program, search_path, in_project=True) is not None
    )
