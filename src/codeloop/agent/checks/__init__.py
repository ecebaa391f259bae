"""What a turn checked: the checks that it ran, the tests that it changed,
and what its answer admits.
"""
