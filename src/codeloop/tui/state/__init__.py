"""The state that the screen shows: sessions, folded from stored messages and events,
and the states of servers.
"""
