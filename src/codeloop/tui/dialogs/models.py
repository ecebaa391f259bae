"""The dialog of models: prices, context, favourites, recent ones, thinking effort, and why one is unusable."""

from collections.abc import Iterator, Sequence

from codeloop.client.numbers import format_count
from codeloop.schema.api.providers import Model, ProviderDetails
from codeloop.schema.message import NO_VARIANT, ModelRef
from codeloop.schema.operation import CONFIG_PROVIDERS, PROVIDER_LIST, NoArguments
from codeloop.tui.dialogs.parts.context import DialogContext
from codeloop.tui.dialogs.parts.model_memory import ModelMemory, reference
from codeloop.tui.dialogs.parts.picks import Pick, PickAction, PickSource
from codeloop.tui.dialogs.picker import Picker

FAVOURITES, RECENT = "Favourites", "Used last"


class ModelPicker(Picker[ModelRef]):
    """Closes with a model, and the thinking effort that was last chosen for it."""

    def __init__(self, context: DialogContext, memory: ModelMemory, current: ModelRef | None = None) -> None:
        self._dialog_context = context
        self._memory = memory
        self._current = current
        self._everything = False
        actions = (
            PickAction("ctrl+f", "favourite", self._is_model),
            PickAction("ctrl+t", "thinking effort", self._effort),
            PickAction("ctrl+a", "all providers", self._is_any),
        )
        source = PickSource(
            title="Models",
            load=self._load_rows,
            actions=actions,
            start=current,
            empty="No model can be used yet: add a provider first, or start a local server.",
            choose="use it",
        )
        super().__init__(source, context.colours)

    async def _load_rows(self) -> Sequence[Pick[ModelRef]]:
        client, none = self._dialog_context.client, NoArguments()
        usable = (await client.call(CONFIG_PROVIDERS, none)).providers
        picks = list(self._group_picks(usable))
        if self._everything:
            known_providers = await client.call(PROVIDER_LIST, none)
            others = [each for each in known_providers.all if each.id not in known_providers.connected]
            picks += [pick for provider in others for pick in self._picks_of(provider, why_not(provider))]
        return picks

    def _group_picks(self, providers: Sequence[ProviderDetails]) -> Iterator[Pick[ModelRef]]:
        """Yield favourites, then recent ones, then all others by provider."""
        picks = {reference(pick.value): pick for provider in providers for pick in self._picks_of(provider, "")}
        liked = self._memory.read()
        recent = [ref for ref in liked.recent if ref not in liked.favourites]
        for group, refs in ((FAVOURITES, liked.favourites), (RECENT, recent)):
            for ref in refs:
                pick = picks.pop(ref, None)
                if pick is not None:
                    yield Pick(pick.value, pick.title, pick.group, pick.hint, group, pick.mark, pick.also)
        yield from picks.values()

    def _picks_of(self, provider: ProviderDetails, problem: str) -> Iterator[Pick[ModelRef]]:
        variants = self._memory.read().variants
        for model in provider.models.values():
            ref = ModelRef(provider_id=provider.id, model_id=model.id)
            name = reference(ref)
            variant = variants.get(name, "")
            here = self._current is not None and name == reference(self._current)
            if here and self._current is not None:
                ref = self._current
            elif variant in (model.variants or {}):
                ref = ModelRef(provider_id=provider.id, model_id=model.id, variant=variant)
            effort = f"thinks {ref.variant}" if ref.variant else ""
            old = "" if model.status == "active" else model.status
            detail = " · ".join(word for word in (effort, old) if word)
            mark = "●" if here else ""
            yield Pick(ref, model.name, detail, figures(model), provider.name, mark, name, problem)

    async def _is_model(self, model: ModelRef | None) -> bool:
        if model is not None:
            self._memory.toggle(reference(model))
        return model is not None

    async def _is_any(self, _model: ModelRef | None) -> bool:
        self._everything = not self._everything
        return True

    async def _effort(self, model: ModelRef | None) -> bool:
        if model is None:
            return False
        model_chosen = await self._dialog_context.ask(variant_picker(self._dialog_context, model))
        if model_chosen is not None:
            self.dismiss(model_chosen)
        return False


def variant_picker(context: DialogContext, model: ModelRef) -> Picker[ModelRef]:
    """Return a list of a model's thinking efforts; it closes with the model and the chosen one."""

    async def list_variants() -> Sequence[Pick[ModelRef]]:
        usable = await context.client.call(CONFIG_PROVIDERS, NoArguments())
        models = [each.models.get(model.model_id) for each in usable.providers if each.id == model.provider_id]
        variants = [name for each in models if each is not None for name in each.variants or {}]
        plain = ModelRef(provider_id=model.provider_id, model_id=model.model_id)
        picks = [Pick(plain, NO_VARIANT, "as the service decides", mark="" if model.variant else "●")]
        for name in variants:
            ref = ModelRef(provider_id=model.provider_id, model_id=model.model_id, variant=name)
            picks.append(Pick(ref, name, mark="●" if name == model.variant else ""))
        return picks if variants else []

    source = PickSource(
        title=f"Thinking effort of {model.model_id}",
        load=list_variants,
        start=model,
        empty="This model has one way of thinking only.",
    )
    return Picker(source, context.colours)


def figures(model: Model) -> str:
    """Return the context and the prices per million tokens."""
    context = f"{format_count(model.limit.context)} tokens" if model.limit.context else ""
    cost = model.cost
    price = f"${cost.input:g} in · ${cost.output:g} out" if cost.input or cost.output else "no price"
    return " · ".join(word for word in (price, context) if word)


def why_not(provider: ProviderDetails) -> str:
    """Return why the models of an unconnected provider are unusable."""
    return f"needs a key ({provider.env[0]})" if provider.env else "is not set up"
