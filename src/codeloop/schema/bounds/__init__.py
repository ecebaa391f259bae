"""Further limits, a module for each room that few runs import; see `limits.py`."""
