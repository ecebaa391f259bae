"""Repairs of a model's calls: JSON that is nearly right, and other agents' names."""
