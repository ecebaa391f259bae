"""Handlers of model providers: list them with their models, sign in at them,
and store their keys.
"""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from codeloop.app.project import Project
from codeloop.model.credentials.store import is_valid_key
from codeloop.model.credentials.system_keyring import has_keyring
from codeloop.model.errors import UnknownModel
from codeloop.model.provider import Provider, explain_key_unstorable, resolve_base_url
from codeloop.schema.api.providers import (
    ApiAuth,
    FinishSignIn,
    KnownProviders,
    OAuth,
    ProviderAuthMethod,
    ProviderId,
    SetAuth,
    StartedSignIn,
    StartSignIn,
    UsableProviders,
)
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.operation import NoArguments

if TYPE_CHECKING:
    from codeloop.app.models.plugin_sign_in import PluginSignIns


async def list_usable_providers(project: Project, _args: NoArguments) -> UsableProviders:
    """Return the providers that can be used now, with their models."""
    return await project.services.provider_list.list_usable()


async def list_providers(project: Project, _args: NoArguments) -> KnownProviders:
    """Return all known providers."""
    return await project.services.provider_list.list_known()


async def list_methods_by_provider(
    project: Project, _args: NoArguments
) -> dict[str, list[ProviderAuthMethod]]:
    """Return the ways to sign in at each provider: those of plugins,
    else those without a plugin.
    """
    from codeloop.app.models.builtin_sign_in import list_methods

    environment, keyring = project.settings.environment, await has_keyring()
    stored = project.providers.credentials.read_entries()
    methods_by_provider: dict[str, list[ProviderAuthMethod]] = {}
    for provider in project.providers.list_enabled():
        # A provider without variables takes no key.
        if not provider.env or project.providers.is_unsupported(provider):
            continue
        methods = list_methods(
            provider, environment, is_stored=provider.id in stored, has_keyring=keyring
        )
        if methods:
            methods_by_provider[provider.id] = methods
    sign_ins = await _get_plugin_sign_ins(project)
    return (
        methods_by_provider if sign_ins is None else methods_by_provider | sign_ins.list_methods()
    )


def _find_provider(project: Project, provider_id: str) -> Provider:
    try:
        return project.providers.get_provider(provider_id)
    except UnknownModel as error:
        raise OperationError("NotFoundError", str(error)) from error


async def _get_plugin_sign_ins(project: Project) -> "PluginSignIns | None":
    """Wait until the plugins have started, and return their sign-ins;
    None if there are no extensions.
    """
    if not project.settings.extensions:
        return None
    await project.wait_for_extensions()
    return project.services.plugin_sign_ins


async def start_sign_in(project: Project, args: StartSignIn) -> StartedSignIn:
    """Start a sign-in, with a plugin if one signs in at the provider. Raises OperationError."""
    sign_ins = await _get_plugin_sign_ins(project)
    if sign_ins is None or args.provider_id not in sign_ins.list_methods():
        provider = _find_provider(project, args.provider_id)
        if project.providers.is_unsupported(provider):
            raise OperationError(
                "BadRequest", f"The protocol of {provider.name} ({provider.npm}) is not spoken yet."
            )
        return await project.services.builtin_sign_ins.start_sign_in(args)
    return await sign_ins.start_sign_in(args.provider_id, args.method, args.inputs or {})


async def finish_sign_in(project: Project, args: FinishSignIn) -> bool:
    """Wait for the end of a started sign-in, or finish it with its code.
    Raises OperationError if it fails.
    """
    sign_ins = await _get_plugin_sign_ins(project)
    if sign_ins is None or args.provider_id not in sign_ins.list_methods():
        await project.services.builtin_sign_ins.finish_sign_in(args)
        return True
    await sign_ins.finish_sign_in(args.provider_id, args.method, args.code or "")
    return True


async def set_auth(project: Project, args: SetAuth) -> bool:
    """Store a key for a provider's address, as `codeloop auth login` does,
    or the sign-in of a plugin's provider.

    It applies from the next request on. A key is sent to this address alone. Raises OperationError:
    no such provider, an unknown address, an invalid key.
    """
    if isinstance(args.auth, OAuth):
        sign_ins = await _get_plugin_sign_ins(project)
        if sign_ins is None or args.provider_id not in sign_ins.list_methods():
            raise OperationError(
                "BadRequest", f"No plugin signs in at {args.provider_id}; only keys are stored."
            )
        entry = msgspec.to_builtins(args.auth)
        await asyncio.to_thread(
            project.providers.credentials.store_sign_in, args.provider_id, entry
        )
        return True
    if not isinstance(args.auth, ApiAuth):
        raise OperationError("BadRequest", "Only keys are stored, and what plugins sign in with.")
    provider = _find_provider(project, args.provider_id)
    if project.providers.is_unsupported(provider):
        raise OperationError(
            "BadRequest", f"The protocol of {provider.name} ({provider.npm}) is not spoken yet."
        )
    environment = project.settings.environment
    url, problem = (
        resolve_base_url(provider, environment),
        explain_key_unstorable(provider, environment),
    )
    if url is None or problem:
        other = f"For another address, run `codeloop auth login {provider.id} --base-url URL`."
        raise OperationError("BadRequest", f"{problem} {other}")
    key = args.auth.key.strip()
    if not is_valid_key(key):
        raise OperationError(
            "BadRequest",
            "That is not a valid key. A key is one word of printable ASCII characters.",
        )
    store_key = project.providers.credentials.store_key
    try:
        await asyncio.to_thread(store_key, provider.id, key, url, in_keyring=args.auth.keyring)
    except CodeloopError as error:
        raise OperationError("BadRequest", str(error)) from error
    return True


async def remove_auth(project: Project, args: ProviderId) -> bool:
    """Remove the stored key or sign-in of a provider, if there is one.
    Raises OperationError: no such provider.
    """
    if await asyncio.to_thread(project.providers.credentials.remove_entry, args.provider_id):
        return True
    # An unknown provider is an error; that nothing was stored is none.
    _find_provider(project, args.provider_id)
    return True
