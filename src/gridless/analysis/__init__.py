"""analysis.yaml: what to fit and how, of one channel or of several."""
