"""What a person can choose for the next prompts: agents, models; and what is known of them."""

from collections.abc import Sequence
from pathlib import Path

from codeloop.client.target import Target
from codeloop.kit.terminal_text import one_line
from codeloop.schema.agent import Agent
from codeloop.schema.api.providers import Model, UsableProviders
from codeloop.schema.message import ModelRef
from codeloop.schema.operation import AGENT_LIST, CONFIG_PROVIDERS, NoArguments
from codeloop.tui.prompt.completion import ClientCompleter, PromptCommand
from codeloop.tui.prompt.prompt import PromptInput
from codeloop.tui.prompt.settings import PromptSettings
from codeloop.tui.prompt.store import PromptStore
from codeloop.tui.screen.session_tab import SessionTab
from codeloop.tui.screen.status_bar import Standing
from codeloop.tui.settings.keys import Keymap
from codeloop.tui.settings.launch import UiLaunch
from codeloop.tui.settings.settings import UiSettings, write_setting
from codeloop.tui.state.late_client import LateClient


class Choices:
    """Knows the agents and models of the project once it is open, and makes prompts, which wait for it."""

    def __init__(self, launch: UiLaunch, settings: UiSettings, own: Sequence[PromptCommand] = ()) -> None:
        """Take the commands of the program in `own`: they are completed before the project's."""
        self.settings = settings
        self.client = LateClient()
        self.agents: list[Agent] = []
        self.providers: UsableProviders | None = None
        self.problem = ""
        """What is wrong with the connection."""
        self._launch = launch
        self._own = own
        self._store = PromptStore(launch.state_folder)

    async def connect(self, target: Target) -> None:
        """Learn what there is to choose from."""
        self.client.become(target.client)
        if target.link is not None:
            target.link.heard = self.heard
        await self.look()

    async def look(self) -> None:
        """Learn anew what there is to choose from."""
        self.agents = await self.client.call(AGENT_LIST, NoArguments())
        self.providers = await self.client.call(CONFIG_PROVIDERS, NoArguments())

    def keep(self, key: str, value: str) -> None:
        """Keep a choice for the next time. Raises CodeloopError when it can't be written."""
        if self._launch.own_settings is not None:
            write_setting(self._launch.own_settings, key, value)

    def heard(self, text: str) -> None:
        """Take in what the connection to a server says of itself."""
        self.problem = "" if text.endswith("is back.") else text

    def prompt(self) -> PromptInput:
        """Return a new prompt."""
        keys = {name: keys for name, keys in self.settings.keybinds.items() if isinstance(keys, str)}
        return PromptInput(
            ClientCompleter(self.client, self._own), self._store, PromptSettings(keys=keys, vim=self.settings.vim)
        )

    def close(self) -> None:
        """Leave the drafts to whoever comes next."""
        self._store.drafts.close()

    def agent_of(self, tab: SessionTab) -> str | None:
        """Return the agent of a tab's next prompt."""
        given = tab.agent or (tab.session.agent if tab.session else None) or self._launch.agent
        return given or next((agent.name for agent in self.primary), None)

    @property
    def primary(self) -> list[Agent]:
        """The agents that a person can talk to."""
        return [agent for agent in self.agents if agent.mode != "subagent" and not agent.hidden]

    def model_of(self, tab: SessionTab) -> ModelRef | None:
        """Return the model of a tab's next prompt; None: as configured."""
        if tab.model is not None:
            return tab.model
        session = tab.session
        if session is not None and session.model is not None:
            model = session.model
            return ModelRef(provider_id=model.provider_id, model_id=model.id, variant=model.variant)
        return self._launch.model

    def details(self, tab: SessionTab) -> Model | None:
        """Return what is known of a tab's model."""
        model = self.model_of(tab)
        if model is None or self.providers is None:
            return None
        provider = next((each for each in self.providers.providers if each.id == model.provider_id), None)
        return provider.models.get(model.model_id) if provider is not None else None

    def variants(self, tab: SessionTab) -> list[str]:
        """Return the efforts that a tab's model can think with."""
        details = self.details(tab)
        return list(details.variants or {}) if details is not None else []

    def standing(self, tab: SessionTab, keys: Keymap, hint: str) -> Standing:
        """Return what the status bar says besides the session."""
        model, details = self.model_of(tab), self.details(tab)
        name = f"{model.provider_id}/{model.model_id}" if model is not None else ""
        variant = f" ({model.variant})" if model is not None and model.variant else ""
        directory = tab.session.directory if tab.session else self._launch.directory
        home = str(Path.home())
        place = f"~{directory.removeprefix(home)}" if directory.startswith(f"{home}/") else directory
        return Standing(
            agent=self.agent_of(tab) or "",
            model=one_line(name + variant, 60),
            place=one_line(f"{self._launch.server}  {place}".strip(), 100),
            window=int(details.limit.context) if details is not None else 0,
            problem=self.problem,
            hint=f"{key} commands" if (key := keys.shown("command_list")) else "",
            waiting=keys.leader if keys.is_waiting else hint,
            moves=self.settings.motion,
        )
