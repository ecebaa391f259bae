"""`codeloop bench`: several agents and models do the same tasks of the user, and the results are compared."""
