"""Adds jobs and stores schedules."""
