"""What waits for its time, stored: docs/adr/0027-delayed-messages-in-a-wheel.md."""
