"""Lives of a standalone: its plan, its clients, its faults; also with deduplication or a small disk."""
