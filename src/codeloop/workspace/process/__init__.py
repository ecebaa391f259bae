"""Shell commands of sessions, background jobs, and helper programs,
each with all the processes that it starts.
"""
