"""Commands that run codeloop unattended: in CI jobs, by timers, over tables of jobs,
as a benchmark.
"""
