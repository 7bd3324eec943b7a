"""What all results share: found by name, printed in one style, labels set in HTML. No torch."""
