"""The choices of a session (agent, model, thinking effort, profile),
converted to modes and options of the protocol.
"""

import asyncio

from msgspec import Struct

from codeloop.acp.connection import INVALID_PARAMS, RpcError
from codeloop.client.client import Client
from codeloop.schema.api.agents import AGENT_LIST, Agent
from codeloop.schema.api.config import CONFIG_GET
from codeloop.schema.api.providers import CONFIG_PROVIDERS, Model, UsableProviders
from codeloop.schema.api.session_requests import SESSION_UPDATE, UpdateSession
from codeloop.schema.message import NO_VARIANT, ModelRef, Session, parse_model_name
from codeloop.schema.operation import NoArguments
from codeloop.schema.permission import PROFILE_DESCRIPTIONS, PROFILE_KEY, parse_profile
from codeloop.schema.wire import JSON, replace

# The ids of options. That of the profile is `PROFILE_KEY`.
MODE, MODEL, EFFORT = "mode", "model", "effort"
_DEFAULT_EFFORT = "default"
"""The value for no chosen effort: the service decides."""


class AvailableChoices(Struct, frozen=True):
    """The agents and models of a directory. `model`,
    `profile`: those in use where the user has chosen none.
    """

    agents: list[Agent]
    providers: UsableProviders
    model: ModelRef | None
    profile: str

    def find_model(self, model: ModelRef | None) -> Model | None:
        """Return the entry of a model in the catalog; None: it has none."""
        if model is None:
            return None
        provider = next(
            (each for each in self.providers.providers if each.id == model.provider_id), None
        )
        return provider.models.get(model.model_id) if provider is not None else None


async def load_available_choices(client: Client) -> AvailableChoices:
    """Load the agents and models of the client's directory."""
    no_arguments = NoArguments()
    agents, providers, configuration = await asyncio.gather(
        client.call(AGENT_LIST, no_arguments),
        client.call(CONFIG_PROVIDERS, no_arguments),
        client.call(CONFIG_GET, no_arguments),
    )
    model = parse_model_name(configuration.get("model"))
    if model is None and providers.providers:
        provider_id = providers.providers[0].id
        if (model_id := providers.default.get(provider_id)) is not None:
            model = ModelRef(provider_id=provider_id, model_id=model_id)
    return AvailableChoices(
        agents=[agent for agent in agents if agent.mode != "subagent" and not agent.hidden],
        providers=providers,
        model=model,
        profile=str(configuration.get(PROFILE_KEY) or "auto"),
    )


class SessionChoices(Struct):
    """The user's choices for the next prompts of a session;
    None: as its agent or the configuration say.

    `directories`: the additional ones that the editor has named.
    """

    agent: str | None = None
    model: ModelRef | None = None
    directories: list[str] = []

    def resolve_agent(self, session: Session, available: AvailableChoices) -> str:
        """Return the name of the agent for the next prompt; "": there is none."""
        return self.agent or session.agent or next((agent.name for agent in available.agents), "")

    def resolve_model(self, session: Session, available: AvailableChoices) -> ModelRef | None:
        """Return the model for the next prompt; None: none is usable."""
        if self.model is not None:
            return self.model
        if session.model is not None:
            session_model = session.model
            variant = None if session_model.variant == NO_VARIANT else session_model.variant
            return ModelRef(
                provider_id=session_model.provider_id, model_id=session_model.id, variant=variant
            )
        name = self.resolve_agent(session, available)
        agent_model = next((agent.model for agent in available.agents if agent.name == name), None)
        return agent_model or available.model


def build_state(session: Session, choices: SessionChoices, available: AvailableChoices) -> JSON:
    """Return a session's options and modes in the form of version 1."""
    # Modes were there before options, and older editors know only them,
    # so the agents are sent as both.
    state: JSON = {"configOptions": build_options(session, choices, available)}
    modes = build_modes(session, choices, available)
    return state if modes is None else {**state, "modes": modes}


def build_modes(
    session: Session, choices: SessionChoices, available: AvailableChoices
) -> JSON | None:
    """Return the agents as modes; None: there are no agents."""
    if not available.agents:
        return None
    modes = [
        _make_choice(agent.name, agent.name.capitalize(), agent.description)
        for agent in available.agents
    ]
    return {
        "currentModeId": choices.resolve_agent(session, available),
        "availableModes": [{"id": mode.pop("value"), **mode} for mode in modes],
    }


def build_options(
    session: Session, choices: SessionChoices, available: AvailableChoices
) -> list[JSON]:
    """Return the options, each with its possible values and its present value."""
    options: list[JSON] = []
    if available.agents:
        agents = [
            _make_choice(agent.name, agent.name.capitalize(), agent.description)
            for agent in available.agents
        ]
        options.append(
            _make_select(MODE, "Agent", MODE, choices.resolve_agent(session, available), agents)
        )
    model = choices.resolve_model(session, available)
    details = available.find_model(model)
    if model is not None and details is not None:
        groups: list[JSON] = [
            {
                "group": provider.id,
                "name": provider.name,
                "options": [
                    _make_choice(f"{provider.id}/{each.id}", each.name)
                    for each in provider.models.values()
                ],
            }
            for provider in available.providers.providers
        ]
        options.append(
            _make_select(MODEL, "Model", MODEL, f"{model.provider_id}/{model.model_id}", groups)
        )
        if details.variants:
            efforts = [
                _make_choice(_DEFAULT_EFFORT, "As it does by itself"),
                *(_make_choice(each, each) for each in details.variants),
            ]
            options.append(
                _make_select(
                    EFFORT, "Effort", "thought_level", model.variant or _DEFAULT_EFFORT, efforts
                )
            )
    profiles = [
        _make_choice(name, name.capitalize(), text) for name, text in PROFILE_DESCRIPTIONS.items()
    ]
    name = str((session.metadata or {}).get(PROFILE_KEY) or available.profile)
    profile = parse_profile(name) or name
    options.append(_make_select(PROFILE_KEY, "Permissions", None, profile, profiles))
    return options


async def choose_value(
    client: Client,
    session: Session,
    choices: SessionChoices,
    available: AvailableChoices,
    option: str,
    value: str,
) -> Session:
    """Set an option to a value, and return the session.

    The profile is stored with the session, which is returned updated;
    any other option changes `choices`.
    `option`: its id, such as `model`. Raises RpcError for an option or a value that is not offered.
    """
    options = {each["id"]: each for each in build_options(session, choices, available)}
    if option not in options:
        raise RpcError(INVALID_PARAMS, f"There is no option {option!r} in this session.")
    if option == PROFILE_KEY:
        value = parse_profile(value) or value
    if value not in _list_values(options[option]):
        raise RpcError(INVALID_PARAMS, f"{option} can't be {value!r} here.")
    if option == PROFILE_KEY:
        # It is stored because it holds for the running turn and for other clients
        # of the session as well.
        metadata = {**(session.metadata or {}), PROFILE_KEY: value}
        return await client.call(
            SESSION_UPDATE, UpdateSession(session_id=session.id, metadata=metadata)
        )
    if option == MODE:
        choices.agent = value
    elif option == MODEL:
        choices.model = parse_model_name(value)
    elif option == EFFORT and (model := choices.resolve_model(session, available)) is not None:
        choices.model = replace(model, variant=None if value == _DEFAULT_EFFORT else value)
    return session


def _list_values(option: JSON) -> set[str]:
    """Return the values of an option; its entries are values, or groups of values."""
    entries: list[JSON] = option["options"]
    return {str(value["value"]) for entry in entries for value in entry.get("options", [entry])}


def _make_select(
    option: str, name: str, category: str | None, current_value: str, entries: list[JSON]
) -> JSON:
    """Make an option that has one of several values; `entries`: the values, or groups of them."""
    select: JSON = {
        "type": "select",
        "id": option,
        "name": name,
        "currentValue": current_value,
        "options": entries,
    }
    if category is not None:
        select["category"] = category
    return select


def _make_choice(value: str, name: str, description: str | None = None) -> JSON:
    choice: JSON = {"value": value, "name": name}
    if description:
        choice["description"] = description
    return choice
