// Draws each group of pictures when it is near the window, and the others one by one while the browser is idle, so that a
// print or a search finds all of them. Pictures in a folded part are drawn when it is opened. The attribute data-drawing of the
// page is "done" when nothing is left that is not folded.
(() => {
  "use strict";
  const packed = document.getElementById("pictures");
  const all = JSON.parse(packed.dataset.places).map((places) => ({ places }));
  const undrawn = new Set(all);
  const page = document.documentElement;
  const groups = new Map(); // by division
  let inWork = 0;

  const divisions = (group) => group.places.map((id) => document.getElementById(id));
  const isFolded = (group) => divisions(group).every((division) => division.closest("details:not([open])"));
  const nextOne = () => [...undrawn].find((group) => !isFolded(group));
  const tell = () => { page.dataset.drawing = inWork || nextOne() ? "waiting" : "done"; };

  // A browser colours all pixels of an image in a figure, shown or not: hidden ones join when they are first shown.
  const deferImages = (root) => {
    for (const figure of [...root.references()].filter((each) => each.type === "Figure")) {
      const hidden = figure.renderers.filter((each) => !each.visible && each.glyph?.type === "ImageStack");
      if (!hidden.length) continue;
      figure.renderers = figure.renderers.filter((each) => !hidden.includes(each));
      for (const each of hidden) {
        each.properties.visible.change.connect(() => {
          if (each.visible && !figure.renderers.includes(each)) figure.renderers = [each, ...figure.renderers];
        });
      }
    }
  };

  // Data and programs are compressed. Browsers that cannot expand them are older than 2023.
  const unpack = async () => {
    const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
    packed.remove();
    const expanded = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const lines = (await new Response(expanded).text()).split("\n");
    for (const group of all) group.data = lines.shift();
    const program = document.createElement("script");
    program.textContent = lines.join("\n");
    document.head.append(program);
  };
  let drawing = unpack().catch((error) => {
    console.error("the pictures cannot be expanded:", error);
    for (const group of all) {
      for (const division of divisions(group)) division.textContent = "This picture needs a browser of 2023 or later.";
    }
    undrawn.clear();
    throw error;
  });

  const draw = (group) => {
    if (!undrawn.delete(group)) return drawing;
    inWork += 1;
    tell();
    drawing = drawing.then(async () => {
      const { document: model, places } = JSON.parse(group.data);
      delete group.data;
      const drawn = Bokeh.require("document").Document.from_json(model);
      drawn.all_roots.forEach(deferImages);
      window.ensioTheme?.follow(drawn); // before the first paint, of which the edge of a canvas keeps the colours
      await Bokeh.embed.add_document_standalone(drawn, page, drawn.all_roots.map((root) => document.getElementById(places[root.id])));
      for (const root of drawn.all_roots) {
        const keys = window.ensioLegendKeys.row(root.references());
        if (keys) document.getElementById(places[root.id]).after(keys);
      }
      for (const division of Object.values(places).map((id) => document.getElementById(id))) {
        division.classList.remove("undrawn");
        division.style.minHeight = "";
      }
    }).catch((error) => console.error("a picture cannot be drawn:", error)).then(() => { inWork -= 1; tell(); });
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
    const next = nextOne();
    if (next) idle(() => draw(next).then(drawRest));
  };

  // A link to a folded part opens it.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target?.closest("details") ?? target?.querySelector(":scope > details");
    if (folded) folded.open = true;
  };

  tell();
  for (const group of undrawn) {
    for (const division of divisions(group)) {
      groups.set(division, group);
      watch.observe(division);
    }
  }
  document.addEventListener("toggle", (event) => {
    if (event.target.open) for (const group of [...undrawn]) if (!isFolded(group)) draw(group);
  }, true);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.('a[href^="#"]')) setTimeout(reveal);
  });
  window.addEventListener("hashchange", reveal);
  reveal();
  // Bokeh's tabs can be reached by the keyboard, and do not answer to it.
  document.addEventListener("keydown", (event) => {
    const [target] = event.composedPath();
    if (!target.classList?.contains("bk-tab") || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    target.click();
  });

  // Paper has another width than the window, and a browser does not wait between this event and its pages: Bokeh lays out and
  // paints here what it would in the next frame. Pictures that are drawn now are ready too, since only promises are in between.
  // A canvas that is painted in this event is printed as its commands, of which clearing erases the page: images are printed.
  const unfolded = [];
  const images = new Map(); // by canvas
  const elementsIn = (root) => [...root.querySelectorAll("*")].flatMap(
    (each) => [each, ...(each.shadowRoot ? elementsIn(each.shadowRoot) : [])]);
  const paint = (view) => {
    view.paint?.();
    view.child_views?.forEach(paint);
  };
  const fit = () => {
    for (const root of Bokeh.index.roots) {
      root.invalidate_layout?.();
      paint(root);
    }
  };
  const depict = () => {
    for (const each of elementsIn(document.body)) {
      if (each.matches(".bk-Toolbar")) each.style.visibility = "hidden";
      if (!each.matches("canvas.bk-layer") || !each.width || !each.height || images.has(each)) continue;
      const copy = new OffscreenCanvas(each.width, each.height);
      copy.getContext("2d").drawImage(each, 0, 0);
      const image = document.createElement("canvas");
      image.className = each.className;
      [image.width, image.height] = [each.width, each.height];
      image.getContext("bitmaprenderer").transferFromImageBitmap(copy.transferToImageBitmap());
      each.after(image);
      each.style.display = "none";
      images.set(each, image);
    }
  };
  window.addEventListener("beforeprint", () => {
    window.ensioTheme?.print(true); // whose listener is later than this one
    page.classList.add("printing");
    for (const part of document.querySelectorAll("details:not([open])")) {
      part.open = true;
      unfolded.push(part);
    }
    const ratio = Object.getOwnPropertyDescriptor(window, "devicePixelRatio");
    Object.defineProperty(window, "devicePixelRatio", { value: 3, configurable: true }); // of the images: 300 dots per inch
    for (const group of [...undrawn]) draw(group);
    // Texts and legends take the width of the paper when a layout has found it, and room in the one after.
    const settle = async () => { for (let turn = 0; turn < 20; turn++) await null; };
    drawing.then(fit).then(settle).then(fit).then(fit).then(depict).finally(() => Object.defineProperty(window, "devicePixelRatio", ratio));
  });
  window.addEventListener("afterprint", () => {
    page.classList.remove("printing");
    for (const part of unfolded.splice(0)) part.open = false;
    for (const [canvas, image] of images) {
      image.remove();
      canvas.style.display = "";
    }
    images.clear();
    for (const each of elementsIn(document.body)) if (each.matches(".bk-Toolbar")) each.style.visibility = "";
    fit();
  });
  // After the pictures in the window, which the observer reports in the first frame.
  window.addEventListener("load", () => setTimeout(drawRest, 1000));
})();
