"""Delayed messages, stored: docs/adr/0027-delayed-messages-in-a-wheel.md."""
