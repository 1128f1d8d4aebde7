"""The paper's claims, one file each, decided by machine; :mod:`.report` gathers them."""
