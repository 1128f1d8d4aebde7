"""What runs in the browser: panels that send back clicks and keys, and a box of code to copy."""

from __future__ import annotations

import anywidget
import traitlets

SCRIPT = """
function render({ model, el }) {
  el.classList.add("seraph-panels");
  const tell = (event) => {
    const told = model.get("events");
    const count = 1 + (told.at(-1)?.count ?? 0);
    model.set("events", [...told, { ...event, count }].slice(-50));
    model.save_changes();
  };
  const sections = new Map();
  const make = (name) => {
    const section = document.createElement("section");
    section.className = name;
    if (name === "moves") listenToButtons(section);
    if (name === "plane") listen(section);
    return section;
  };
  const listenToButtons = (section) => section.addEventListener("click", (e) => {
    const button = e.target.closest("button");
    if (button) tell({ move: button.dataset.move });
  });
  const listen = (section) => {
    section.tabIndex = 0;
    section.addEventListener("click", (e) => {
      const svg = e.target.closest("svg");
      if (!svg) return;
      const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
      tell({ x: at.x, y: at.y, shift: e.shiftKey });
    });
    section.addEventListener("keydown", (e) => {
      if (!/^(Arrow|Enter$|Delete$|Backspace$| $)/.test(e.key)) return;
      e.preventDefault();
      tell({ key: e.key });
    });
  };
  const draw = () => {
    const panels = model.get("panels");
    for (const { name, title, content, caption } of panels) {
      if (!sections.has(name)) sections.set(name, make(name));
      const section = sections.get(name);
      const html = (title && `<h3>${title}</h3>`) + content + (caption && `<p>${caption}</p>`);
      if (section.source !== html) {
        section.source = html;
        section.innerHTML = html;
      }
    }
    const wanted = panels.map(({ name }) => sections.get(name));
    const current = [...el.children];
    if (wanted.length !== current.length || wanted.some((section, k) => section !== current[k])) {
      el.replaceChildren(...wanted);  // only then: to move a section takes its focus away
    }
  };
  draw();
  model.on("change:panels", draw);
  return () => model.off("change:panels", draw);
}
export default { render };
"""

STYLE = """
.seraph-panels {
  --class0: light-dark(#0072b2, #56b4e9); --class1: light-dark(#d55e00, #f08a3c);
  --class2: light-dark(#009e73, #2cc596); --soft: var(--muted-foreground, #64748b);
  --paper: var(--background, #fff); --rule: var(--border, #e2e8f0);
  display: grid; grid-template-columns: repeat(auto-fill, minmax(270px, 1fr)); gap: .8rem 1.2rem;
  color: var(--foreground, #0f172a); font: 14px/1.4 system-ui, sans-serif;
  section { min-width: 0; }
  .moves, .status { grid-column: 1 / -1; }
  .moves { display: flex; flex-wrap: wrap; gap: .5rem; }
  button { border: 1px solid var(--rule); border-radius: 6px; padding: .2rem .8rem; font: inherit;
    background: var(--muted, #f1f5f9); color: inherit; cursor: pointer; }
  button:hover { border-color: var(--soft); }
  .status p { border-left: 4px solid #d97706; padding-left: .7rem; color: inherit;
    font-size: .9rem; }
  h3 { font-size: .95rem; font-weight: 600; margin: 0 0 .3rem; }
  p { font-size: .78rem; margin: .3rem 0 0; color: var(--soft); }
  svg { width: 100%; height: auto; display: block; font: 14px system-ui, sans-serif; }
  text { fill: currentColor; text-anchor: middle; }
  .title { font-size: 17px; font-weight: 600; }
  .end { text-anchor: end; }
  .plane { user-select: none; outline-offset: 4px; }
  .plane svg { cursor: crosshair; touch-action: manipulation; }
  .frame { fill: none; stroke: var(--soft); }
  .grid { stroke: var(--rule); }
  .diagonal { stroke: var(--soft); stroke-width: .7; }
  .line { fill: none; stroke: var(--class0); stroke-width: 2; }
  .descent circle, .paper circle { fill: var(--class0); }
  .sharp { image-rendering: pixelated; }
  .smooth { opacity: .4; }
  .unit, .even, .chosen { fill: none; stroke: currentColor; stroke-width: 1.5; }
  .even { stroke-dasharray: 6 4; }
  .unknown { fill: #94a3b8; stroke: var(--paper); stroke-width: .8; }
  .class0, .class1, .class2 { stroke: var(--paper); }
  .class0 { fill: var(--class0); } .class1 { fill: var(--class1); } .class2 { fill: var(--class2); }
  table { border-collapse: collapse; width: 100%; font-size: .85rem; }
  tr { border-bottom: 1px solid var(--rule); }
  th { text-align: left; font-weight: 400; white-space: nowrap; color: var(--soft);
    padding: .14rem .6rem .14rem 0; }
  td { text-align: right; font-variant-numeric: tabular-nums; }
}
"""


CODE_SCRIPT = """
function render({ model, el }) {
  el.classList.add("seraph-code");
  const button = document.createElement("button");
  const text = document.createElement("pre");
  const draw = () => { text.textContent = model.get("text"); button.textContent = "Copy"; };
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(text);
    try {
      await navigator.clipboard.writeText(model.get("text"));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C to copy";
    }
  });
  el.append(button, text);
  draw();
  model.on("change:text", draw);
  return () => model.off("change:text", draw);
}
export default { render };
"""

CODE_STYLE = """
.seraph-code {
  color: var(--foreground, #0f172a); font: 14px/1.4 system-ui, sans-serif;
  button { border: 1px solid var(--border, #e2e8f0); border-radius: 6px; padding: .15rem .8rem;
    background: var(--muted, #f1f5f9); color: inherit; font: inherit; cursor: pointer; }
  pre { max-height: 28rem; overflow: auto; font-size: .8rem; line-height: 1.35; padding: .6rem;
    margin: .5rem 0 0; border: 1px solid var(--border, #e2e8f0); border-radius: 6px; }
}
"""


class Panels(anywidget.AnyWidget):
    """Panels in a grid; the one named plane is clicked on.

    Attributes
    ----------
    panels : list of dict
        As of :func:`seraph_cvx.explorer.panels.panels_of`.
    events : list of dict
        The last clicks (x, y, shift), keys (key) and buttons (move), numbered by count: of several
        values that come at once marimo may pass on only the last, so that it must hold them all.

    Examples
    --------
    >>> Panels(panels=[]).events
    []
    """

    _esm = SCRIPT
    _css = STYLE
    panels = traitlets.List(traitlets.Dict()).tag(sync=True)
    events = traitlets.List(traitlets.Dict()).tag(sync=True)


class CodeBox(anywidget.AnyWidget):
    """A text, and a button that copies it.

    Attributes
    ----------
    text : str

    Examples
    --------
    >>> CodeBox(text="1 + 1").text
    '1 + 1'
    """

    _esm = CODE_SCRIPT
    _css = CODE_STYLE
    text = traitlets.Unicode().tag(sync=True)
