"""A dual point that you can drag: exact, in whole numbers, in a page and in a notebook."""

from __future__ import annotations

from drawing import Framed

DRAG_STYLE = """
.drag { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; }
.drag svg { flex: 1 1 18rem; min-width: 0; max-width: 27rem; font: 14px system-ui, sans-serif; }
.drag div { flex: 1 1 18rem; min-width: 0; max-width: 27rem; }
.drag svg text { fill: currentColor; }
.drag .inside { fill: #93c5fd; fill-opacity: .45; stroke: #1f5fa8; stroke-width: 2; }
.drag .axis { stroke: currentColor; stroke-opacity: .35; }
.drag .level { stroke: light-dark(#1f5fa8, #93c5fd); stroke-dasharray: 6 4; }
.drag .best { stroke: currentColor; stroke-opacity: .6; stroke-dasharray: 2 4; }
.drag .cut { stroke: #c2410c; stroke-width: 2.5; }
.drag .point { cursor: grab; touch-action: none; } .drag .grip { fill-opacity: 0; }
.drag .dot { fill: #15803d; stroke: #fff; stroke-width: 2; }
.drag .refuted .dot { fill: #c2410c; }
.drag .point:focus-visible { outline: 3px solid #1f5fa8; }
.drag label { display: block; font-weight: 600; margin: .3rem 0; }
.drag input { display: block; width: 100%; margin: .2rem 0; }
.drag output { display: block; min-height: 7em; margin: .4rem 0; }
"""
DRAG_BODY = """
<div class="drag">
<svg viewBox="0 0 400 400" role="group"
 aria-label="The plane of the two multipliers; the shaded set is feasible">
<line class="axis" x1="10" y1="200" x2="390" y2="200"></line>
<line class="axis" x1="200" y1="10" x2="200" y2="390"></line>
<path class="inside" d="M 80 320 L 320 320 Q 200 -160 80 320 Z"></path>
<line class="best"></line><line class="level"></line><line class="cut"></line>
<text x="378" y="190">λ₁</text><text x="208" y="22">λ₂</text>
<text x="316" y="216">1</text><text x="72" y="216">−1</text><text x="208" y="76">1</text>
<text x="208" y="338">−1</text><text x="296" y="180">3/2</text>
<g class="point" tabindex="0" role="application"
 aria-label="The dual point; arrow keys move it by 1/64, with Shift by 1/8">
<circle class="grip" r="24"></circle><circle class="dot" r="9"></circle></g>
</svg>
<div>
<label>λ₁ = <span></span><input type="range" min="-96" max="96" step="1" value="16"></label>
<label>λ₂ = <span></span><input type="range" min="-96" max="96" step="1" value="16"></label>
<output aria-live="polite"></output>
</div>
</div>
"""
DRAG_SCRIPT = """
for (const drag of document.querySelectorAll(".drag")) {
  const svg = drag.querySelector("svg"), point = drag.querySelector(".point");
  const inputs = [...drag.querySelectorAll("input")], names = [...drag.querySelectorAll("span")];
  const answer = drag.querySelector("output"), most = 96;
  const words = (number) => String(number).replace("-", "\\u2212");
  const line = (name, ends) => {
    const drawn = drag.querySelector(name);
    drawn.style.display = ends ? "" : "none";
    if (!ends) return;
    ["x1", "y1", "x2", "y2"].forEach((side, k) =>
      drawn.setAttribute(side, k % 2 ? 200 - 120 * ends[k] : 200 + 120 * ends[k]));
  };
  const show = () => {
    // The point is (a/64, b/64); every number below is a whole number, so nothing is rounded.
    const [a, b] = inputs.map((input) => input.valueAsNumber);
    const flat = 2 * (64 + b) * 64;                    // 4096 v'Mv for v = (1, 0, -1)
    const bent = 2 * (4096 - 64 * b - 2 * a * a);      // 4096 v'Mv for v = (1, 2a/64, 1)
    const inside = flat >= 0 && bent >= 0, bound = 2 * a + b, worst = Math.min(flat, bent);
    const x = a / 64, y = b / 64, z = words(bound / 64);
    point.setAttribute("transform", `translate(${200 + 120 * x} ${200 - 120 * y})`);
    point.classList.toggle("refuted", !inside);
    line(".best", [-0.05, 1.6, 1.6, -1.7]);
    line(".level", inside ? [x - 0.6, y + 1.2, x + 0.6, y - 1.2] : null);
    if (inside) line(".cut", null);
    else if (worst === flat) line(".cut", [-1.6, -1, 1.6, -1]);
    else {  // v'Mv = 0: the tangent of the parabola at x, from one edge of the window to the other
      const at = (t) => 1 + 2 * x * x - 4 * x * t;
      line(".cut", [-2, at(-2), 2, at(2)]);
    }
    names.forEach((name, k) => { name.textContent = words([x, y][k]); });
    inputs.forEach((input, k) => input.setAttribute("aria-valuetext", words([x, y][k])));
    const v = worst === flat ? "(1, 0, \\u22121)" : `(1, ${words(2 * x)}, 1)`;
    const [word, why] = !inside
      ? ["Refuted.", `M(λ) is not PSD: v = ${v} has v\\u1d40Mv = ${words(worst / 4096)}. `
        + "This point proves nothing; the orange line separates it from all feasible ones."]
      : bound === 96 ? ["Proved.", "The smallest trace is exactly 1.5."]
      : ["Proved:", `no feasible A has a trace below ${z}. `
        + `Still open: whether one has a trace between ${z} and 1.5.`];
    const strong = document.createElement("b");
    strong.textContent = word;
    answer.replaceChildren(strong, ` ${why}`);
    Object.assign(answer.dataset, { inside, bound: bound / 64, worst: worst / 4096 });
  };
  const move = (a, b) => {
    [a, b].forEach((to, k) => { inputs[k].value = Math.max(-most, Math.min(most, to)); });
    show();
  };
  const follow = (event) => {
    const box = svg.getBoundingClientRect(), scale = 400 / box.width;
    const across = (event.clientX - box.left) * scale, down = (event.clientY - box.top) * scale;
    move(Math.round((across - 200) / 120 * 64), Math.round((200 - down) / 120 * 64));
  };
  svg.addEventListener("pointerdown", (event) => {
    point.focus();
    svg.setPointerCapture(event.pointerId);
    follow(event);
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (svg.hasPointerCapture(event.pointerId)) follow(event);
  });
  point.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!way[event.key]) return;
    const [a, b] = inputs.map((input) => input.valueAsNumber), by = event.shiftKey ? 8 : 1;
    move(a + by * way[event.key][0], b + by * way[event.key][1]);
    event.preventDefault();
    event.stopPropagation();
  });
  inputs.forEach((input) => input.addEventListener("input", show));
  show();
}
"""


class Drag(Framed):
    """The dual of the smallest trace: a plane in which a point is dragged."""

    def __init__(self) -> None:
        super().__init__(DRAG_BODY, DRAG_STYLE, DRAG_SCRIPT, "Drag a dual point")

    def offline_html(self) -> str:
        """The same with its own style and script."""
        return f"<style>{DRAG_STYLE}</style>{DRAG_BODY}<script>{DRAG_SCRIPT}</script>"
