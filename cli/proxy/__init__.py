"""`interpulse proxy`: a way to brokers that clients cannot reach themselves."""
