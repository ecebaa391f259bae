"""Composition: App, Project, Runs."""
