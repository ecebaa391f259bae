"""Tools that act on the session: the todo list, questions to the user, the approval of a plan,
subagents.
"""
