"""Written by `bin/generate-proto` from `proto/*.proto`; never edited."""
