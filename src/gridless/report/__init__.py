"""The report: figures and pages."""
