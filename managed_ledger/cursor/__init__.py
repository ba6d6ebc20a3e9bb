"""What a cursor knows, pure: mark-delete, holes and batch indexes, and when they have to be written."""
