"""What the flags choose: a session, an agent, a model."""

from codeloop.cli.exits import UsageProblem
from codeloop.cli.named import find, fork
from codeloop.cli.reached import Reached
from codeloop.cli.run import Options
from codeloop.client.client import Client
from codeloop.schema.agent import Agent
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.operation import AGENT_LIST, SESSION_CREATE, SESSION_LIST, SESSION_UPDATE


async def check_agent(client: Client, name: str | None) -> None:
    """See that there is such an agent. Raises UsageProblem with the names there are."""
    if name is None:
        return
    agents: list[Agent] = await client.call(AGENT_LIST)
    if all(agent.name != name for agent in agents):
        known = ", ".join(sorted(agent.name for agent in agents if not agent.hidden))
        raise UsageProblem(f"Agent not found: {name}. There are: {known}")


def model_of(name: str | None) -> ModelRef | None:
    """Give the model that `PROVIDER/MODEL` names. Raises UsageProblem when it is written otherwise."""
    if name is None:
        return None
    provider_id, slash, model_id = name.partition("/")
    if not slash or not model_id:
        raise UsageProblem(f"--model takes PROVIDER/MODEL, not {name}. `codeloop models` lists them.")
    return ModelRef(provider_id=provider_id, model_id=model_id)


async def session_of(client: Client, options: Options, found: Session | None) -> Session:
    """Give the session to go on with: the one that was found, a copy of it, or a new one. Raises UsageProblem."""
    if options.at is not None and not options.fork:
        raise UsageProblem("--at says where a fork begins. Add --fork, or leave it out.")
    if not options.fork:
        return found or await client.call(SESSION_CREATE, title=options.title)
    if found is None:
        raise UsageProblem("--fork copies a session: say which one with --continue or --session ID.")
    made = await fork(client, found, options.at)
    return await client.call(SESSION_UPDATE, session_id=made.id, title=options.title) if options.title else made


async def known(reached: Reached, options: Options) -> Session | None:
    """Give the session that the flags name; None when they name none."""
    if options.session is not None:
        if options.go_on:
            raise UsageProblem("--continue and --session name two sessions. Leave one of them out.")
        return await find(reached.client, options.session)
    if not options.go_on:
        return None
    sessions: list[Session] = await reached.client.call(SESSION_LIST, scope="project", roots=True, limit=100_000)
    last = next((session for session in sessions if session.directory == reached.directory), None)
    if last is None:
        raise UsageProblem("There is no session in this directory to go on with. Leave --continue out.")
    return last
