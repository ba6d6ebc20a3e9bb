"""Commands that need code beside their line in `cli.admin.tables`, by subject."""
