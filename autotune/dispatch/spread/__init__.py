"""One call on several devices."""
