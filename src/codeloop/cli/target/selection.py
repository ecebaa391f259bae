"""What the flags choose: a session, an agent, a model."""

from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.run.options import Options
from codeloop.cli.target.named import find, fork, latest
from codeloop.cli.target.target import Reached
from codeloop.client.client import Client
from codeloop.kit.suggest import meant, near
from codeloop.schema.api.project import ToolListQuery
from codeloop.schema.api.session_requests import CreateSession, UpdateSession
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.operation import AGENT_LIST, SESSION_CREATE, SESSION_UPDATE, TOOL_LIST, NoArguments


async def check_agent(client: Client, name: str | None) -> None:
    """See that there is such an agent. Raises UsageProblem with the names there are."""
    if name is None:
        return
    agents = await client.call(AGENT_LIST, NoArguments())
    if all(agent.name != name for agent in agents):
        known = sorted(agent.name for agent in agents if not agent.hidden)
        raise UsageProblem(f"Agent not found: {name}.{meant(near(name, known))} There are: {', '.join(known)}")


async def check_model(client: Client, model: ModelRef) -> None:
    """See that there is such a model. Raises CodeloopError, naming near ones."""
    await client.call(TOOL_LIST, ToolListQuery(provider=model.provider_id, model=model.model_id))


def model_of(name: str | None) -> ModelRef | None:
    """Return the model that `PROVIDER/MODEL` names. Raises UsageProblem when it is written otherwise."""
    if name is None:
        return None
    provider_id, slash, model_id = name.partition("/")
    if not slash or not model_id:
        raise UsageProblem(f"--model takes PROVIDER/MODEL, not {name}. `codeloop models` lists them.")
    return ModelRef(provider_id=provider_id, model_id=model_id)


async def session_of(client: Client, options: Options, found: Session | None) -> Session:
    """Return the session to go on with: the one that was found, a copy of it, or a new one. Raises UsageProblem."""
    if options.at is not None and not options.fork:
        raise UsageProblem("--at says where a fork begins. Add --fork, or leave it out.")
    if not options.fork:
        return found or await client.call(SESSION_CREATE, CreateSession(title=options.title))
    if found is None:
        raise UsageProblem("--fork copies a session: say which one with --continue or --session ID.")
    made = await fork(client, found, options.at)
    return (
        await client.call(SESSION_UPDATE, UpdateSession(session_id=made.id, title=options.title))
        if options.title
        else made
    )


async def known(reached: Reached, options: Options) -> Session | None:
    """Return the session that the flags name; None when they name none."""
    if options.session is not None:
        if options.go_on:
            raise UsageProblem("--continue and --session name two sessions. Leave one of them out.")
        return await find(reached.client, options.session)
    if not options.go_on:
        return None
    try:
        return await latest(reached.client, reached.directory)
    except UsageProblem as error:
        raise UsageProblem(f"{error} Leave --continue out to start a new one.") from None
