/* SQLite includes it and, in this configuration, uses nothing of it. */
