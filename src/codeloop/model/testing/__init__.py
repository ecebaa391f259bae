"""Models for tests, demos and benchmarks: scripted, recorded and replayed,
and with injected faults.
"""
