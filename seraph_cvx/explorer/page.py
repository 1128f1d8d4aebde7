# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The page, a marimo app: controls, panels, tabs.

Every control and click replaces the state; everything shown follows from it.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="SERAPH explorer")

with app.setup:
    from typing import Any

    import marimo as mo

    from seraph_cvx.explorer.panels import panels_of
    from seraph_cvx.explorer.scene import SCENES
    from seraph_cvx.explorer.state import FIRST_SCENE, ExplorerState
    from seraph_cvx.explorer.stepwise_alternation import TRACE_WEIGHTS
    from seraph_cvx.explorer.tabs import SOLVERS, grid, heading, sheet
    from seraph_cvx.explorer.widget import CodeBox, Panels


@app.cell
def _() -> Any:
    get_state, set_state = mo.state(ExplorerState())
    return get_state, set_state


@app.cell
def _(set_state: Any) -> Any:
    def slider(name: str, label: str, value: float, **scale: Any) -> Any:
        return mo.ui.slider(
            **scale,
            value=value,
            label=label,
            show_value=True,
            full_width=True,
            on_change=lambda new: set_state(lambda state: state.with_settings(**{name: new})),
        )

    controls = [
        mo.ui.dropdown(
            list(SCENES),
            value=FIRST_SCENE,
            label="data",
            full_width=True,
            on_change=lambda name: set_state(lambda state: state.choose(name)),
        ),
        slider("weight_factor", "μ, times #(S ∪ D) / #U", 1.0, start=0.0, stop=5.0, step=0.1),
        slider("trace_weight", "λ", 1.0, steps=TRACE_WEIGHTS),
        slider("threshold", "η", 1.0, start=0.1, stop=5.0, step=0.1),
        mo.ui.switch(
            True,
            label="sharpness 1 + μ, the paper's",
            on_change=lambda on: set_state(lambda state: state.with_settings(paper_sharpness=on)),
        ),
        slider("own_sharpness", "or a sharpness of", 2.0, start=0.5, stop=5.0, step=0.1),
    ]
    mo.Html(heading("SERAPH, half-step by half-step") + grid(*controls))
    return (controls,)


@app.cell
def _(get_state: Any, panels: Any) -> Any:
    state = get_state()
    panels.panels = panels_of(state)
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
    tabs = mo.ui.tabs(dict.fromkeys(("Statement", "Solvers", "Formulas", "Python"), ""))
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
    mo.hstack([solver, ask], justify="start") if tabs.value == "Solvers" else None
    return


@app.cell
def _(ask: Any, box: Any, code: Any, solver: Any, state: Any, tabs: Any) -> Any:
    content = sheet(state, tabs.value, solver.value if ask.value else None)
    code.text = content if tabs.value == "Python" else ""
    box if tabs.value == "Python" else mo.Html(content)
    return


if __name__ == "__main__":
    app.run()
