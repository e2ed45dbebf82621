"""Targets of queues and what their figures say about them: error budgets, forecasts, changes. Needs no Spark."""
