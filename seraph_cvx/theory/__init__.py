"""The paper's claims, one file each, checked numerically; :mod:`.report` gathers them."""
