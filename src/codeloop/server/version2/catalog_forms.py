"""Agents, models, providers and what users sign in to, in the form of version 2. Does no I/O."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from codeloop.schema.api.agents import Agent, Command, Skill
from codeloop.schema.api.mcp import MCPStatus
from codeloop.schema.api.providers import (
    Model,
    ProviderAuthMethod,
    ProviderDetails,
    UsableProviders,
)
from codeloop.schema.message import parse_model_name
from codeloop.schema.permission import PermissionRule
from codeloop.schema.resources import ProjectInfo
from codeloop.schema.wire import JSON
from codeloop.server.version2.session_forms import (
    make_object,
    translate_model_ref,
    translate_rules,
)

_KINDS = ("text", "audio", "image", "video", "pdf")


def translate_agent(agent: Agent) -> JSON:
    """Return an agent in version 2's form."""
    model = translate_model_ref(agent.model)
    if model is not None and agent.variant:
        model["variant"] = agent.variant
    return make_object(
        id=agent.name,
        name=agent.name,
        model=model,
        request={"settings": {}, "headers": {}, "body": agent.options},
        system=agent.prompt,
        description=agent.description,
        mode=agent.mode,
        hidden=bool(agent.hidden),
        color=agent.color,
        steps=agent.steps,
        permissions=translate_rules(agent.permission),
    )


def translate_command(command: Command) -> JSON:
    """Return a command in version 2's form."""
    model = translate_model_ref(parse_model_name(command.model))
    if model is not None and command.variant:
        model["variant"] = command.variant
    return make_object(
        name=command.name,
        template=command.template,
        description=command.description,
        agent=command.agent,
        model=model,
        subtask=command.subtask,
    )


def translate_skill(skill: Skill) -> JSON:
    """Return a skill in version 2's form."""
    return {"id": skill.name, "path": skill.location, **msgspec.to_builtins(skill)}


def translate_model(model: Model) -> JSON:
    """Return a model in version 2's form."""
    capabilities = model.capabilities
    variants = [
        {"id": name, "headers": {}, "body": body} for name, body in (model.variants or {}).items()
    ]
    return make_object(
        id=model.id,
        modelID=model.api.id,
        providerID=model.provider_id,
        family=model.family,
        name=model.name,
        package=f"aisdk:{model.api.npm}",
        api={"id": model.api.id, **_translate_api(model)},
        capabilities={
            "tools": capabilities.toolcall,
            "input": [kind for kind in _KINDS if getattr(capabilities.input, kind)],
            "output": [kind for kind in _KINDS if getattr(capabilities.output, kind)],
            "temperature": capabilities.temperature,
        },
        request={"headers": {}, "body": model.options},
        variants=variants,
        time={"released": _parse_release(model.release_date)},
        cost=[msgspec.to_builtins(model.cost)],
        status=model.status,
        enabled=True,
        limit=msgspec.to_builtins(model.limit),
    )


def _parse_release(date: str) -> int:
    """Return the ms since the epoch of a date such as 2025-06-17;
    0 for a text that is not a date.
    """
    try:
        return int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return 0


def _translate_api(model: Model) -> JSON:
    return make_object(type="aisdk", package=model.api.npm, url=model.api.url or None)


def translate_provider(provider: ProviderDetails) -> JSON:
    """Return a provider in version 2's form, without the headers and the body of its
    requests: they may hold keys.
    """
    # Version 1 has the API with each model, version 2 with the provider.
    first = next(iter(provider.models.values()), None)
    api: JSON = {"type": "native", "settings": {}} if first is None else _translate_api(first)
    request: JSON = {"headers": {}, "body": {}}
    return {
        "id": provider.id,
        "integrationID": provider.id,
        "name": provider.name,
        "activation": "enabled",
        "package": "native" if first is None else f"aisdk:{first.api.npm}",
        "api": api,
        "request": request,
    }


def translate_models(usable: UsableProviders) -> list[JSON]:
    """Return the models that can be used, the newest first."""
    models = [model for provider in usable.providers for model in provider.models.values()]
    return [
        translate_model(model)
        for model in sorted(models, key=lambda model: model.release_date, reverse=True)
    ]


def translate_providers(usable: UsableProviders) -> list[JSON]:
    """Return the providers that can be used."""
    return [translate_provider(provider) for provider in usable.providers]


def translate_integration(
    provider: ProviderDetails, methods: Iterable[ProviderAuthMethod], *, is_stored: bool
) -> JSON:
    """Return a provider with the ways to sign in. `is_stored`: it has a stored credential.

    The id of a way is its number among those of version 1.
    """
    ways = [_translate_method(number, each) for number, each in enumerate(methods)]
    if all(way["type"] != "key" for way in ways):
        ways.append({"type": "key"})
    if provider.env:
        ways.append({"type": "env", "names": provider.env})
    credential = {
        "type": "credential",
        "id": provider.id,
        "label": provider.name,
        "method": "key",
    }
    return {
        "id": provider.id,
        "name": provider.name,
        "methods": ways,
        "connections": [credential] if is_stored else [],
    }


def _translate_method(number: int, method: ProviderAuthMethod) -> JSON:
    if method.type == "api":
        return {"type": "key", "label": method.label}
    fields = [_translate_prompt(prompt) for prompt in method.prompts or ()]
    return make_object(id=str(number), type="oauth", label=method.label, form=fields or None)


def _translate_prompt(prompt: JSON) -> JSON:
    options = [
        make_object(**{"label": each.get("value", ""), **each})
        for each in prompt.get("options") or ()
    ]
    when = prompt.get("when")
    return make_object(
        key=str(prompt.get("key", "")),
        type="string",
        title=prompt.get("message"),
        placeholder=prompt.get("placeholder"),
        required=not prompt.get("optional", False),
        hidden=prompt.get("hidden"),
        options=options or None,
        when=[when] if when else None,
    )


def translate_project(info: ProjectInfo) -> JSON:
    """Return a project in version 2's form."""
    project: JSON = msgspec.to_builtins(info)
    time = {
        "created": info.time.created,
        "updated": info.time.updated,
        "active": info.time.updated,
    }
    return {**project, "canonical": info.worktree, "time": time}


def translate_projects(infos: Iterable[ProjectInfo]) -> list[JSON]:
    """Return projects in version 2's form."""
    return [translate_project(each) for each in infos]


def translate_server_status(status: MCPStatus) -> JSON:
    """Return the state of an MCP server in version 2's form."""
    if status.state == "starting":
        return {"status": "pending"}
    match status.status:
        case "failed" | "needs_client_registration":
            return {"status": "failed", "error": status.error or "It failed."}
        case "needs_auth":
            return {"status": "needs_auth", "error": status.error or "Sign in first."}
        case other:
            return {"status": other}


def translate_servers(statuses: dict[str, MCPStatus]) -> list[JSON]:
    """Return the MCP servers in version 2's form."""
    return [
        {"name": name, "status": translate_server_status(status)}
        for name, status in statuses.items()
    ]


def read_server(config: JSON) -> JSON:
    """Return the definition of an MCP server as version 1 writes it."""
    definition = {
        name: value
        for name, value in config.items()
        if value is not None and name not in {"disabled", "codemode", "protocol", "timeout"}
    }
    definition["enabled"] = not config.get("disabled", False)
    match config.get("timeout"):
        case {"startup": int(startup)}:
            definition["timeout"] = startup
        case _:
            pass
    oauth: JSON | bool | None = definition.get("oauth")
    if oauth is not None and not isinstance(oauth, bool):
        # Of the sign-in only these keys exist in version 1.
        names = {"client_id": "clientId", "client_secret": "clientSecret", "scope": "scope"}
        definition["oauth"] = {names[key]: value for key, value in oauth.items() if key in names}
    return definition


def translate_entries(entries: Iterable[Any]) -> list[JSON]:
    """Return the entries of a folder in version 2's form."""
    return [{"path": entry.path, "type": entry.type} for entry in entries]


def read_hits(text: str) -> list[JSON]:
    """Return the results of a search, which services give as numbered blocks of text."""
    hits: list[JSON] = []
    for block in re.split(r"(?m)^\d+\. ", text):
        if (address := re.search(r"https?://\S+", block)) is None:
            continue
        title = block[: address.start()].strip().removesuffix("URL:").strip()
        content = block[address.end() :].strip()
        hits.append(
            make_object(url=address.group(), title=title or None, content=content or None, time={})
        )
    return hits


def translate_config(config: JSON, rules: Iterable[PermissionRule]) -> JSON:
    """Return the configuration of version 1 (without secrets) as version 2 writes it:
    the settings that both have.
    """
    same = ("shell", "model", "default_agent", "username", "share", "instructions")
    info = {name: config[name] for name in same if config.get(name) is not None}
    info["permissions"] = translate_rules(rules)
    info["snapshots"] = config.get("snapshot", True)
    commands: JSON = config.get("command") or {}
    info["commands"] = {
        name: {key: each[key] for key in ("template", "description", "agent") if each.get(key)}
        for name, each in commands.items()
    }
    agents: JSON = config.get("agent") or {}
    info["agents"] = {name: _translate_agent_config(each) for name, each in agents.items()}
    servers: JSON = config.get("mcp") or {}
    info["mcp"] = {"servers": {name: _translate_server(each) for name, each in servers.items()}}
    return info


def _translate_agent_config(agent: JSON) -> JSON:
    same = ("model", "description", "mode", "hidden", "color", "steps")
    settings = {name: agent[name] for name in same if agent.get(name) is not None}
    more = make_object(system=agent.get("prompt"), disabled=agent.get("disable"))
    return {**settings, **more}


def _translate_server(server: JSON) -> JSON:
    same = ("type", "command", "url", "cwd", "environment", "headers")
    definition = {name: server[name] for name in same if server.get(name) is not None}
    return {**definition, "disabled": server.get("enabled") is False}
