"""Makes the provider table, and opens the models that turns ask: those of the table, a recording,
or one of a test.

Each model is opened once, so that adapters keep their caches of each session.
"""

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import Protocol

from codeloop.app.settings import ProjectSettings, digest_surroundings
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.chat import ChatModel, ModelInfo
from codeloop.model.credentials.store import Credentials
from codeloop.model.provider import ConfigOrigins
from codeloop.model.providers import Providers, list_choices
from codeloop.schema.limits import CATALOG_DELAY
from codeloop.schema.message import ModelRef

SMALL_MODEL_HOOK = "experimental.provider.small_model"
"""The hook with which extensions choose a small model; see `app.models.choose_small_model`."""


class Recorder(Protocol):
    """Records the answers of models."""

    def wrap(self, model: ChatModel) -> ChatModel:
        """Return a model whose answers are recorded."""
        ...

    def list_problems(self) -> list[str]:
        """Return the reasons why the recording is incomplete, one per line."""
        ...


def _find_no_model(ref: str) -> None:
    del ref


class OpenModels:
    """The models of the provider table; a `recorder` records their answers."""

    def __init__(self, providers: Providers, recorder: Recorder | None = None) -> None:
        self._providers = providers
        self._recorder = recorder
        self._models: dict[str, ChatModel] = {}
        self._open_signed_in: Callable[[str], ChatModel | None] = _find_no_model
        self.small_models: dict[str, str] = {}
        """The small models that extensions chose, by provider; "": none was chosen."""
        self._credentials_stamp = providers.credentials.read_stamp()

    def open(self, ref: str) -> ChatModel:
        """Return the model `provider/model`, the same object each time until
        the stored keys change.
        """
        # Signing in, even in another process, changes the keys that open models hold.
        stamp = self._providers.credentials.read_stamp()
        if stamp != self._credentials_stamp:
            self._credentials_stamp = stamp
            self._models.clear()
        model = self._models.get(ref)
        if model is None:
            model = self._open_signed_in(ref) or self._providers.open_model(ref)
            if self._recorder is not None:
                model = self._recorder.wrap(model)
            self._models[ref] = model
        return model

    def use_sign_ins(self, open_signed_in: Callable[[str], ChatModel | None]) -> None:
        """Open models with `open_signed_in` from now on,
        unless it returns None: no plugin signs in for that model.
        """
        self._open_signed_in = open_signed_in
        self._models.clear()

    def list_problems(self) -> list[str]:
        """Return the reasons why the recording is incomplete, one per line."""
        return self._recorder.list_problems() if self._recorder is not None else []

    def check(self, ref: str) -> None:
        """Raise UnknownModel when there is no such model."""
        self._providers.find_model(ref)

    def resolve_variant(self, ref: str, name: str) -> str | None:
        """Return the variant to store when `name` is chosen; None: the service's default.
        Raises UnknownModel.
        """
        from codeloop.model.catalog.variants import resolve_variant

        return resolve_variant(self._providers.find_model(ref), name)

    def find_small_model(self, ref: str) -> str | None:
        """Return the small model for the provider of `ref`: an extension's choice,
        else the provider table's.
        """
        chosen = self.small_models.get(ref.partition("/")[0])
        return chosen or self._providers.choose_small_model(ref)

    def find_cheapest_model(self, ref: str) -> str | None:
        """Return the cheapest model of the provider of `ref`; None while answers are recorded."""
        if self._recorder is not None:
            return None
        from codeloop.model.catalog.model_choice import choose_cheapest_model

        used_model = self._providers.find_model(ref)
        return choose_cheapest_model(
            used_model, list_choices(self._providers, used_model.provider_id).values()
        ).ref

    async def choose_default(self, model: str | None) -> str:
        """Return `model`, else the `provider/model` to use if none is named;
        see `model.default_model`.
        """
        if model:
            return self._providers.find_model(model).ref
        # Imported late: most sessions name a model.
        from codeloop.model.default_model import choose_default

        return await choose_default(self._providers)


class SingleModel:
    """One model under every name: a recording, a script,
    or one that a test or a program passes in.
    """

    def __init__(self, model: ChatModel, problems: Callable[[], list[str]] = list) -> None:
        """`problems`: returns where a recording did not match the requests."""
        self._model = model
        self._problems = problems

    @property
    def info(self) -> ModelInfo:
        """The data of the model: names, limits, prices."""
        return self._model.info

    def open(self, ref: str) -> ChatModel:
        """Return the model; the name does not matter."""
        del ref
        return self._model

    def list_problems(self) -> list[str]:
        """Return where a recording did not match the requests, one per line."""
        return self._problems()

    def check(self, ref: str) -> None:
        """Accept every name."""
        del ref

    def resolve_variant(self, ref: str, name: str) -> str | None:
        """Accept every variant, which the answers don't depend on."""
        del ref
        return name

    def find_small_model(self, ref: str) -> str | None:
        """Return None: a recording has no answers to requests for titles."""
        del ref

    def find_cheapest_model(self, ref: str) -> str | None:
        """Return None, as `find_small_model` does."""
        del ref

    async def choose_default(self, model: str | None) -> str:
        """Return the model's own name."""
        del model
        return self._model.info.ref


ModelSource = OpenModels | SingleModel


def open_model_source(settings: ProjectSettings, providers: Providers) -> ModelSource:
    """Open the source of a project's models: the provider table, or a recording.

    Raises CodeloopError when the recording can't be read or written.
    """
    startup, project_root = settings.startup, settings.project_root
    if startup.replay is None and startup.record is None:
        return OpenModels(providers)
    # Imported late: recordings are for tests.
    from codeloop.model.testing.replay import ReplayModel
    from codeloop.model.testing.script import ProjectPaths

    paths = ProjectPaths(project_root.directory_name, project_root.root_name)
    if startup.replay is not None:
        model = ReplayModel(startup.replay, paths, speed=startup.pace)
        return SingleModel(model, model.list_problems)
    if startup.record is not None:
        from codeloop.model.testing.answer_recorder import AnswerRecorder

        return OpenModels(providers, AnswerRecorder(startup.record, paths))
    return OpenModels(providers)


def make_providers(settings: ProjectSettings) -> Providers:
    """Make the provider table of a project."""
    return Providers(
        settings.config,
        Catalog(settings.paths.cache),
        Credentials(settings.paths.credentials_file),
        settings.environment,
        origins=ConfigOrigins(settings.loaded.describe_origin, settings.loaded.own_providers),
        list_plugin_providers=cache(partial(_find_signing_providers, settings)),
    )


def find_newest_model(
    settings: ProjectSettings, providers: Providers, name: str
) -> ModelRef | None:
    """Return the newest usable model for a name without a provider, such as `sonnet`;
    None if there is none.
    """
    from codeloop.model import usable_models

    return usable_models.find_newest_model(providers, name, settings.config.model or "")


def _find_signing_providers(settings: ProjectSettings) -> frozenset[str]:
    """Return the providers whose requests the user's plugins send or sign.
    A project's plugins get no credentials.
    """
    if not settings.extensions:
        return frozenset()
    from codeloop.extend.host.offer_cache import find_sign_in_providers

    digests = [each.digest for each in settings.extensions if not each.is_project]
    return find_sign_in_providers(
        settings.paths.state / "extensions", partial(digest_surroundings, settings), digests
    )


async def refresh_catalog_later(settings: ProjectSettings) -> None:
    """Update the catalog of models, unless this is cancelled before CATALOG_DELAY."""
    await asyncio.sleep(CATALOG_DELAY.seconds)
    from codeloop.model.catalog.refresh import refresh_catalog_if_due

    await refresh_catalog_if_due(settings.paths.cache, settings.environment, Catalog())
