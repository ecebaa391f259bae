"""Handlers of the preview: agents, models, providers and their keys, commands, skills."""

from typing import NoReturn

import msgspec

from codeloop.schema.api.agents import AGENT_LIST, COMMAND_LIST, SKILL_LIST
from codeloop.schema.api.providers import (
    AUTH_REMOVE,
    AUTH_SET,
    CONFIG_PROVIDERS,
    PROVIDER_LIST,
    ApiAuth,
    ProviderDetails,
    ProviderId,
    SetAuth,
)
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON
from codeloop.server.preview import arguments as takes
from codeloop.server.preview.request import (
    Handler,
    PreviewRefused,
    PreviewRequest,
    make_answers_decorator,
    make_refusal,
)
from codeloop.server.preview.translate import translate_agent, translate_command, translate_model, translate_provider

_NO_ATTEMPTS = (
    "Sign in by /provider/{providerID}/oauth/authorize, and finish by .../callback; the server keeps no attempts."
)
HANDLERS: dict[str, Handler] = {}
"""By operation id."""
answers = make_answers_decorator(HANDLERS)


@answers("v2.health.get")
async def report_health(_preview: PreviewRequest, _args: NoArguments) -> JSON:
    """Return `healthy`: the answer itself shows that the server runs."""
    return {"healthy": True}


@answers("v2.agent.list")
async def list_agents(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return the agents."""
    return [translate_agent(each) for each in await preview.call(AGENT_LIST, NoArguments())]


@answers("v2.command.list")
async def list_commands(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return the commands."""
    return [translate_command(each) for each in await preview.call(COMMAND_LIST, NoArguments())]


@answers("v2.skill.list")
async def list_skills(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return the skills."""
    return [msgspec.to_builtins(each) for each in await preview.call(SKILL_LIST, NoArguments())]


@answers("v2.reference.list")
async def list_references(_preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return no references: there is no such setting here."""
    return []


@answers("v2.model.list")
async def list_models(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return the models that can be used, the newest first."""
    usable_providers = await preview.call(CONFIG_PROVIDERS, NoArguments())
    models = [model for provider in usable_providers.providers for model in provider.models.values()]
    return [translate_model(each) for each in sorted(models, key=lambda model: model.release_date, reverse=True)]


@answers("v2.provider.list")
async def list_providers(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return the providers that can be used."""
    usable_providers = await preview.call(CONFIG_PROVIDERS, NoArguments())
    return [translate_provider(each) for each in usable_providers.providers]


@answers("v2.provider.get")
async def get_provider(preview: PreviewRequest, args: takes.PreviewProviderId) -> JSON:
    """Return a provider that can be used."""
    usable_providers = await preview.call(CONFIG_PROVIDERS, NoArguments())
    for each in usable_providers.providers:
        if each.id == args.provider_id:
            return translate_provider(each)
    raise _make_provider_not_found(args.provider_id)


@answers("v2.integration.list")
async def list_integrations(preview: PreviewRequest, _args: NoArguments) -> list[JSON]:
    """Return the providers with the ways to sign in."""
    known_providers = await preview.call(PROVIDER_LIST, NoArguments())
    return [_translate_integration(each, known_providers.connected) for each in known_providers.all]


@answers("v2.integration.get")
async def get_integration(preview: PreviewRequest, args: takes.IntegrationId) -> JSON:
    """Return a provider with the ways to sign in."""
    known_providers = await preview.call(PROVIDER_LIST, NoArguments())
    for each in known_providers.all:
        if each.id == args.integration_id:
            return _translate_integration(each, known_providers.connected)
    raise _make_provider_not_found(args.integration_id)


@answers("v2.integration.connect.key")
async def connect_key(preview: PreviewRequest, args: takes.ConnectKey) -> None:
    """Store a key."""
    await preview.call(AUTH_SET, SetAuth(provider_id=args.integration_id, auth=ApiAuth(key=args.key)))


@answers("v2.credential.remove")
async def remove_credential(preview: PreviewRequest, args: takes.CredentialId) -> None:
    """Forget what is stored for a provider."""
    await preview.call(AUTH_REMOVE, ProviderId(provider_id=args.credential_id))


@answers("v2.credential.update")
async def refuse_label(_preview: PreviewRequest, _args: takes.LabelCredential) -> NoReturn:
    """Refuse: credentials have no labels."""
    raise make_refusal("Credentials have no labels: there is one for each provider.")


@answers("v2.integration.connect.oauth")
async def refuse_oauth(_preview: PreviewRequest, _args: takes.ConnectOAuth) -> NoReturn:
    """Refuse: the server keeps no attempts to sign in."""
    raise make_refusal(_NO_ATTEMPTS)


@answers("v2.integration.attempt.status")
@answers("v2.integration.attempt.cancel")
async def refuse_attempt(_preview: PreviewRequest, _args: takes.AttemptId) -> NoReturn:
    """Refuse: the server keeps no attempts to sign in."""
    raise make_refusal(_NO_ATTEMPTS)


@answers("v2.integration.attempt.complete")
async def refuse_completion(_preview: PreviewRequest, _args: takes.CompleteAttempt) -> NoReturn:
    """Refuse: the server keeps no attempts to sign in."""
    raise make_refusal(_NO_ATTEMPTS)


def _translate_integration(provider: ProviderDetails, connected: list[str]) -> JSON:
    methods: list[JSON] = [{"type": "key"}]
    if provider.env:
        methods.append({"type": "env", "names": provider.env})
    credential = {"type": "credential", "id": provider.id, "label": provider.name}
    connections = [credential] if provider.id in connected else []
    return {"id": provider.id, "name": provider.name, "methods": methods, "connections": connections}


def _make_provider_not_found(provider_id: str) -> PreviewRefused:
    text = f"Provider not found: {provider_id}"
    return PreviewRefused("ProviderNotFoundError", 404, text, providerID=provider_id)
