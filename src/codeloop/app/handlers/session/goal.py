"""Helpers for prompts with a goal: the rounds of the turn, and the outcome that clients are shown."""

from codeloop.agent.goal.goal_rounds import GoalRounds, check_goal, describe_goal
from codeloop.app.project import Project
from codeloop.schema.api.goal import Goal
from codeloop.schema.api.session_inputs import MessageWithParts, PartInput, Prompt, TextPartInput
from codeloop.schema.errors import OperationError
from codeloop.schema.wire import replace


def begin_goal(project: Project, args: Prompt, goal: Goal, *, is_sent: bool) -> GoalRounds:
    """Return the rounds of a prompt's goal; if the prompt `is_sent` again, the rounds that it has already.

    Raises OperationError when the goal can't be used, or a turn runs.
    """
    goal_rounds = project.services.goals
    if is_sent and args.session_id in goal_rounds:
        return goal_rounds[args.session_id]
    if problem := check_goal(goal, project.workspace.root):
        raise OperationError("BadRequest", problem)
    if project.runs.works_on(args.session_id):
        raise OperationError("SessionBusyError", f"Session {args.session_id} is busy. Abort its turn first.")
    words = "\n".join(part.text for part in args.parts if isinstance(part, TextPartInput) and not part.synthetic)
    goal_rounds[args.session_id] = GoalRounds(goal, words)
    return goal_rounds[args.session_id]


def make_goal_part(goal: Goal) -> PartInput:
    """Return the part of a prompt that tells the model how its goal is checked."""
    return TextPartInput(text=describe_goal(goal), synthetic=True)


def add_goal(answer: MessageWithParts, rounds: GoalRounds) -> MessageWithParts:
    """Return an answer with the outcome of its goal added to the end of the turn."""
    if answer.stop is None:
        return answer
    return replace(answer, stop=replace(answer.stop, goal=rounds.give_up(answer.stop.message)))
