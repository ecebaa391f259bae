"""Measuring codeloop: a model server of its own, whole processes, the budgets of the design."""
