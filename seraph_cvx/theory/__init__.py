"""The paper's claims, checked numerically, by subject; :mod:`.verification` gathers them."""
