"""The site: python -m sphinx examples site -W

It is made of what is here (guide, gallery, course, race, reproduction) and of the docstrings.
"""

from __future__ import annotations

import re
import subprocess
import sys
from inspect import isroutine
from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image
from sklearn.datasets import load_wine
from sphinx.addnodes import download_reference
from sphinx.errors import ExtensionError
from sphinx_gallery.scrapers import figure_rst
from sphinx_gallery.utils import scale_image

import seraph_cvx
from seraph_cvx.datasets import load_sampling
from seraph_cvx.display.mathml import to_mathml
from seraph_cvx.display.page import POLICY

HERE = Path(__file__).resolve().parent

project, author = "seraph_cvx", "The seraph_cvx maintainers"
version = release = seraph_cvx.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_scripts", "README.md"]  # the gallery has its own index
COURSE = HERE / "course"
(COURSE / "_files").mkdir(parents=True, exist_ok=True)
html_extra_path = ["course/_files"]
templates_path = ["_templates"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
numpydoc_show_class_members = False
suppress_warnings = ["config.cache"]  # the gallery's settings hold a function
autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
copybutton_exclude = ".linenos, .gp"
copybutton_prompt_text = ">>> "

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_static_path, html_css_files = ["_static"], ["site.css"]
html_sidebars = {page: [] for page in ("index", "course/failures", "changes")}
html_context = {"default_mode": "auto"}
html_copy_source = html_show_search_summary = False
html_title = f"seraph_cvx {release}"
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "logo": {"text": "seraph_cvx"},
}


def save_figure(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The picture of a script: what it calls `figure`."""
    figure = block_vars["example_globals"].pop("figure", None)
    if figure is None:
        return ""
    path = Path(next(block_vars["image_path_iterator"]))
    figure.savefig(path)
    with Image.open(path) as picture:
        left, bottom, right, top = figure.axes[0].get_tightbbox().extents
        panel = picture.crop((left, picture.height - top, right, picture.height - bottom))
        panel.save(path.with_name(f"panel_{path.name}"))
    return str(figure_rst([str(path)], gallery_conf["src_dir"], figure.get_label()))


def show_one_panel(app: Any) -> None:
    """Make thumbnails of the first panel of each picture: several are too small to be read."""
    for panel in (HERE / "gallery" / "images").glob("panel_*_001.png"):
        name = panel.stem.removeprefix("panel_").replace("_001", "_thumb.png")
        scale_image(str(panel), str(panel.with_name("thumb") / name), 400, 280)


def number_of(file: Path | str) -> int:
    """The number in the name of a script or a problem set."""
    return int(Path(file).name.split("_")[1])


SCRIPTS = HERE / "_scripts"
"""The gallery takes all scripts of a folder, and makes a section of each folder in it: so it has
one of its own, with links to ours."""
SCRIPTS.mkdir(exist_ok=True)
(SCRIPTS / "GALLERY_HEADER.rst").write_text(
    "Gallery\n=======\n\nEight scripts, one idea each. Each tests its own claims by assertions.\n"
)
for link in SCRIPTS.glob("plot_*"):
    link.unlink()
for script in HERE.glob("plot_*.py"):
    (SCRIPTS / script.name).symlink_to(script)

sphinx_gallery_conf = {
    "examples_dirs": "_scripts",
    "gallery_dirs": "gallery",
    "within_subsection_order": number_of,
    "image_scrapers": (save_figure,),
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": (),
}


WRITTEN = (HERE / "_templates" / "formulas.txt").read_text(encoding="utf-8")
FORMULAS = dict(line.split("\t") for line in WRITTEN.splitlines())
"""Docstrings are plain text, for terminals; here their formulas are in LaTeX, the longest first."""
ANY_FORMULA = "|".join(map(re.escape, sorted(FORMULAS, key=len, reverse=True)))


def mark_up_docstring(*given: Any) -> None:
    """Write the formulas of a docstring; elsewhere bars and last underscores are what they are."""
    lines: list[str] = given[-1]
    is_code = False
    for k, line in enumerate(lines):
        is_code = bool(line) and (is_code or line.lstrip().startswith(">>>"))
        if is_code:
            continue
        words = re.split(rf"(?<![\w`*])({ANY_FORMULA})(?![\w`*'])", line)
        for place, word in enumerate(words):
            escaped = re.sub(r"(?<=\w)_(?=[\s,.;:)]|$)", r"\\_", word).replace("|", r"\|")
            words[place] = f":math:`{FORMULAS[word]}`" if place % 2 else escaped
        lines[k] = "".join(words)


def skip_foreign(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out methods that a class inherits from another package, scikit-learn for example."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    module = getattr(function, "__module__", None) or "builtins"
    is_foreign = isroutine(function) and not module.startswith("seraph_cvx")
    return True if is_foreign else None


def link_course(app: Any, doctree: Any, name: str) -> None:
    """Let links to files of the course lead to its pages."""
    pages = app.builder.env.found_docs
    for link in [*doctree.findall(download_reference)]:
        file = Path(link["reftarget"])
        if f"course/{file.stem}" in pages and "solutions" not in file.parts:
            up = "../" * name.count("/")
            found = nodes.reference("", "", refuri=f"{up}course/{file.stem}.html")
            found += link.children
            link.replace_self(found)


def link_back(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let source code link to the API by the name that is used there: viewcode knows one a file."""
    if page.startswith("_modules/"):
        link = r'api/([\w.]+)\.(\w+)\.html#[\w.]*?\.(\2\b[\w.]*)"'
        context["body"] = re.sub(link, r'api/\1.\2.html#\1.\3"', context["body"])


class CourseExport:
    """The course's pages, written in a process of its own while the gallery's scripts run."""

    process: subprocess.Popen[bytes] | None = None

    def start(self, app: Any) -> None:
        for page in (*COURSE.glob("*.rst"), *HERE.glob("api/*.rst")):  # of what may be gone
            page.unlink()
        export = HERE / "lecture" / "export.py"
        log = (Path(app.doctreedir) / "course.txt").open("w")
        self.process = subprocess.Popen(
            [sys.executable, export, "--out", COURSE], stdout=log, stderr=subprocess.PIPE
        )

    def finish(self, app: Any) -> None:
        """Wait for it; what went wrong with it fails the site."""
        assert self.process is not None
        _, said = self.process.communicate()
        if self.process.returncode:
            raise ExtensionError(f"The course was not written: {said.decode()}")


def write_samples(app: Any, error: Exception | None) -> None:
    """The report and the picture of a fit, and the paper's claims, as commands write them."""
    if app.builder.format != "html" or error is not None:
        return
    folder = Path(app.outdir) / "samples"
    folder.mkdir(exist_ok=True)
    wine = load_wine(as_frame=True)
    kind = wine.target.map({0: "A", 1: "B", 2: "C"}).where(wine.target.index % 6 == 1)
    wine.data.assign(kind=kind).to_csv(folder / "wine.csv", index=False)
    command = [sys.executable, "-m", "seraph_cvx", "fit", "wine.csv", "--force"]
    command += ["--label", "kind", "--picture", "fit.png"]
    with (folder / "fit.txt").open("w") as file:
        subprocess.run(command, cwd=folder, stdout=file, check=True)
    drawn = load_sampling("iris")
    report = seraph_cvx.verify_paper(drawn.X, drawn.y, name="iris").to_html()
    report = report.replace("<body>", f"<body>{BACK}", 1).replace(POLICY, f"{POLICY}; {ALLOWED}", 1)
    (folder / "verify.html").write_text(report, encoding="utf-8")


ALLOWED = "script-src 'unsafe-inline'"
BACK = """<p><a href="../index.html">seraph_cvx</a> · <a href="../samples.html">samples</a></p>
<script>document.documentElement.style.colorScheme = localStorage.theme ?? ""</script>"""
"""What only the site's copy of a report has: a way back, and the theme that was chosen there."""


SECTIONS = {
    "start/README": ("teacher", "solver-author", "data-scientist", "researcher", "/cheat-sheet"),
    "guide/README": (
        *("installation", "certify-any-problem", "duality-gap", "solvers", "supervision"),
        *("pipelines", "weights", "does-it-help", "certificate"),
        *("model-your-own", "acceleration", "command-line"),
        *("from-metric-learn", "race-your-own", "distance-features", "/benchmarks"),
        *("/large/README", "/samples", "stability"),
    ),
    "lecture/README": (
        *(f"/course/chapter{number}" for number in range(1, 11)),
        *("/exercises/README", "symbols"),
        *("The paper's equations </course/paper>", "teacher"),
    ),
    "exercises/README": (
        *(
            f"/course/{file.stem}"
            for file in sorted(HERE.glob("exercises/set_*.py"), key=number_of)
        ),
        *(f"/course/{file.stem}" for file in sorted(HERE.glob("exercises/exercise_*.py"))),
    ),
    "solver-comparison/README": (
        *("entrants", "small/race", "medium/race", "large/race"),
        *("copt-psd-exponential", "benchopt/README"),
    ),
    "reproduction/README": (
        *("Table 1 <table1>", "Table 2 <table2>", "Figure 1 <figure1>", "Figure 2 <figure2>"),
        *("Figure 3 <figure3>", "protocol", "judgment", "defaults"),
        "The defaults, with a classifier <defaults-auto>",
        *("predictions", "scale-text", "many-points"),
        *("libraries", "libraries-race"),
        "The problems of CVXPY's tests <cvxpy-suite>",
    ),
}
"""The pages below each section's first one, which GitHub shows too, without directives."""


CARDS = """
```{raw} html
:file: ../course/cards.html
```
"""


def prepare_page(app: Any, name: str, source: list[str]) -> None:
    """Make a heading of the bold title of a table that a program wrote; list a section's pages."""
    source[0] = re.sub(r"^\*\*(.+)\*\*\n", r"# \1\n", source[0])
    if name.endswith("/race"):
        source[0] = f"# The {name.split('/')[-2]} tier\n\n{source[0]}"
    if name == "lecture/README":
        source[0] = source[0].replace("\n## The chapters", f"{CARDS}\n## The chapters", 1)
    if name in SECTIONS:
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", *SECTIONS[name], "```\n"])


def write_math(translator: Any, node: Any) -> None:
    """Formulas as MathML, which browsers draw without a script and without a network."""
    is_inline = isinstance(node, nodes.math)
    formula = to_mathml(node.astext(), inline=is_inline)
    around = "{}" if is_inline else '<div class="formula" tabindex="0">{}</div>'
    translator.body.append(around.format(formula))
    raise nodes.SkipNode


ON_LOAD = """addEventListener("DOMContentLoaded", () => {
  for (const mark of document.querySelectorAll("summary > .toctree-toggle"))
    mark.parentElement.ariaLabel = `Below ${mark.closest("li").querySelector("a").textContent}`;
  for (const picture of document.querySelectorAll(".bd-article :is(p, section) > img")) {
    const link = document.createElement("a");
    [link.href, link.className] = [picture.src, "picture"];
    picture.replaceWith(link);
    link.append(picture);
  }
});"""
"""For screen readers: the theme's sidebar opens its lists by signs without a name. For phones: a
picture is a link to itself in full size."""


def setup(app: Any) -> None:
    app.add_js_file(None, body=ON_LOAD)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    course = CourseExport()
    app.connect("builder-inited", course.start, priority=100)
    app.connect("builder-inited", show_one_panel, priority=800)
    app.connect("builder-inited", course.finish, priority=900)
    app.connect("source-read", prepare_page)
    app.connect("autodoc-process-docstring", mark_up_docstring)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("doctree-resolved", link_course)
    app.connect("html-page-context", link_back)
    app.connect("build-finished", write_samples)
