"""Likelihoods as short vectors: minima, estimates, warnings. No torch."""
