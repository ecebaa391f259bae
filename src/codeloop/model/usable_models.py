"""Lists the models that can be used now, and why the others can't (`codeloop models`);
finds one by a short name.
"""

from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.model.catalog.local_servers import find_listening_urls
from codeloop.model.catalog.overrides import is_allowed
from codeloop.model.catalog.services import find_service
from codeloop.model.chat import ModelInfo
from codeloop.model.endpoints import make_endpoint
from codeloop.model.errors import ModelUnavailable, NoKey, WrongKeyOrigin
from codeloop.model.provider import Provider, resolve_base_url
from codeloop.model.providers import Providers, is_signed_in
from codeloop.net.hosts import find_url_host, is_loopback
from codeloop.schema.message import ModelRef

DISABLED_REASON = "disabled by configuration"
NO_KEY_REASON = "no key"
UNNAMED_REASON = (
    "its address is on this machine, where something else may answer; configure it to use it"
)
SILENT_REASON = "local server not answering"
ABSENT_REASON = "not on the server"


class ModelOffer(Struct, frozen=True):
    """A model in a list. `problem`: why it can't be used; empty: it can."""

    model: ModelInfo
    problem: str = ""


async def list_offers(
    providers: Providers, ids: Collection[str] | None = None
) -> tuple[list[ModelOffer], dict[str, str]]:
    """Return the models of all providers or of those with `ids`,
    and the reasons by provider why some can't be used.

    Servers on this machine are asked whether they run.
    The models of unusable providers are only listed with `ids`.
    """
    stored_keys = providers.credentials.read_entries().keys()
    listed = [each for each in providers.list_all() if ids is None or each.id in ids]
    reasons = {each.id: explain_unusable(providers, each, stored_keys) for each in listed}
    local_urls = {each.id: each.url for each in listed if is_loopback(find_url_host(each.url))}
    served_models = {
        each.server.id: each.models for each in await providers.discover_local_servers()
    }
    # A server may run without a list of models, so accepting a connection is enough.
    listening_urls = await find_listening_urls(
        url for name, url in local_urls.items() if not reasons[name]
    )
    offers: list[ModelOffer] = []
    for provider in listed:
        served: Collection[str] = ()
        if not reasons[provider.id]:
            served = served_models.get(provider.id, ())
            is_answering = (
                provider.id in served_models or local_urls.get(provider.id) in listening_urls
            )
            if provider.id in local_urls and not is_answering:
                reasons[provider.id] = SILENT_REASON
        if ids is not None or not reasons[provider.id]:
            offers += _list_provider_offers(providers, provider, served, reasons[provider.id])
    return offers, {name: reason for name, reason in reasons.items() if reason}


def explain_unusable(
    providers: Providers, provider: Provider, stored_names: AbstractSet[str]
) -> str:
    """Return why a provider is unusable, in a few words;
    empty if usable, or unknown without a request.

    `stored_names`: the providers whose keys are stored.
    """
    if not providers.is_enabled(provider.id):
        return DISABLED_REASON
    if providers.is_unsupported(provider):
        return f"protocol not spoken yet ({provider.npm})"
    if is_signed_in(providers, provider):
        return ""
    url = resolve_base_url(provider, providers.environment)
    try:
        make_endpoint(provider, providers.credentials, providers.environment)
    except NoKey:
        return NO_KEY_REASON
    except WrongKeyOrigin:
        return "its key is for another address"
    except ModelUnavailable:
        return "its configuration is wrong" if url else "address not known"
    if providers.find_key_source(provider, stored_names):
        return ""
    if not is_loopback(urlsplit(url or "").hostname or ""):
        return NO_KEY_REASON
    # Some of the catalog's providers are programs on this machine, at ports that others use.
    is_named = provider.accepts_any_model or provider.id in providers.config.provider
    return "" if is_named else UNNAMED_REASON


def _list_provider_offers(
    providers: Providers, provider: Provider, served: Collection[str], problem: str
) -> Iterator[ModelOffer]:
    """Yield a provider's models: first those that its server on this machine lists,
    then the others, newest first.

    `served`: the ids that the server lists; `problem`: why none of the provider's
    models can be used.
    """
    for name in served:
        yield ModelOffer(providers.find_model(f"{provider.id}/{name}"))
    is_absent = bool(served) and not provider.config.models
    for model in sorted(
        providers.list_all_models(provider).values(),
        key=lambda model: model.release_date,
        reverse=True,
    ):
        if model.id not in served:
            yield ModelOffer(
                model,
                problem
                or _explain_unusable_model(provider, model)
                or (ABSENT_REASON if is_absent else ""),
            )


def _explain_unusable_model(provider: Provider, model: ModelInfo) -> str:
    if not is_allowed(model.id, provider.config):
        return DISABLED_REASON
    return "" if find_service(model) is not None else f"protocol not spoken yet ({model.npm})"


def find_newest_model(providers: Providers, name: str, selection: str) -> ModelRef | None:
    """Return the newest usable model for a name without a provider: a model's id, a word of it,
    or its beginning.

    Of the first provider that has a match: that of `selection`, the `provider/model` in use, is
    searched before the others. None: no model matches.
    """
    # A name such as `sonnet` exists at several providers: a subagent should not
    # change the one that pays.
    current_provider = selection.partition("/")[0]
    for usable in sorted(
        providers.list_usable(), key=lambda usable: usable.provider.id != current_provider
    ):
        models = providers.list_models(usable.provider.id).values()
        by_id = [model for model in models if model.id == name]
        matching = by_id or [
            model for model in models if name in model.id.split("/")[-1].split("-")
        ]
        matching = matching or [model for model in models if model.id.startswith(name)]
        if matching:
            newest = max(matching, key=lambda model: model.release_date)
            return ModelRef(provider_id=usable.provider.id, model_id=newest.id)
    return None
