"""Smooth functions of theta as short vectors: their minima, intervals and crossings. No torch."""
