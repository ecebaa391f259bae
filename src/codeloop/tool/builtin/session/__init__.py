"""Tools that act on the session: the todo list, questions to the user, subagents, batches of calls."""
