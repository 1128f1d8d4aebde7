"""The interactive page: points to label, sliders, an alternation to step through.

What the page knows is in plain modules, from `scene` and `sliders` to `state`, and what it shows in
``views/``: both work without a browser. ``web/`` serves it, by the standard library alone.
"""
