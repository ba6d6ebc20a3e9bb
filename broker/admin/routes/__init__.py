"""Routes of the admin REST, one folder for each concern."""
