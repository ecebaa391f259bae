"""The models of a project: opening and listing them, and signing in at their providers."""
