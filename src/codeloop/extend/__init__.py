"""Agents, commands and skills: what people add as markdown and configuration."""
