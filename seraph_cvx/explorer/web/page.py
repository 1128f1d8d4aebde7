# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The page, a marimo app: controls and panels, then tabs.

Every control and click replaces the state; everything shown follows from it.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="SERAPH explorer")

with app.setup:
    from typing import Any

    import marimo as mo

    from seraph_cvx.explorer.solver_answers import SOLVERS
    from seraph_cvx.explorer.views.tabs import TABS, sheet
    from seraph_cvx.explorer.views.whole_page import first_state, page_title, view_of
    from seraph_cvx.explorer.web.widget import CodeBox, Panels


@app.cell
def _() -> Any:
    get_state, set_state = mo.state(first_state())
    return get_state, set_state


@app.cell
def _() -> Any:
    mo.Html(page_title())
    return


@app.cell
def _(get_state: Any, panels: Any) -> Any:
    state = get_state()
    panels.view = view_of(state)
    return (state,)


@app.cell
def _(set_state: Any) -> Any:
    panels = Panels()
    panels.observe(lambda change: set_state(lambda state: state.answer(change["new"])), "events")
    pictures = mo.ui.anywidget(panels)
    mo.as_html(pictures)
    return panels, pictures


@app.cell
def _() -> Any:
    tabs = mo.ui.tabs(dict.fromkeys(TABS, ""))
    mo.as_html(tabs)
    return (tabs,)


@app.cell
def _() -> Any:
    code = CodeBox()
    box = mo.ui.anywidget(code)
    solver = mo.ui.dropdown(SOLVERS, value="fista", label="solver")
    ask = mo.ui.run_button(label="Solve the current M-step")
    return ask, box, code, solver


@app.cell
def _(ask: Any, solver: Any, tabs: Any) -> Any:
    mo.hstack([solver, ask], justify="start", wrap=True) if tabs.value == "Solvers" else None
    return


@app.cell
def _(ask: Any, box: Any, code: Any, solver: Any, state: Any, tabs: Any) -> Any:
    content = sheet(state, tabs.value, solver.value if ask.value else None)
    code.text = content if tabs.value == "Python" else ""
    box if tabs.value == "Python" else mo.Html(content)
    return


if __name__ == "__main__":
    app.run()
