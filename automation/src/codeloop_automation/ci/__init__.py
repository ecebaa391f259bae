"""`codeloop ci`: carries out what issues, pull requests and schedules of a host ask for,
and reviews changes.
"""
