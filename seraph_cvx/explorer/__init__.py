"""The interactive page: points to label, sliders, an alternation to step through.

The logic is in plain modules: `scene`, `stepwise_alternation`, `state`, then what they show. Only
`page`, `widget` and `server` import marimo and anywidget, the extra ``explore``; `guard` decides
who is served.
"""
