"""Layers merged into one frozen Config with provenance; paths; project trust."""
