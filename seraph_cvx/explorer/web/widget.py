"""What runs in the browser: controls and panels that send back events, and a box of code."""

from __future__ import annotations

import anywidget
import traitlets

SCRIPT = """
function render({ model, el }) {
  el.classList.add("seraph-panels");
  let sent = model.get("events").at(-1)?.count ?? 0;
  const tell = (event) => {
    sent += 1;
    model.set("events", [...model.get("events"), { ...event, count: sent }].slice(-50));
    model.save_changes();
  };

  const bar = document.createElement("div");
  bar.className = "controls";
  const controls = new Map();
  const makeControl = ({ name, kind, label, options }) => {
    const box = document.createElement("label");
    const title = document.createElement("b");
    const text = document.createElement("output");
    const note = document.createElement("small");
    const input = document.createElement(kind === "select" ? "select" : "input");
    title.textContent = label;
    note.id = `seraph-note-${name}`;
    input.setAttribute("aria-label", label);
    input.setAttribute("aria-describedby", note.id);
    if (kind === "select") input.append(...options.map((option) => new Option(option)));
    if (kind === "range") Object.assign(input, { type: "range", min: 0, max: options.length - 1 });
    if (kind === "check") input.type = "checkbox";
    input.addEventListener("input", () => {
      const value = { select: input.value, range: Number(input.value), check: input.checked }[kind];
      if (kind === "range") text.textContent = options[value];
      tell({ set: name, value });
    });
    box.className = kind;
    box.append(title, text, input, note);
    bar.append(box);
    return { box, text, note, input };
  };
  const showControl = (control, isHeard) => {
    if (!controls.has(control.name)) controls.set(control.name, makeControl(control));
    const { box, text, note, input } = controls.get(control.name);
    if (isHeard) {  // else a later event of the user is under way
      if (control.kind === "check") input.checked = control.value;
      else input.value = control.value;
      text.textContent = control.text;
    }
    input.disabled = Boolean(control.off);
    input.setAttribute("aria-valuetext", control.text);
    note.textContent = control.off || control.note;
    box.classList.toggle("off", Boolean(control.off));
  };

  const sections = new Map();
  const make = (name) => {
    const section = document.createElement("section");
    section.className = name;
    section.addEventListener("click", (e) => {
      const button = e.target.closest("button");
      if (button?.dataset.copy) copy(button);
      else if (button) tell({ ...button.dataset });
    });
    if (name === "plane") listen(section);
    return section;
  };
  const copy = async (button) => {
    clearTimeout(timer);
    writeLink();
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copy the page's address";
    }
  };
  const listen = (section) => {
    section.tabIndex = 0;
    section.addEventListener("click", (e) => {
      const svg = e.target.closest("svg");
      if (!svg) return;
      const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
      tell({ x: at.x, y: at.y, shift: e.shiftKey });
    });
    section.addEventListener("keydown", (e) => {
      const undoes = e.key === "z" && (e.ctrlKey || e.metaKey);
      if (!undoes && !/^(Arrow|Enter$|Delete$|Backspace$| $)/.test(e.key)) return;
      e.preventDefault();
      tell(undoes ? { move: "undo" } : { key: e.key });
    });
  };

  let timer;
  const writeLink = () => history.replaceState(history.state, "", `#${model.get("view").link}`);
  const readLink = (change) => {  // of the event: a link of before may be written meanwhile
    const text = new URL(change?.newURL ?? location.href).hash.slice(1);
    if (text && text !== model.get("view").link) tell({ link: text });
  };

  const draw = () => {
    const view = model.get("view");
    if (!view.panels) return;
    const isHeard = view.heard >= sent;
    for (const control of view.controls) showControl(control, isHeard);
    for (const { name, title, content, caption } of view.panels) {
      if (!sections.has(name)) sections.set(name, make(name));
      const section = sections.get(name);
      const html = (title && `<h3>${title}</h3>`) + content + (caption && `<p>${caption}</p>`);
      if (section.source !== html) {
        section.source = html;
        section.innerHTML = html;
      }
    }
    const wanted = [bar, ...view.panels.map(({ name }) => sections.get(name))];
    const current = [...el.children];
    if (wanted.length !== current.length || wanted.some((section, k) => section !== current[k])) {
      el.replaceChildren(...wanted);  // only then: to move a section takes its focus away
    }
    clearTimeout(timer);
    if (isHeard) timer = setTimeout(writeLink, 200);  // browsers allow few changes a second
  };
  readLink();
  draw();
  addEventListener("hashchange", readLink);
  model.on("change:view", draw);
  return () => {
    clearTimeout(timer);
    removeEventListener("hashchange", readLink);
    model.off("change:view", draw);
  };
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
  .controls, .moves, .status, .results, .link { grid-column: 1 / -1; }
  .controls { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr));
    gap: .7rem 1.4rem; }
  .controls label { display: grid; grid-template-columns: 1fr auto; align-content: start;
    gap: .1rem .5rem; min-width: 0; }
  .controls b { font-weight: 600; }
  .controls select, .controls [type=range], small { grid-column: 1 / -1; width: 100%; margin: 0; }
  .controls select { font: inherit; color: inherit; background: var(--paper); padding: .1rem;
    border: 1px solid var(--rule); border-radius: 6px; }
  .controls [type=checkbox] { grid-column: 1; justify-self: start; width: 1rem; height: 1rem; }
  output { font-variant-numeric: tabular-nums; }
  small { font-size: .78rem; color: var(--soft); }
  .off { opacity: .6; }
  .moves { display: flex; flex-wrap: wrap; gap: .5rem; }
  button { border: 1px solid var(--rule); border-radius: 6px; padding: .2rem .8rem; font: inherit;
    background: var(--muted, #f1f5f9); color: inherit; cursor: pointer; }
  button:hover { border-color: var(--soft); }
  button:disabled { opacity: .5; cursor: not-allowed; }
  .status p { border-left: 4px solid var(--class0); padding-left: .7rem; color: inherit;
    font-size: .9rem; }
  .status .warning { border-color: #d97706; }
  .link { font-size: .78rem; color: var(--soft); }
  .link pre { margin: .3rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
  h3 { font-size: .95rem; font-weight: 600; margin: 0 0 .3rem; }
  p { font-size: .78rem; margin: .3rem 0 0; color: var(--soft); }
  svg { width: 100%; height: auto; display: block; font: 14px system-ui, sans-serif; }
  text { fill: currentColor; text-anchor: middle; }
  .title { font-size: 17px; font-weight: 600; }
  .end { text-anchor: end; }
  .name { text-anchor: start; }
  .plane { user-select: none; outline-offset: 4px; }
  .plane svg { cursor: crosshair; touch-action: manipulation; }
  .frame { fill: none; stroke: var(--soft); }
  .grid { stroke: var(--rule); }
  .diagonal { stroke: var(--soft); stroke-width: .7; }
  .line { fill: none; stroke-width: 2; }
  .sharp { image-rendering: pixelated; }
  .smooth { opacity: .4; }
  .unit, .even, .chosen { fill: none; stroke: currentColor; stroke-width: 1.5; }
  .even { stroke-dasharray: 6 4; }
  .unknown { fill: #94a3b8; stroke: var(--paper); stroke-width: .8; }
  .class0, .class1, .class2 { stroke: var(--paper); }
  .class0 { fill: var(--class0); } .class1 { fill: var(--class1); } .class2 { fill: var(--class2); }
  .wrong { fill: none; stroke: currentColor; stroke-width: 1.6; }
  .scrolled { overflow-x: auto; margin-bottom: .4rem; }
  table { border-collapse: collapse; width: 100%; font-size: .85rem; }
  tr { border-bottom: 1px solid var(--rule); }
  th { text-align: left; font-weight: 400; color: var(--soft); padding: .14rem .6rem .14rem 0; }
  td { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
  .results th, .results td { text-align: left; white-space: nowrap; padding-right: 1rem; }
  .results td button { padding: 0 .6rem; }
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
    """Controls and panels in a grid; the panel named plane is clicked on.

    The address of the page ends with the link of what is shown, and an address that is opened or
    changed by hand is sent back as an event.

    Attributes
    ----------
    view : dict
        As of :func:`seraph_cvx.explorer.views.whole_page.view_of`.
    events : list of dict
        The last events, as :meth:`seraph_cvx.explorer.state.ExplorerState.answer` takes them,
        numbered by count: of several values that come at once marimo may pass on only the last, so
        that it must hold them all.

    Examples
    --------
    >>> Panels(view={}).events
    []
    """

    _esm = SCRIPT
    _css = STYLE
    view = traitlets.Dict().tag(sync=True)
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
