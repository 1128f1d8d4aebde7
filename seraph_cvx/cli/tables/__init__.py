"""Users' tables: read and checked, with an error message for whatever is wrong."""
