"""The interactive page: points to label, sliders, an alternation to step through.

What the page knows is in `scene`, `alternation` and `state`, what it shows in `pictures` and
`views`: they work without a browser. `server` serves it to whom `guard` lets in.
"""
