// The page in the browser: it sends events to the server and shows the view that it answers with.
"use strict";

const page = crypto.randomUUID(); // each tab of the browser has a state of its own
const find = (selector) => document.querySelector(selector);
const panels = find(".panels");
const bar = find(".controls");
const sheet = find(".sheet");
const solver = find(".solver select");
const copyButton = find(".copy button");

let view = { link: "" };

// Events: one request at a time; what happens meanwhile goes with the next one.

let sent = 0;
let waiting = [];
let isAsking = false;

function tell(event) {
  sent += 1;
  waiting.push({ ...event, count: sent });
  sendEvents();
}

async function sendEvents() {
  if (isAsking) return;
  isAsking = true;
  do {
    const events = waiting;
    waiting = [];
    const answer = await ask("/events", { events });
    if (answer) show(answer);
  } while (waiting.length);
  isAsking = false;
}

async function ask(path, question) {
  const trouble = find(".trouble");
  try {
    const body = JSON.stringify({ page, ...question });
    const answer = await fetch(path, { method: "POST", body });
    trouble.hidden = answer.ok;
    if (answer.ok) return await answer.json();
    trouble.textContent = await answer.text();
  } catch {
    trouble.hidden = false;
    trouble.textContent = "The explorer does not answer: start it again, and open its new link.";
  }
  return null;
}

// The view: controls, panels and the link of the scene, which the address ends with.

function show(answer) {
  view = answer;
  const isHeard = view.heard >= sent; // else a later event of the user is under way
  for (const control of view.controls) showControl(control, isHeard);
  const fresh = new DOMParser().parseFromString(view.panels, "text/html").body.children;
  const wanted = [bar, ...Array.from(fresh, showPanel)];
  const current = [...panels.children];
  if (wanted.length !== current.length || wanted.some((section, k) => section !== current[k])) {
    panels.replaceChildren(...wanted); // only then: to move a section takes its focus away
  }
  if (!tabs.length) makeTabs();
  else if (tab !== "Formulas") askForSheet();
  clearTimeout(timer);
  if (isHeard) timer = setTimeout(writeLink, 200); // browsers allow few changes a second
}

const controls = new Map();

function makeControl({ name, kind, label, options }) {
  const box = document.createElement("label");
  const title = document.createElement("b");
  const text = document.createElement("output");
  const note = document.createElement("small");
  const reason = document.createElement("span");
  const input = document.createElement(kind === "select" ? "select" : "input");
  title.textContent = label;
  note.id = `note-${name}`;
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
  note.append(document.createElement("span"), reason);
  box.append(title, text, input, note);
  bar.append(box);
  return { box, text, note: note.firstChild, reason, input };
}

function showControl(control, isHeard) {
  if (!controls.has(control.name)) controls.set(control.name, makeControl(control));
  const { box, text, note, reason, input } = controls.get(control.name);
  if (isHeard) {
    if (control.kind === "check") input.checked = control.value;
    else input.value = control.value;
    text.textContent = control.text;
  }
  input.disabled = Boolean(control.off);
  input.setAttribute("aria-valuetext", control.text);
  note.textContent = control.note; // out of sight where the control is off, but keeps its room
  reason.textContent = control.off;
  box.classList.toggle("off", Boolean(control.off));
}

const sections = new Map();

function showPanel({ className: name, innerHTML: html }) {
  if (!sections.has(name)) sections.set(name, makeSection(name));
  const section = sections.get(name);
  if (section.source !== html) {
    section.source = html;
    section.innerHTML = html;
  }
  return section;
}

function makeSection(name) {
  const section = document.createElement("section");
  section.className = name;
  section.addEventListener("click", (click) => {
    const button = click.target.closest("button");
    if (button?.dataset.copy) copyLink(button);
    else if (button) tell({ ...button.dataset });
  });
  if (name === "plane") listenToPlane(section);
  return section;
}

function listenToPlane(section) {
  section.tabIndex = 0;
  section.addEventListener("click", (click) => {
    const svg = click.target.closest("svg");
    if (!svg) return;
    const point = new DOMPoint(click.clientX, click.clientY);
    const at = point.matrixTransform(svg.getScreenCTM().inverse());
    tell({ x: at.x, y: at.y, shift: click.shiftKey });
  });
  section.addEventListener("keydown", (press) => {
    const undoes = press.key === "z" && (press.ctrlKey || press.metaKey);
    if (!undoes && !/^(Arrow|Enter$|Delete$|Backspace$| $)/.test(press.key)) return;
    press.preventDefault();
    tell(undoes ? { move: "undo" } : { key: press.key });
  });
}

let timer;

function writeLink() {
  history.replaceState(null, "", `#${view.link}`);
}

async function copyLink(button) {
  clearTimeout(timer);
  writeLink();
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copy the page's address";
  }
}

// The tabs: what is in the open one follows the state.

const tabs = [];
let tab = "";
let asked = 0;

function makeTabs() {
  solver.append(...view.solvers.map((name) => new Option(name)));
  for (const name of view.tabs) {
    const button = document.createElement("button");
    button.textContent = name;
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", sheet.id);
    button.addEventListener("click", () => openTab(name));
    button.addEventListener("keydown", (press) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[press.key];
      if (!step) return;
      const next = (view.tabs.indexOf(name) + step + tabs.length) % tabs.length;
      tabs[next].focus();
      openTab(view.tabs[next]);
    });
    tabs.push(button);
  }
  find(".tabs").append(...tabs);
  openTab(view.tabs[0]);
}

function openTab(name) {
  tab = name;
  for (const button of tabs) {
    const isOpen = button.textContent === name;
    button.setAttribute("aria-selected", String(isOpen));
    button.tabIndex = isOpen ? 0 : -1;
  }
  find(".solver").hidden = name !== "Solvers";
  find(".copy").hidden = true; // until there is something to copy
  askForSheet();
}

async function askForSheet(withSolver = null) {
  asked += 1;
  const number = asked;
  const answer = await ask("/sheet", { tab, solver: withSolver });
  if (!answer || number !== asked) return; // another sheet was asked for meanwhile
  if (tab === "Python") {
    const text = document.createElement("pre");
    text.textContent = answer.sheet;
    sheet.replaceChildren(text);
    copyButton.textContent = "Copy";
    find(".copy").hidden = false;
  } else {
    sheet.innerHTML = answer.sheet;
  }
}

find(".solver button").addEventListener("click", () => {
  sheet.textContent = `${solver.value} is solving ...`;
  askForSheet(solver.value);
});

copyButton.addEventListener("click", async () => {
  const text = sheet.querySelector("pre");
  getSelection().selectAllChildren(text);
  try {
    await navigator.clipboard.writeText(text.textContent);
    copyButton.textContent = "Copied";
  } catch {
    copyButton.textContent = "Press Ctrl+C to copy";
  }
});

// The start: the scene of the address, where it names one.

function readLink(change) {
  const text = new URL(change?.newURL ?? location.href).hash.slice(1);
  if (text && text !== view.link) tell({ link: text });
  else if (!change) sendEvents();
}

addEventListener("hashchange", readLink);
readLink();
