"""What a bookie says over HTTP: whether it lives, its state, its garbage collection, its metrics. It changes no entry."""
