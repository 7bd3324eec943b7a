"""Files: events read from and results written to disk. No torch."""
