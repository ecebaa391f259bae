"""Handlers of version 2: the server, directories, their configuration, plugins and searches."""

import os
import tempfile
from pathlib import Path
from typing import NoReturn

from codeloop import __version__
from codeloop.schema.api.config import CONFIG_GET
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2.catalog_forms import read_hits, translate_config
from codeloop.server.version2.request import Request2, make_not_found, make_refusal
from codeloop.tool.search_providers import PROVIDERS, choose_provider

_RESULTS = 8
"""Results that a search service is asked for."""


async def get_server_info(request: Request2, _args: NoArguments) -> JSON:
    """Return the version of the server and where it is reached."""
    return {
        "version": __version__,
        "pid": os.getpid(),
        "urls": [request.url],
        "paths": {"tmp": tempfile.gettempdir()},
        "capabilities": {"persistentPty": False},
    }


async def list_locations(request: Request2, _args: NoArguments) -> list[JSON]:
    """Return the directories whose projects are open."""
    return [
        {"directory": project.settings.project_root.directory_name}
        for project in request.app.projects
    ]


async def get_config(request: Request2, _args: NoArguments) -> list[JSON]:
    """Return the configuration in force as one document, and the files that it is from."""
    project = await request.get_project()
    config = await request.call(CONFIG_GET, NoArguments())
    rules: list[PermissionRule] = list(project.settings.config.permission)
    files = [Path(source) for source in project.settings.loaded.sources]
    folders = dict.fromkeys(str(file.parent) for file in files if file.is_absolute())
    document = {"type": "document", "info": translate_config(config, rules)}
    return [document, *({"type": "directory", "path": each} for each in folders)]


async def list_plugins(request: Request2, _args: takes.PluginTarget) -> list[JSON]:
    """Return the plugins of a directory."""
    project = await request.get_project()
    hosts = project.services.extensions.hosts
    failures = {} if hosts is None else hosts.failures
    return [
        {
            "id": extension.name,
            "source": {"type": "local", "path": str(extension.path)},
            "features": {"server": True},
            "state": {"status": "active"}
            if extension.name not in failures
            else {"status": "failed", "error": failures[extension.name]},
        }
        for extension in project.settings.extensions
    ]


async def list_search_services(_request: Request2, _args: NoArguments) -> list[JSON]:
    """Return the search services that can be configured."""
    return [{"id": each.id, "name": each.name} for each in PROVIDERS]


async def search_web(request: Request2, args: takes.SearchWeb) -> JSON:
    """Ask the configured search service."""
    project = await request.get_project()
    settings, environment = project.settings.config.search, project.settings.environment
    provider = choose_provider(settings, environment)
    if provider is None:
        raise make_refusal("No search service is configured. Set `search.provider`.")
    if args.provider_id not in {None, provider.id}:
        raise make_refusal(f"The configured search service is {provider.id}.")
    from codeloop.tool.builtin.web.websearch import configure_service
    from codeloop.tool.tool import ToolFailure

    own_entry = project.settings.loaded.own_entries.get("search")
    service = configure_service(provider, settings, environment, own_entry)
    try:
        found = await service.run_search(service.search, args.query, _RESULTS)
    except ToolFailure as error:
        raise make_refusal(str(error)) from error
    return {"providerID": provider.id, "results": read_hits(found.text)}


async def refuse_kept_terminal(_request: Request2, args: takes.KeptTerminal) -> NoReturn:
    """Refuse: no terminal is kept when the server ends."""
    raise make_not_found("Pty", args.pty_id, ptyID=args.pty_id)
