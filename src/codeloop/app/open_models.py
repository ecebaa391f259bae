"""Models as the loop opens them: each once, so that what an adapter remembers of a session's requests is kept."""

from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.model.chat import ChatModel, ModelInfo
from codeloop.model.providers import Providers
from codeloop.model.testing.replay import RecordingModel, ReplayModel, check_recordable
from codeloop.model.testing.script import Places


class OpenModels:
    """The models of the provider table. With `record`, what they answer is also written there.

    Raises CodeloopError when `record` can't be written.
    """

    def __init__(self, providers: Providers, places: Places, record: Path | None = None) -> None:
        self._providers = providers
        self._places = places
        self._record = record
        self._open: dict[str, ChatModel] = {}
        self._recorders: list[RecordingModel] = []
        self._keys = providers.credentials.stamp()
        if record is not None:
            check_recordable(record)

    def open(self, ref: str) -> ChatModel:
        """Return the model `provider/model`, the same object each time until the stored keys change."""
        keys = self._providers.credentials.stamp()
        if keys != self._keys:
            self._keys = keys
            self._open.clear()
        model = self._open.get(ref)
        if model is None:
            model = self._providers.open(ref)
            if self._record is not None:
                model = RecordingModel(model, self._record, self._places)
                self._recorders.append(model)
            self._open[ref] = model
        return model

    def problems(self) -> list[str]:
        """Return why the recording is not complete."""
        return [recorder.problem for recorder in self._recorders if recorder.problem][:1]

    def check(self, ref: str) -> None:
        """Raise UnknownModel when there is no such model."""
        self._providers.info(ref)

    def small(self, ref: str) -> str | None:
        """Return the small model to use beside `ref`."""
        return self._providers.small(ref)

    async def default(self, chosen: str | None) -> str:
        """Return the `provider/model` to use; see `Providers.default`."""
        return await self._providers.default(chosen)


class OneModel:
    """One model under every name: a recording, a script, or what a test or a program brings along."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._model.info

    def open(self, ref: str) -> ChatModel:
        """Return the model; the name does not matter."""
        del ref
        return self._model

    def problems(self) -> list[str]:
        """Return what of a recording did not fit."""
        return self._model.problems() if isinstance(self._model, ReplayModel) else []

    def check(self, ref: str) -> None:
        """Accept every name."""
        del ref

    def small(self, ref: str) -> str | None:
        """Return none: a recording holds no titles that were not asked for."""
        del ref

    async def default(self, chosen: str | None) -> str:
        """Return the model's own name."""
        del chosen
        return self._model.info.ref


Source = OpenModels | OneModel


def source_of(settings: ProjectSettings, providers: Providers) -> Source:
    """Return the models of a project: those of the provider table, or a recording.

    Raises CodeloopError when the recording can't be read or written.
    """
    startup, place = settings.startup, settings.place
    places = Places(str(place.directory), str(place.root))
    if startup.replay is not None:
        return OneModel(ReplayModel(startup.replay, places, pace=startup.pace))
    return OpenModels(providers, places, startup.record)
