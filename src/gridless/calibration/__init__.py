"""Likelihoods that the simulation itself vouches for, whatever a network learnt. No torch."""
