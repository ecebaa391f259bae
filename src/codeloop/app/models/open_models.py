"""Opens models for the loop, each once, so that adapters keep their per-session caches."""

from collections.abc import Callable
from typing import Protocol

from codeloop.app.settings import ProjectSettings
from codeloop.model.chat import ChatModel, ModelInfo
from codeloop.model.providers import Providers, list_choices

SMALL = "experimental.provider.small_model"
"""The hook by which extensions choose a small model; see `app.models.small`."""


class Recorder(Protocol):
    """Writes down what models answer."""

    def wrap(self, model: ChatModel) -> ChatModel:
        """Return the model whose answers are written down."""
        ...

    def list_problems(self) -> list[str]:
        """Return why the recording is not complete."""
        ...


def _find_no_model(ref: str) -> None:
    del ref


class OpenModels:
    """The models of the provider table; `recorder` writes down what they answer."""

    def __init__(self, providers: Providers, recorder: Recorder | None = None) -> None:
        self._providers = providers
        self._recorder = recorder
        self._open: dict[str, ChatModel] = {}
        self._signed_in: Callable[[str], ChatModel | None] = _find_no_model
        self.smaller: dict[str, str] = {}
        """The small models that extensions chose, by provider; "": they were asked."""
        self._keys = providers.credentials.read_stamp()

    def open(self, ref: str) -> ChatModel:
        """Return the model `provider/model`, the same object each time until the stored keys change."""
        keys = self._providers.credentials.read_stamp()
        if keys != self._keys:
            self._keys = keys
            self._open.clear()
        model = self._open.get(ref)
        if model is None:
            model = self._signed_in(ref) or self._providers.open_model(ref)
            if self._recorder is not None:
                model = self._recorder.wrap(model)
            self._open[ref] = model
        return model

    def sign_in(self, open_model: Callable[[str], ChatModel | None]) -> None:
        """Have those models opened by `open_model` from now on that it returns: a plugin signs in for them."""
        self._signed_in = open_model
        self._open.clear()

    def problems(self) -> list[str]:
        """Return why the recording is not complete."""
        return self._recorder.list_problems() if self._recorder is not None else []

    def check(self, ref: str) -> None:
        """Raise UnknownModel when there is no such model."""
        self._providers.find_model(ref)

    def variant(self, ref: str, name: str) -> str | None:
        """Return the variant to store for the one that was chosen; None: none. Raises UnknownModel."""
        from codeloop.model.catalog.variants import resolve_variant

        return resolve_variant(self._providers.find_model(ref), name)

    def small_model(self, ref: str) -> str | None:
        """Return the small model that goes with `ref`: the one that extensions chose, if they did."""
        if smaller := self.smaller.get(ref.partition("/")[0]):
            return smaller
        return self._providers.choose_small_model(ref)

    def cheapest(self, ref: str) -> str | None:
        """Return the cheapest model of the provider of `ref`; None while answers are recorded."""
        if self._recorder is not None:
            return None
        from codeloop.model.catalog.default_model import choose_cheapest_model

        own = self._providers.find_model(ref)
        return choose_cheapest_model(own, list_choices(self._providers, own.provider_id).values()).ref

    async def default(self, model: str | None) -> str:
        """Return the `provider/model` to use; see `Providers.default`."""
        return await self._providers.choose_default(model)


class OneModel:
    """One model under every name: a recording, a script, or one that a test or a program passes in."""

    def __init__(self, model: ChatModel, problems: Callable[[], list[str]] = list) -> None:
        """`problems` says what of a recording did not fit."""
        self._model = model
        self._problems = problems

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._model.info

    def open(self, ref: str) -> ChatModel:
        """Return the model; the name does not matter."""
        del ref
        return self._model

    def problems(self) -> list[str]:
        """Return where a recording did not match the requests, one a line."""
        return self._problems()

    def check(self, ref: str) -> None:
        """Accept every name."""
        del ref

    def variant(self, ref: str, name: str) -> str | None:
        """Accept every variant: what the model says does not depend on it."""
        del ref
        return name

    def small_model(self, ref: str) -> str | None:
        """Return none: a recording holds no titles that were not asked for."""
        del ref

    def cheapest(self, ref: str) -> str | None:
        """Return none, as `small_model`."""
        del ref

    async def default(self, model: str | None) -> str:
        """Return the model's own name."""
        del model
        return self._model.info.ref


Source = OpenModels | OneModel


def source_of(settings: ProjectSettings, providers: Providers) -> Source:
    """Return the models of a project: those of the provider table, or a recording.

    Raises CodeloopError when the recording can't be read or written.
    """
    startup, project_root = settings.startup, settings.project_root
    if startup.replay is None and startup.record is None:
        return OpenModels(providers)  # what plays and makes recordings is not loaded
    from codeloop.model.testing.answer_recorder import AnswerRecorder
    from codeloop.model.testing.replay import ReplayModel
    from codeloop.model.testing.script import ProjectPaths

    places = ProjectPaths(str(project_root.directory), str(project_root.root))
    if startup.replay is not None:
        model = ReplayModel(startup.replay, places, speed=startup.pace)
        return OneModel(model, model.list_problems)
    if startup.record is not None:
        return OpenModels(providers, AnswerRecorder(startup.record, places))
    return OpenModels(providers)
