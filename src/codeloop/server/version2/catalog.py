"""Handlers of version 2: agents, models, services that users sign in to, and MCP servers."""

import asyncio
import secrets
from typing import Any, NoReturn

from codeloop.app.handlers.project.mcp import find_server
from codeloop.app.project import Project
from codeloop.model.credentials.store import ApiKey, mask_key
from codeloop.schema.api.agents import AGENT_LIST
from codeloop.schema.api.providers import (
    AUTH_SET,
    CONFIG_PROVIDERS,
    PROVIDER_AUTH,
    PROVIDER_AUTHORIZE,
    PROVIDER_CALLBACK,
    PROVIDER_LIST,
    ApiAuth,
    FinishSignIn,
    ProviderDetails,
    SetAuth,
    StartSignIn,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.ids import now_ms
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2.catalog_forms import (
    translate_agent,
    translate_integration,
    translate_model,
    translate_provider,
)
from codeloop.server.version2.request import Request2, TaggedError, make_not_found, make_refusal
from codeloop.server.version2.session_forms import make_object
from codeloop.server.version2.state import SignIn

_SIGN_IN_MS = 600_000
"""The time that a sign-in may take."""


async def get_agent(request: Request2, args: takes.AgentId) -> JSON:
    """Return an agent."""
    for each in await request.call(AGENT_LIST, NoArguments()):
        if each.name == args.agent_id:
            return translate_agent(each)
    raise make_not_found("Agent", args.agent_id, agentID=args.agent_id)


async def get_default_model(request: Request2, _args: NoArguments) -> JSON | None:
    """Return the model that a new session uses; None: there is none."""
    project = await request.get_project()
    usable = await request.call(CONFIG_PROVIDERS, NoArguments())
    models = {
        f"{provider.id}/{model.id}": model
        for provider in usable.providers
        for model in provider.models.values()
    }
    defaults = [f"{provider}/{model}" for provider, model in usable.default.items()]
    for name in (project.settings.config.model or "", *defaults, *models):
        if name in models:
            return translate_model(models[name])
    return None


async def get_provider(request: Request2, args: takes.ProviderId2) -> JSON:
    """Return a provider that can be used."""
    usable_providers = await request.call(CONFIG_PROVIDERS, NoArguments())
    for each in usable_providers.providers:
        if each.id == args.provider_id:
            return translate_provider(each)
    raise make_not_found("Provider", args.provider_id, providerID=args.provider_id)


# Integrations: the providers, by the ways to sign in


async def list_integrations(request: Request2, _args: NoArguments) -> list[JSON]:
    """Return the providers with the ways to sign in."""
    project = await request.get_project()
    known = await request.call(PROVIDER_LIST, NoArguments())
    methods = await request.call(PROVIDER_AUTH, NoArguments())
    stored = await _read_stored(project)
    return [
        translate_integration(each, methods.get(each.id, ()), is_stored=each.id in stored)
        for each in known.all
    ]


async def get_integration(request: Request2, args: takes.IntegrationId) -> JSON:
    """Return a provider with the ways to sign in."""
    for each in await list_integrations(request, NoArguments()):
        if each["id"] == args.integration_id:
            return each
    raise _make_unknown(args.integration_id)


def _make_unknown(integration_id: str) -> TaggedError:
    return make_not_found("Integration", integration_id, integrationID=integration_id)


async def _find_provider(request: Request2, integration_id: str) -> ProviderDetails:
    known = await request.call(PROVIDER_LIST, NoArguments())
    for each in known.all:
        if each.id == integration_id:
            return each
    raise _make_unknown(integration_id)


async def connect_key(request: Request2, args: takes.ConnectKey) -> None:
    """Store a key for a provider."""
    await _find_provider(request, args.integration_id)
    await request.call(
        AUTH_SET, SetAuth(provider_id=args.integration_id, auth=ApiAuth(key=args.key))
    )
    await _publish_change(request, args.integration_id)


async def refuse_method(request: Request2, args: takes.ConnectMethod) -> NoReturn:
    """Refuse: no provider has a way to sign in by a program or by a service of OpenCode."""
    await _find_provider(request, args.integration_id)
    raise _make_unknown_method(args)


def _make_unknown_method(args: takes.ConnectMethod) -> TaggedError:
    return make_not_found(
        "IntegrationMethod",
        args.method_id,
        integrationID=args.integration_id,
        methodID=args.method_id,
    )


async def start_sign_in(request: Request2, args: takes.ConnectMethod) -> JSON:
    """Begin to sign in at a provider."""
    await _find_provider(request, args.integration_id)
    methods = (await request.call(PROVIDER_AUTH, NoArguments())).get(args.integration_id, [])
    if not args.method_id.isdecimal() or int(args.method_id) >= len(methods):
        raise _make_unknown_method(args)
    number = int(args.method_id)
    if methods[number].type != "oauth":
        raise _make_unknown_method(args)
    inputs = {name: str(value) for name, value in (args.answer or args.inputs or {}).items()}
    started = await request.call(
        PROVIDER_AUTHORIZE,
        StartSignIn(provider_id=args.integration_id, method=number, inputs=inputs or None),
    )
    now = now_ms()
    sign_in = SignIn(args.integration_id, number, now, now + _SIGN_IN_MS, {"status": "pending"})
    attempt_id = f"att_{secrets.token_hex(12)}"
    request.state.sign_ins[attempt_id] = sign_in
    if started.method == "auto":
        sign_in.task = request.state.run(_finish(request, sign_in, None))
    return {
        "attemptID": attempt_id,
        "url": started.url,
        "instructions": started.instructions,
        "mode": started.method,
        "time": _describe_time(sign_in),
    }


def _describe_time(sign_in: SignIn) -> JSON:
    return {"created": sign_in.created, "expires": sign_in.expires}


async def _finish(request: Request2, sign_in: SignIn, code: str | None) -> None:
    """Wait until a sign-in has ended, and note how."""
    finish = FinishSignIn(provider_id=sign_in.integration_id, method=sign_in.method, code=code)
    try:
        async with asyncio.timeout((sign_in.expires - now_ms()) / 1000):
            await request.call(PROVIDER_CALLBACK, finish)
    except TimeoutError:
        sign_in.status = {"status": "expired"}
    except CodeloopError as error:
        sign_in.status = {"status": "failed", "message": str(error)}
    else:
        sign_in.status = {"status": "complete"}
        await _publish_change(request, sign_in.integration_id)


def _find_sign_in(request: Request2, args: takes.SignInId | takes.FinishSignIn2) -> SignIn:
    """Return a sign-in that was begun, of the named provider if one is named."""
    sign_in = request.state.sign_ins.get(args.attempt_id)
    integration_id = args.integration_id
    if sign_in is None or integration_id not in {None, sign_in.integration_id}:
        raise make_not_found(
            "IntegrationAttempt",
            args.attempt_id,
            integrationID=integration_id or "",
            attemptID=args.attempt_id,
        )
    return sign_in


async def get_attempt(request: Request2, args: takes.SignInId) -> JSON:
    """Return the state of a sign-in."""
    sign_in = _find_sign_in(request, args)
    if sign_in.status["status"] == "pending" and now_ms() > sign_in.expires:
        sign_in.status = {"status": "expired"}
    return {**sign_in.status, "time": _describe_time(sign_in)}


async def cancel_attempt(request: Request2, args: takes.SignInId) -> None:
    """Cancel a sign-in; one that is not there is cancelled already."""
    sign_in = request.state.sign_ins.pop(args.attempt_id, None)
    if sign_in is not None and sign_in.task is not None:
        sign_in.task.cancel()


async def finish_attempt(request: Request2, args: takes.FinishSignIn2) -> None:
    """End a sign-in with its code; one without a code has its own end."""
    sign_in = _find_sign_in(request, args)
    if sign_in.task is not None:
        await asyncio.wait([sign_in.task])
    else:
        await _finish(request, sign_in, args.code)
    if sign_in.status["status"] == "failed":
        raise make_refusal(sign_in.status["message"])


# Credentials: one for each provider, under its id


async def _read_stored(project: Project) -> JSON:
    return dict(await asyncio.to_thread(project.providers.credentials.read_entries))


async def list_credentials(request: Request2, _args: NoArguments) -> list[JSON]:
    """Return the stored keys, of which only the ends are shown."""
    project = await request.get_project()
    return [
        _describe_credential(provider_id, entry)
        for provider_id, entry in (await _read_stored(project)).items()
    ]


def _describe_credential(provider_id: str, entry: Any) -> JSON:
    key = mask_key(entry.key) if isinstance(entry, ApiKey) else "…"
    return {
        "id": provider_id,
        "integrationID": provider_id,
        "label": provider_id,
        "active": True,
        "value": {"type": "key", "key": key},
    }


async def create_credential(request: Request2, args: takes.CreateCredential) -> JSON:
    """Store the key of a provider, in place of the one that it has."""
    match args.value:
        case {"type": "key", "key": str(key)}:
            pass
        case _:
            raise make_refusal("Only keys are stored so. Sign in by /api/integration/{id}/connect.")
    connect = takes.ConnectKey(integration_id=args.integration_id, key=key)
    await connect_key(request, connect)
    return _describe_credential(args.integration_id, ApiKey(key=key.strip()))


async def activate_credential(request: Request2, args: takes.CredentialId) -> None:
    """Do nothing for the credential of a provider: it is the only one, so it counts."""
    project = await request.get_project()
    if args.credential_id not in await _read_stored(project):
        raise make_refusal(f"There is no credential {args.credential_id}.")


async def _publish_change(request: Request2, integration_id: str) -> None:
    data = {"integrationID": integration_id, "credentialID": integration_id}
    request.state.publish("credential.updated", {}, None)
    request.state.publish("credential.switched", data, None)
    request.state.publish("integration.updated", {}, str(request.directory))


# MCP servers


async def list_resources(request: Request2, _args: NoArguments) -> JSON:
    """Return the known resources of the MCP servers, and their templates; none is started."""
    table = (await request.get_project()).services.mcp
    resources: list[JSON] = []
    templates: list[JSON] = []
    for name, listing in table.listings.items() if table is not None else ():
        for each in listing.resources:
            described = make_object(
                server=name,
                name=each.name,
                description=each.description or None,
                mimeType=each.mime or None,
            )
            if each.is_template:
                templates.append({**described, "uriTemplate": each.uri})
            else:
                resources.append({**described, "uri": each.uri})
    return {"resources": resources, "templates": templates}


async def remove_server(request: Request2, args: takes.ServerName) -> None:
    """Stop a server, and forget it until the project is opened again."""
    project = await request.get_project()
    await find_server(project, args.server).disconnect()
    table = project.services.open_mcp_table()
    table.running.by_name.pop(args.server, None)
    table.definitions.pop(args.server, None)
    from codeloop.app.extensions.mcp import make_server_tools

    project.offer_server_tools(make_server_tools(project.settings, table))
