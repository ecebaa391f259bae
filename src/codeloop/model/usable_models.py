"""Which models can be used now, and why the others can't."""

from collections.abc import Collection, Iterator
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.model.catalog.local_servers import find_listening
from codeloop.model.catalog.overrides import is_allowed
from codeloop.model.catalog.services import service_of
from codeloop.model.chat import ModelInfo
from codeloop.model.provider import Provider
from codeloop.model.providers import DISABLED, Providers
from codeloop.net.origin import is_loopback
from codeloop.schema.message import ModelRef

SILENT = "local server not answering"
ABSENT = "not on the server"
NOT_TRUSTED = "untrusted: `codeloop trust` lets this project's configuration count"


class Offer(Struct, frozen=True):
    """A model; `why` says why it can't be used, and is empty when it can."""

    model: ModelInfo
    why: str = ""


async def list_offers(providers: Providers, ids: Collection[str] | None = None) -> tuple[list[Offer], dict[str, str]]:
    """Return the models of the providers that can be used, of all or of those of the ids, and why others can't.

    Servers on this machine are asked whether they run. With `ids`, the models of providers that can't be used come too.
    """
    stored_keys = providers.credentials.entries().keys()
    wanted = [each for each in providers.list_all() if ids is None or each.id in ids]
    reasons = {each.id: providers.why_not(each, stored_keys) for each in wanted}
    local = {each.id: each.url for each in wanted if is_loopback(urlsplit(each.url).hostname or "")}
    answering = {discovered_server.server.id: discovered_server for discovered_server in await providers.answering()}
    running = await find_listening(url for name, url in local.items() if not reasons[name])
    offers: list[Offer] = []
    for provider in wanted:
        server = None if reasons[provider.id] else answering.get(provider.id)
        if not reasons[provider.id] and provider.id in local and not server and local[provider.id] not in running:
            reasons[provider.id] = SILENT
        if ids is not None or not reasons[provider.id]:
            offers += _list_provider_offers(providers, provider, server.models if server else (), reasons[provider.id])
    return offers, {name: why for name, why in reasons.items() if why}


def _list_provider_offers(
    providers: Providers, provider: Provider, served: Collection[str], why: str
) -> Iterator[Offer]:
    """Yield a provider's models: first those that its server on this machine lists, then the others, newest first.

    `served`: the ids that the server lists; `why`: why none of the provider's models can be used.
    """
    for name in served:
        yield Offer(providers.info(f"{provider.id}/{name}"))
    is_absent = bool(served) and not provider.config.models
    for model in sorted(providers.listing(provider).values(), key=lambda model: model.release_date, reverse=True):
        if model.id not in served:
            yield Offer(model, why or _why_not(provider, model) or (ABSENT if is_absent else ""))


def _why_not(provider: Provider, model: ModelInfo) -> str:
    if not is_allowed(model.id, provider.config):
        return DISABLED
    return "" if service_of(model) is not None else f"protocol not spoken yet ({model.npm})"


def newest_model(providers: Providers, name: str, selection: str) -> ModelRef | None:
    """Return the newest usable model that a name without a provider means: its id, the start of it, or its family.

    The provider of `selection`, the model in use, comes first.
    """
    current_provider = selection.partition("/")[0]
    for usable in sorted(providers.usable(), key=lambda usable: usable.provider.id != current_provider):
        models = providers.models(usable.provider.id).values()
        by_id = [model for model in models if model.id == name]
        matching = by_id or [model for model in models if name in model.id.split("/")[-1].split("-")]
        matching = matching or [model for model in models if model.id.startswith(name)]
        if matching:
            newest = max(matching, key=lambda model: model.release_date)
            return ModelRef(provider_id=usable.provider.id, model_id=newest.id)
    return None
