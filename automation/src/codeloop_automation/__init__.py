"""Unattended runs, which start `codeloop` as a program: CI, schedules, benchmarks, fleets."""
