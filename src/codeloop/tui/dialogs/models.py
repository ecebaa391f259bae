"""The dialogs of models and of their thinking efforts: prices, context windows,
favourites and recent models.
"""

from collections.abc import Iterator, Sequence

from codeloop.client.formatting import format_count
from codeloop.schema.api.providers import CONFIG_PROVIDERS, PROVIDER_LIST, Model, ProviderDetails
from codeloop.schema.message import NO_VARIANT, ModelRef, format_model_ref
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.settings.model_memory import ModelMemory

FAVOURITES_GROUP, RECENT_GROUP = "Favourites", "Used last"


class ModelPicker(Picker[ModelRef]):
    """Lists models; closes with one, and with the thinking effort that was last chosen for it."""

    def __init__(
        self, context: DialogContext, memory: ModelMemory, current: ModelRef | None = None
    ) -> None:
        self._dialog_context = context
        self._memory = memory
        self._current = current
        self._shows_all = False
        actions = (
            PickAction("ctrl+f", "favourite", self._toggle_favourite),
            PickAction("ctrl+t", "thinking effort", self._choose_effort),
            PickAction("ctrl+a", "all providers", self._toggle_all),
        )
        source = PickSource(
            title="Models",
            load=self._load_rows,
            actions=actions,
            start=current,
            empty_message="No model can be used yet: add a provider first, or start a local server.",
            choose_label="use it",
        )
        super().__init__(source, context.get_styles)

    async def _load_rows(self) -> Sequence[Pick[ModelRef]]:
        client = self._dialog_context.client
        usable = (await client.call(CONFIG_PROVIDERS, NoArguments())).providers
        picks = list(self._group_picks(usable))
        if self._shows_all:
            known_providers = await client.call(PROVIDER_LIST, NoArguments())
            unusable = [
                each for each in known_providers.all if each.id not in known_providers.connected
            ]
            picks += [
                pick
                for provider in unusable
                for pick in self._list_picks(provider, describe_problem(provider))
            ]
        return picks

    def _group_picks(self, providers: Sequence[ProviderDetails]) -> Iterator[Pick[ModelRef]]:
        """Yield the favourite models, then those used last, then all others by provider."""
        picks = {
            format_model_ref(pick.value): pick
            for provider in providers
            for pick in self._list_picks(provider, "")
        }
        memory = self._memory.read()
        recent = [ref for ref in memory.recent if ref not in memory.favourites]
        for group, refs in ((FAVOURITES_GROUP, memory.favourites), (RECENT_GROUP, recent)):
            for ref in refs:
                # Taken out, so that no model is listed twice.
                # A remembered model may not exist any more.
                pick = picks.pop(ref, None)
                if pick is not None:
                    # The name of the provider, by which it was grouped, becomes the detail.
                    yield replace(pick, detail=pick.group, group=group)
        yield from picks.values()

    def _list_picks(self, provider: ProviderDetails, problem: str) -> Iterator[Pick[ModelRef]]:
        variants = self._memory.read().variants
        for model in provider.models.values():
            ref = ModelRef(provider_id=provider.id, model_id=model.id)
            name = format_model_ref(ref)
            variant = variants.get(name, "")
            is_current = self._current is not None and name == format_model_ref(self._current)
            if is_current and self._current is not None:
                ref = self._current
            elif variant in (model.variants or {}):
                ref = ModelRef(provider_id=provider.id, model_id=model.id, variant=variant)
            effort = f"thinks {ref.variant}" if ref.variant else ""
            status = "" if model.status == "active" else model.status
            detail = " · ".join(word for word in (effort, status) if word)
            yield Pick(
                ref,
                model.name,
                detail=detail,
                hint=describe_price_and_context(model),
                group=provider.name,
                mark="●" if is_current else "",
                search_text=name,
                problem=problem,
            )

    async def _toggle_favourite(self, model: ModelRef | None) -> bool:
        if model is not None:
            self._memory.toggle_favourite(format_model_ref(model))
        return model is not None

    async def _toggle_all(self, _model: ModelRef | None) -> bool:
        self._shows_all = not self._shows_all
        return True

    async def _choose_effort(self, model: ModelRef | None) -> bool:
        if model is None:
            return False
        choice = await self._dialog_context.ask(create_variant_picker(self._dialog_context, model))
        if choice is not None:
            self.dismiss(choice)
        return False


def create_variant_picker(context: DialogContext, model: ModelRef) -> Picker[ModelRef]:
    """Create a list of a model's thinking efforts that closes with the model and one of them."""

    async def list_variants() -> Sequence[Pick[ModelRef]]:
        usable = await context.client.call(CONFIG_PROVIDERS, NoArguments())
        models = [
            each.models.get(model.model_id)
            for each in usable.providers
            if each.id == model.provider_id
        ]
        variants = [name for each in models if each is not None for name in each.variants or {}]
        if not variants:
            return []
        default = replace(model, variant=None)
        picks = [
            Pick(default, NO_VARIANT, "as the service decides", mark="" if model.variant else "●")
        ]
        picks += [
            Pick(replace(model, variant=name), name, mark="●" if name == model.variant else "")
            for name in variants
        ]
        return picks

    source = PickSource(
        title=f"Thinking effort of {model.model_id}",
        load=list_variants,
        start=model,
        empty_message="This model has no thinking levels.",
    )
    return Picker(source, context.get_styles)


def describe_price_and_context(model: Model) -> str:
    """Return the prices per million tokens, and the size of the context window."""
    context = f"{format_count(model.limit.context)} tokens" if model.limit.context else ""
    cost = model.cost
    price = (
        f"${cost.input:g} in · ${cost.output:g} out" if cost.input or cost.output else "no price"
    )
    return " · ".join(word for word in (price, context) if word)


def describe_problem(provider: ProviderDetails) -> str:
    """Return why the models of an unconnected provider are unusable."""
    return f"needs a key ({provider.env[0]})" if provider.env else "is not set up"
