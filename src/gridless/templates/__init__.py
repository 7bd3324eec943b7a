"""Templates: simulated events, their grid and its audit. No torch."""
