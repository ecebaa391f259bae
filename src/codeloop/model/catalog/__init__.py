"""The catalog of models with limits and prices, its updates,
and tables of what it does not contain.
"""
