"""Work in a separate process, under limits of time and memory."""
