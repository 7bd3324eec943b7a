"""Systematics and backgrounds as a user gives them: samples, files, their audit. No torch."""
