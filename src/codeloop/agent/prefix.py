"""What a run keeps of its requests from step to step, so that each is the one before with something added."""

from codeloop.agent.engine import Engine
from codeloop.agent.projection import turns_of
from codeloop.agent.prompt import system_prompt
from codeloop.model.chat import ModelInfo, Turn
from codeloop.schema.agent import Agent
from codeloop.schema.message import Session
from codeloop.store.conversation import Conversation, Entry


class Prefix:
    """Projected turns by entry, and system prompts by agent and model; what has not changed is not made again."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[Entry, ModelInfo, tuple[Turn, ...]]] = {}
        self._systems: dict[tuple[str, str], str] = {}

    def system(self, engine: Engine, session: Session, agent: Agent, info: ModelInfo) -> str:
        """Give the system prompt, made once a run."""
        key = (agent.name, info.ref)
        if key not in self._systems:
            self._systems[key] = system_prompt(engine, session, agent, info)
        return self._systems[key]

    def turns(self, view: Conversation, info: ModelInfo) -> tuple[Turn, ...]:
        """Give the turns of a conversation, the same objects as before for what has not changed."""
        turns: list[Turn] = []
        for entry in view.entries:
            known = self._turns.get(entry.info.id)
            if known is None or known[0] is not entry or known[1] is not info:
                known = (entry, info, turns_of(entry, info))
                self._turns[entry.info.id] = known
            turns += known[2]
        return tuple(turns)
