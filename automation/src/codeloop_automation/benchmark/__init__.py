"""`codeloop bench`: runs the tasks of a user with several agents and models,
and compares the results.
"""
