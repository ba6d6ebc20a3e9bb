"""Work on entry logs beside serving: garbage collection, compaction, scrub, over-replicated ledgers."""
