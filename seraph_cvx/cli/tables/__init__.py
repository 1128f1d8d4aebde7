"""The tables that users bring: read, checked, and answered in words where they are wrong."""
