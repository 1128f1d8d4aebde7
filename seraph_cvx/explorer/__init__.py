"""The interactive page: points to label, sliders, an alternation to step through.

The logic is in plain modules: `scene`, `walk`, `state`, then what is shown of them. Only `page`,
`widget` and `server` import marimo and anywidget, the extra ``explore``; `guard` decides who is
served.
"""
