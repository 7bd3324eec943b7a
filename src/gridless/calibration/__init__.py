"""Likelihoods calibrated by the templates: valid whatever a network learnt. No torch."""
