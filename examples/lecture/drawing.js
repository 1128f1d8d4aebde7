// Draws panels from data: { positions, start, label, tabs, pool, panels }. Each of `panels` has,
// for every position, the panels that are shown: numbers of entries of `pool`, which is kept once.
const BOX = { width: 420, height: 350, left: 70, right: 14, top: 34, bottom: 52, line: 22 };

const scaleOf = ([low, high], log, from, to) => {
  const place = log ? (v) => Math.log10(Math.max(v, 1e-300)) : (v) => v;
  const [a, b] = [place(low), place(high)];
  const at = (v) => from + Math.max(-30, Math.min(30, (place(v) - a) / (b - a))) * (to - from);
  return (v) => (v === null ? NaN : Math.round(10 * at(v)) / 10);
};

const raised = (k) => [...String(k)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");

const roundTicks = (low, high, log) => { // about five round numbers, or powers of ten
  const ticks = [];
  if (log) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.ceil((last - first + 1) / 6);
    for (let k = first; k <= last; k += step) ticks.push([10 ** k, `10${raised(k)}`]);
    return ticks;
  }
  const rough = Math.abs(high - low) / 5, unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].reduce((best, each) =>
    (Math.abs(each - rough / unit) < Math.abs(best - rough / unit) ? each : best));
  for (let k = Math.ceil(Math.min(low, high) / step - 1e-9); k * step <= Math.max(low, high) + 1e-9 * step; k++)
    ticks.push([k * step, String(+(k * step).toPrecision(4))]);
  return ticks;
};

const word = (value) => String(+(+value).toPrecision(2));
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`).replace(/-/g, "−");
const textAt = (x, y, words, more = "") =>
  `<text x="${x}" y="${y}" fill="currentColor" ${more}>${escaped(words)}</text>`;

const drawPanel = ({ title, x, y, log = "", square, ticks, names, alt = "", marks }, pool, box) => {
  const middle = 'text-anchor="middle"', legend = [];
  const longest = Math.max(0, ...(ticks.y ?? []).map(([, name]) => name.length));
  const edge = Math.max(BOX.left, 12 + 10 * longest);
  let across = BOX.left, lines = 0;
  for (const [color, name] of Object.entries(names)) { // below the title, never on the curves
    const width = 30 + 8.6 * name.length;
    if (!legend.length || across + width > BOX.width) { across = BOX.left; lines++; }
    const down = 20 + BOX.line * lines;
    legend.push(`<path d="M${across} ${down - 5}h18" stroke="${color}" stroke-width="4"/>`,
      textAt(across + 23, down, name));
    across += width + 12;
  }
  const top = BOX.top + BOX.line * lines, bottom = BOX.height - BOX.bottom;
  const aside = square ? Math.floor((BOX.width - BOX.right - edge - bottom + top) / 2) : 0;
  const left = edge + aside, right = BOX.width - BOX.right - aside;
  const ofX = scaleOf(x.slice(1), log.includes("x"), left, right);
  const ofY = scaleOf(y.slice(1), log.includes("y"), bottom, top);
  const axes = [], said = [];
  for (const [at, name] of ticks.x ?? roundTicks(x[1], x[2], log.includes("x")))
    axes.push(`<path d="M${ofX(at)} ${bottom}V${top}" stroke="currentColor" stroke-opacity=".15"/>`,
      textAt(ofX(at), bottom + 19, name, middle));
  for (const [at, name] of ticks.y ?? roundTicks(y[1], y[2], log.includes("y")))
    axes.push(`<path d="M${left} ${ofY(at)}H${right}" stroke="currentColor" stroke-opacity=".15"/>`,
      textAt(left - 6, ofY(at) + 5, name, 'text-anchor="end"'));
  axes.push(`<path d="M${left} ${top}V${bottom}H${right}" fill="none" stroke="currentColor"/>`,
    textAt((left + right) / 2, BOX.height - 12, x[0], middle),
    textAt(left - 56, (top + bottom) / 2, y[0],
      `${middle} transform="rotate(-90 ${left - 56} ${(top + bottom) / 2})"`));
  const drawn = marks.map((number) => {
    const { kind, color, xs, ys, high, dash, width, opacity, hollow, words } = pool[number];
    const places = (values) => xs.map((each, k) => [ofX(each), ofY(values[k])]);
    if (kind === "line") {
      if (names[color] && xs.length > 2)
        said.push(`${names[color]}: from ${word(ys[0])} to ${word(ys.at(-1))}`);
      let begun = false;
      const path = places(ys).map(([a, b]) => {
        const step = Number.isNaN(a + b) ? "" : `${begun ? "L" : "M"}${a} ${b}`;
        begun = step !== "";
        return step;
      }).join("");
      return `<path d="${path}" fill="none" stroke="${color}" stroke-width="${width}"`
        + ` stroke-dasharray="${dash}"/>`;
    }
    if (kind === "area")
      return `<polygon points="${[...places(ys), // and back, unless it is a closed curve
        ...(String(high) === String(ys) ? [] : places(high).reverse())].join(" ")}"`
        + ` fill="${color}" fill-opacity="${opacity}"/>`;
    if (kind === "words") return textAt(ofX(xs[0]), ofY(ys[0]), words, 'stroke="none"');
    if (width > 5) said.push(`a dot at ${word(xs[0])}, ${word(ys[0])}`);
    const ink = hollow ? `fill="none" stroke="${color}" stroke-width="2.5"` : `fill="${color}"`;
    return places(ys).map(([a, b]) => `<circle cx="${a}" cy="${b}" r="${width}" ${ink}/>`).join("");
  });
  const axesSaid = [y[0], x[0]].filter((name) => name).join(" against ");
  const described = escaped([title, axesSaid, ...said, alt].filter((words) => words).join(". "));
  return `<svg viewBox="0 0 ${BOX.width} ${BOX.height}" role="img" aria-label="${described}">`
    + `<clipPath id="${box}"><path d="M${left} ${top}V${bottom}H${right}V${top}z"/></clipPath>`
    + textAt(BOX.width / 2, 20, title, `${middle} font-weight="600"`) + legend.join("")
    + axes.join("") + `<g clip-path="url(#${box})">${drawn.join("")}</g></svg>`;
};

for (const [number, moving] of [...document.querySelectorAll(".moving")].entries()) {
  const { positions, start, label, tabs, pool, panels } = JSON.parse(moving.textContent);
  const one = moving.dataset.panel, name = `moving-${number}`, last = positions.length - 1;
  const choices = positions.map((each, k) => `<label><input type="radio" name="${name}" value="${k}"`
    + `${k === start ? " checked" : ""}>${escaped(each)}</label>`);
  const slider = `<label>${escaped(label)} <output></output><input type="range" min="0"`
    + ` max="${last}" value="${start}"></label>`;
  const control = tabs ? `<fieldset class="tabs"><legend>${escaped(label)}</legend>${choices.join("")}</fieldset>`
    : last ? slider : "";
  moving.innerHTML = `${control}<div class="panels"></div>`;
  const show = (at) => {
    moving.querySelector(".panels").innerHTML =
      panels[at].map((panel, k) => !one || k === +one ? drawPanel(pool[panel], pool, `${name}-${k}`) : "").join("");
    if (tabs || !last) return;
    moving.querySelector("output").value = escaped(positions[at]);
    moving.querySelector("input").setAttribute("aria-valuetext", positions[at]);
  };
  moving.addEventListener("input", ({ target }) => show(+target.value));
  show(start);
}
