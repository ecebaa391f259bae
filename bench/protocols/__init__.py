"""The protocols of the model server, one file each: the events of an answer,
and the check of a request.
"""
