// One slide at a time and one step after the other; on a phone one scrolls. Each has an address.
document.documentElement.style.colorScheme = localStorage.theme ?? ""; // of the site
const slides = [...document.querySelectorAll(".slide")];
const stepsOf = (slide) => [...slide.querySelectorAll(":scope > ul:not(.beside) > li")];
let here = 0, shown = 0;

const show = (slide, steps) => {
  here = Math.max(0, Math.min(slides.length - 1, slide));
  const all = stepsOf(slides[here]);
  shown = Math.min(steps, all.length);
  slides.forEach((each, k) => each.classList.toggle("here", k === here));
  all.forEach((step, k) => step.classList.toggle("later", k >= shown));
  if (innerWidth >= 900) history.replaceState(null, "", `#${slides[here].id}`);
};

const forward = () => (shown < stepsOf(slides[here]).length ? show(here, shown + 1)
  : here < slides.length - 1 && show(here + 1, 0));
const back = () => (shown > 0 ? show(here, shown - 1) : here > 0 && show(here - 1, Infinity));
const ACTIONS = {
  ArrowRight: forward, PageDown: forward, " ": forward, ArrowLeft: back, PageUp: back,
  Home: () => show(0, 0), End: () => show(slides.length - 1, Infinity),
  f: () => document.documentElement.requestFullscreen(),
};
addEventListener("keydown", (event) => {
  const typed = event.target.matches("input, summary, [role=application]")
    && !event.key.startsWith("Page");
  const action = ACTIONS[event.key];
  if (!action || typed || event.ctrlKey || event.metaKey || event.altKey || innerWidth < 900) return;
  event.preventDefault();
  action();
});
addEventListener("pointerup", (event) => event.target.matches("input") && event.target.blur());
const fit = () => { // before a slide is hidden: wide formulas are set smaller, to 20 pixels
  document.documentElement.classList.remove("turned");
  for (const math of document.querySelectorAll(".formula math")) {
    math.style.fontSize = "";
    for (let size = parseFloat(getComputedStyle(math).fontSize);
      size > 20 && math.scrollWidth > math.clientWidth; size--) math.style.fontSize = `${size}px`;
  }
  document.documentElement.classList.add("turned");
};
fit();
addEventListener("resize", fit);
const toAddress = () => show(slides.findIndex((each) => `#${each.id}` === location.hash), Infinity);
addEventListener("hashchange", toAddress);
toAddress();
