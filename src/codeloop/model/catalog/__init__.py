"""The catalog of models, with limits and prices."""
