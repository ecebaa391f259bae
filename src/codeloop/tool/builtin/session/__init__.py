"""Tools that act on the session: todo list, questions, subagents."""
