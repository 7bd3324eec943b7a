"""A whole measurement: systematics, backgrounds and channels of any number of events. No torch."""
