"""Routes about the policies of topics."""
