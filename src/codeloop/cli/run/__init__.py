"""The work of `codeloop run`: reading the message, running the turn, handling signals,
and the format stream-json.
"""
