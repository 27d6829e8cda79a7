// Draws each group of pictures when it is near the window, and the others one by one while the browser is idle, so that a
// print or a search finds all of them. The attribute data-drawing of the page is "done" when nothing is left.
(() => {
  "use strict";
  const undrawn = new Set(document.querySelectorAll("script.pictures"));
  const page = document.documentElement;
  const groups = new Map(); // by division
  let drawing = Promise.resolve();
  let left = undrawn.size;

  const finish = () => { if (left === 0) page.dataset.drawing = "done"; };

  const draw = (script) => {
    if (!undrawn.delete(script)) return drawing;
    drawing = drawing.then(async () => {
      const { document: model, places } = JSON.parse(script.textContent);
      script.remove();
      const views = await Bokeh.embed.embed_items({ pictures: model }, [{ docid: "pictures", roots: places, root_ids: Object.keys(places) }]);
      for (const drawn of new Set(views.flatMap((view) => [...view.roots]).map((root) => root.model.document))) {
        window.ensioTheme?.follow(drawn);
      }
      for (const division of Object.values(places).map((id) => document.getElementById(id))) {
        division.classList.remove("undrawn");
        division.style.minHeight = "";
      }
    }).catch((error) => console.error("a picture cannot be drawn:", error)).then(() => { left -= 1; finish(); });
    return drawing;
  };

  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watch.unobserve(entry.target);
        draw(groups.get(entry.target));
      }
    }
  });

  const idle = window.requestIdleCallback ?? ((call) => setTimeout(call, 200));
  const drawRest = () => {
    const [next] = undrawn;
    if (next) idle(() => draw(next).then(drawRest));
  };

  page.dataset.drawing = "waiting";
  finish();
  for (const script of undrawn) {
    for (const id of script.dataset.places.split(" ")) {
      const division = document.getElementById(id);
      groups.set(division, script);
      watch.observe(division);
    }
  }
  window.addEventListener("beforeprint", () => { for (const script of undrawn) draw(script); });
  // After the pictures in the window, which the observer reports in the first frame.
  window.addEventListener("load", () => setTimeout(drawRest, 1000));
})();
