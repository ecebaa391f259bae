"""The rows of the configuration's `hooks`: programs, addresses, models;
they get JSON as in Claude Code.
"""
