"""The dialog that lists the agents to choose from."""

from collections.abc import Sequence

from codeloop.schema.api.agents import AGENT_LIST
from codeloop.schema.operation import NoArguments
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.picker import Picker

_MAX_ROW_DESCRIPTION = 55
"""Characters of a description; a longer one does not fit into its row,
and is also shown below the list.
"""


def create_agent_picker(context: DialogContext, current: str = "") -> Picker[str]:
    """Create a list of the agents that closes with the name of one; `current`: the one in use."""

    async def list_agents() -> Sequence[Pick[str]]:
        agents = await context.client.call(AGENT_LIST, NoArguments())
        return [
            Pick(
                agent.name,
                agent.name,
                detail=agent.description or "",
                hint=agent.model.model_id if agent.model is not None else "",
                mark="●" if agent.name == current else "",
                note=agent.description or ""
                if len(agent.description or "") > _MAX_ROW_DESCRIPTION
                else "",
            )
            for agent in agents
            # Subagents are started by other agents only;
            # hidden agents do internal work, such as titles.
            if agent.mode != "subagent" and not agent.hidden
        ]

    source = PickSource(
        title="Agents",
        load=list_agents,
        start=current or None,
        empty_message="There is no agent.",
        choose_label="use it",
    )
    return Picker(source, context.get_styles)
