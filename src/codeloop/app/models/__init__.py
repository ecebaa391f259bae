"""The models of a project: opened, listed, and reached through plugins that sign in."""
