"""The agents, models and permission profiles of a project,
and the ones that a tab's next prompt uses.

Commands that switch them are in `actions/choices.py`;
the status bar shows them, and the prompt completes their names.
"""

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from codeloop.client.target import Target
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.schema.api.agents import AGENT_LIST, Agent
from codeloop.schema.api.providers import CONFIG_PROVIDERS, Model, UsableProviders
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import NO_VARIANT, ModelRef, parse_model_name
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PROFILE_KEY, parse_profile
from codeloop.schema.wire import replace
from codeloop.tui.settings.configuration import read_configuration
from codeloop.tui.settings.model_memory import ModelMemory
from codeloop.tui.settings.ui_launch import UiLaunch
from codeloop.tui.settings.ui_settings import UiSettings, write_setting
from codeloop.tui.state.late_client import LateClient
from codeloop.tui.widgets.prompt.completion.completer import ClientCompleter, PromptCommand
from codeloop.tui.widgets.prompt.history.prompt_store import PromptStore
from codeloop.tui.widgets.prompt.prompt import PromptInput
from codeloop.tui.widgets.prompt.prompt_settings import PromptSettings
from codeloop.tui.widgets.session_tab import SessionTab

LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
"""Hosts of model servers that run on this machine."""


class Choices:
    """The agents and models of a project, known once it is open, and which of them a tab uses.

    It also creates the tabs' prompts, whose completion needs the same client.
    """

    def __init__(
        self, launch: UiLaunch, settings: UiSettings, commands: Sequence[PromptCommand] = ()
    ) -> None:
        """`commands`: the program's commands, completed before the project's."""
        self.settings = settings
        self.client = LateClient()
        self.agents: list[Agent] = []
        self.providers: UsableProviders | None = None
        self.connection_problem = ""
        """Why the server can't be reached, as the status bar shows it; "" while it can be."""
        self.on_connection_change: Callable[[], object] = lambda: None
        """Called when `connection_problem` has changed: nothing else may happen for long
        that draws the status bar.
        """
        self.model_memory = ModelMemory(launch.state_folder)
        self._configured_model: ModelRef | None = None
        self._profile = ""
        self._launch = launch
        self._commands = commands
        self._store = PromptStore(launch.prompt_folder)

    async def connect(self, target: Target) -> None:
        """Load the choices from a target."""
        self.client.set_client(target.client)
        if target.connection is not None:
            target.connection.on_report = self.report_connection
        await self.reload()

    async def reload(self) -> None:
        """Reload the choices."""
        client, no_arguments = self.client, NoArguments()
        self.agents, self.providers, configuration = await asyncio.gather(
            client.call(AGENT_LIST, no_arguments),
            client.call(CONFIG_PROVIDERS, no_arguments),
            read_configuration(client),
        )
        self._configured_model = parse_model_name(configuration.get("model"))
        self._profile = str(configuration.get(PROFILE_KEY) or "")

    def save(self, key: str, value: str) -> None:
        """Save a choice for the next start. Raises CodeloopError when it can't be written."""
        if self._launch.own_settings is not None:
            write_setting(self._launch.own_settings, key, value)

    def report_connection(self, text: str) -> None:
        """Note, for the status bar, what the connection reports: that the server is lost,
        or is back.
        """
        # The connection reports in sentences, for line mode, too;
        # this is the one that ends an outage.
        self.connection_problem = "" if text.endswith("is back.") else text
        self.on_connection_change()

    def create_prompt(self) -> PromptInput:
        """Return a new prompt widget."""
        # Entries of any other type are reported at the start, and left at their defaults.
        keys = {
            name: keys
            for name, keys in self.settings.keybinds.items()
            if isinstance(keys, str) or keys is False
        }
        return PromptInput(
            ClientCompleter(self.client, self._commands, self._launch.directory),
            self._store,
            PromptSettings(keys=keys, vim=self.settings.vim),
        )

    def close(self) -> None:
        """Release the drafts for the next process."""
        self._store.close()

    def find_agent(self, tab: SessionTab) -> str | None:
        """Return the name of the agent of a tab's next prompt;
        None: the agents are not known yet.
        """
        agent_name = tab.agent or (tab.session.agent if tab.session else None) or self._launch.agent
        return agent_name or next((agent.name for agent in self.primary_agents), None)

    def get_profile(self, tab: SessionTab) -> str:
        """Return the permission profile of a tab's session; "": none was chosen or configured."""
        metadata = tab.session.metadata if tab.session is not None else {PROFILE_KEY: tab.profile}
        name = str((metadata or {}).get(PROFILE_KEY) or self._profile)
        return parse_profile(name) or name

    @property
    def primary_agents(self) -> list[Agent]:
        """The agents that the user can talk to."""
        return [agent for agent in self.agents if agent.mode != "subagent" and not agent.hidden]

    def get_chosen_model(self, tab: SessionTab) -> ModelRef | None:
        """Return the model chosen for a tab's next prompt; None: the agent's or the configured one.

        What was chosen in the tab comes first, then the session's last model, then the command
        line's; where nothing is configured either, the model that was used last.
        """
        agent_model = self._get_agent_model(tab)
        session = tab.session
        if tab.model is not None or (tab.agent is not None and agent_model is not None):
            return tab.model or agent_model
        if session is not None and session.model is not None:
            model = session.model
            variant = None if model.variant == NO_VARIANT else model.variant
            return ModelRef(provider_id=model.provider_id, model_id=model.id, variant=variant)
        if (
            self._launch.model is not None
            or agent_model is not None
            or self._configured_model is not None
        ):
            return self._launch.model
        # Nothing is configured: the model that was used last.
        return next(iter(self.list_usable_models(self.model_memory.read().recent)), None)

    def resolve_model(self, tab: SessionTab) -> ModelRef | None:
        """Return the model that a tab's next prompt goes to;
        None: there is none, or the project is not open.
        """
        model = self.get_chosen_model(tab) or self._get_agent_model(tab) or self._configured_model
        if model is not None or self.providers is None or not self.providers.providers:
            return model
        # The default model of the first provider.
        provider_id = self.providers.providers[0].id
        model_id = self.providers.default.get(provider_id)
        return (
            ModelRef(provider_id=provider_id, model_id=model_id) if model_id is not None else None
        )

    def require_model(self, tab: SessionTab) -> ModelRef:
        """Return the model that a tab's next prompt goes to.
        Raises UsageProblem if there is none.
        """
        model = self.resolve_model(tab)
        if model is None:
            raise UsageProblem("No model can be used yet. /connect sets one up.")
        return model

    def find_local_server(self, tab: SessionTab) -> str:
        """Return the name of the local model server that is used because nothing else was chosen;
        "": none is.
        """
        if (
            self.get_chosen_model(tab) is not None
            or self._get_agent_model(tab) is not None
            or self._configured_model is not None
        ):
            return ""
        entry = self.find_model_entry(tab)
        if (
            entry is None
            or self.providers is None
            or urlsplit(entry.api.url).hostname not in LOCAL_HOSTS
        ):
            return ""
        providers = (each for each in self.providers.providers if each.id == entry.provider_id)
        # `custom`: it is used without a key, so it was found on this machine, not set up.
        return next((each.name for each in providers if each.source == "custom"), "")

    def list_usable_models(self, names: Sequence[str]) -> list[ModelRef]:
        """Return the usable models among `names` (`provider/model`),
        each with the effort last used with it.
        """
        variants = self.model_memory.read().variants
        models: list[ModelRef] = []
        for name in names:
            model = parse_model_name(name)
            entry = self._find_entry(model) if model is not None else None
            if model is not None and entry is not None:
                variant = variants.get(name)
                models.append(
                    replace(model, variant=variant if variant in (entry.variants or {}) else None)
                )
        return models

    def use_model(self, tab: SessionTab, model: ModelRef) -> None:
        """Use a model for a tab's next prompts, and remember it as the one used last."""
        tab.model = model
        self.model_memory.add_recent(model)

    def find_model_entry(self, tab: SessionTab) -> Model | None:
        """Return the catalog's entry for a tab's model, or None."""
        model = self.resolve_model(tab)
        return self._find_entry(model) if model is not None else None

    def _get_agent_model(self, tab: SessionTab) -> ModelRef | None:
        """Return the model that is configured for a tab's agent."""
        name = self.find_agent(tab)
        return next((agent.model for agent in self.agents if agent.name == name), None)

    def _find_entry(self, model: ModelRef) -> Model | None:
        providers = self.providers.providers if self.providers is not None else ()
        provider = next((each for each in providers if each.id == model.provider_id), None)
        return provider.models.get(model.model_id) if provider is not None else None

    def list_variants(self, tab: SessionTab) -> list[str]:
        """Return the thinking efforts of a tab's model."""
        entry = self.find_model_entry(tab)
        return list(entry.variants or {}) if entry is not None else []


def find_model(choices: Choices, name: str) -> ModelRef:
    """Return a model by its name, with or without its provider. Raises UsageProblem."""
    providers = choices.providers.providers if choices.providers is not None else ()
    names = [f"{provider.id}/{model_id}" for provider in providers for model_id in provider.models]
    matches = (
        [name] if name in names else [each for each in names if each.partition("/")[2] == name]
    )
    if len(matches) == 1:
        return choices.list_usable_models(matches)[0]
    if matches:
        raise UsageProblem(f"Several providers have {name}: {', '.join(matches)}.")
    raise UsageProblem(
        f"There is no model {name}.{format_suggestion(find_similar(name, names, parts=True))} /models lists all."
    )
