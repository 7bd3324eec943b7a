"""Measurements that are too long, or too noisy, for a test."""
