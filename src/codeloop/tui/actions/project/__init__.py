"""Opening the project, what a new user is offered then,
and reactions to the events of the project.
"""
