"""`codeloop fleet`: does many jobs, each in a clone of a repository, on this or other machines,
and each job once.
"""
