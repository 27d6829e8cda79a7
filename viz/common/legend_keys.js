// The entries of a legend are on a canvas, which no key reaches: each gets a button, seen while it has the focus.
// window.ensioLegendKeys.row(models) makes a row of buttons for the legends among some models, or null.
// window.ensioLegendKeys.followServer() keeps such a row at the top of the page of a server, whose pictures change.
(() => {
  "use strict";
  const UNSEEN = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)";
  const isClicked = (legend) => legend.type === "Legend" && legend.click_policy !== "none";

  const button = (legend, item) => {
    const made = document.createElement("button");
    const shown = () => item.renderers.some((renderer) => renderer.visible);
    const say = () => {
      made.textContent = `${item.label?.value ?? item.label}: ${shown() ? "hide" : "show"}`;
    };
    say();
    made.style.cssText = UNSEEN;
    made.addEventListener("focus", () => { say(); made.style.cssText = ""; });
    made.addEventListener("blur", () => { made.style.cssText = UNSEEN; });
    made.addEventListener("click", () => {
      const visible = !shown();
      for (const renderer of item.renderers) renderer.visible = visible;
      say();
    });
    return made;
  };

  const row = (models) => {
    const made = document.createElement("div");
    made.className = "legend-keys";
    for (const legend of models) if (isClicked(legend)) made.append(...legend.items.map((item) => button(legend, item)));
    return made.children.length ? made : null;
  };

  const followServer = () => {
    let [before, of] = [null, ""];
    // Who comes by the tabulator key needs the buttons of the pictures that are there now.
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Tab") return;
      // The document forgets models that were replaced some time later; their views are gone.
      const figures = [...Bokeh.index.query((view) => view.model.type === "Figure")];
      const models = figures.flatMap((view) => [...view.model.references()]);
      const now = models.filter(isClicked).flatMap((legend) => legend.items.map((item) => item.id)).join();
      if (now === of) return;
      of = now;
      before?.remove();
      before = row(models);
      if (before) document.body.prepend(before);
    }, true);
  };

  window.ensioLegendKeys = { row, followServer };
})();
