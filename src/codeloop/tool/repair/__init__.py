"""Repairs a model's calls: arguments that are nearly JSON,
and names of other agents' tools and parameters.
"""
