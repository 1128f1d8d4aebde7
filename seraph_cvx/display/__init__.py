"""Formulas as text and MathML, cards for notebooks, tables of results."""
