"""The interactive page: points to label, sliders, an alternation to step through.

The logic is in plain modules: `scene`, `walk`, `state`, then what is shown of them. Only `page` and
`widget` import marimo and anywidget, the extra ``explore``.
"""
