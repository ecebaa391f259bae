"""Handlers of the preview: one provider, and one with the ways to sign in."""

from codeloop.schema.api.providers import CONFIG_PROVIDERS, PROVIDER_LIST
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON
from codeloop.server.preview import arguments as takes
from codeloop.server.preview.request import PreviewRefused, PreviewRequest
from codeloop.server.preview.translate import translate_integration, translate_provider


async def get_provider(preview: PreviewRequest, args: takes.PreviewProviderId) -> JSON:
    """Return a provider that can be used."""
    usable_providers = await preview.call(CONFIG_PROVIDERS, NoArguments())
    for each in usable_providers.providers:
        if each.id == args.provider_id:
            return translate_provider(each)
    raise _make_provider_not_found(args.provider_id)


async def get_integration(preview: PreviewRequest, args: takes.IntegrationId) -> JSON:
    """Return a provider with the ways to sign in."""
    known_providers = await preview.call(PROVIDER_LIST, NoArguments())
    for each in known_providers.all:
        if each.id == args.integration_id:
            return translate_integration(each, known_providers.connected)
    raise _make_provider_not_found(args.integration_id)


def _make_provider_not_found(provider_id: str) -> PreviewRefused:
    text = f"Provider not found: {provider_id}"
    return PreviewRefused("ProviderNotFoundError", 404, text, providerID=provider_id)
