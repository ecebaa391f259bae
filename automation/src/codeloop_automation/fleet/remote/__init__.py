"""Fleet jobs on other machines: the drivers for `ssh` and Ray,
and the worker that both of them start there.
"""
