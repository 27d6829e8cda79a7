// Gives pictures dark colours while the reader prefers them, and light ones in print. `ensioDark` has the dark colour of each
// light one, `ensioTurned` the tag of mappers whose palette is reversed. window.ensioTheme.follow(document) is called for each Bokeh document. window.ensioTheme.followServer() is called
// before a server's document arrives: it is darkened before its first paint, and so are the models that come later. The server
// does not learn of it.
(() => {
  "use strict";
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  const isDark = () => query.matches && !printing;
  const documents = new Map(); // of each document: [model, attribute, light value] of what is dark now

  const darkOf = (value) => {
    if (typeof value === "string") return ensioDark[value.toLowerCase()];
    if (value !== null && typeof value === "object" && typeof value.value === "string") {
      const dark = ensioDark[value.value.toLowerCase()];
      return dark === undefined ? undefined : { ...value, value: dark };
    }
    return undefined;
  };

  const darken = (document, models = document.all_models) => {
    const changed = documents.get(document);
    for (const model of models) {
      if (model.tags.includes(ensioTurned)) {
        changed.push([model, "palette", model.palette]);
        model.setv({ palette: [...model.palette].reverse() }, { sync: false });
      } else if (Array.isArray(model.palette) && model.palette.some((colour) => darkOf(colour) !== undefined)) {
        changed.push([model, "palette", model.palette]);
        model.setv({ palette: model.palette.map((colour) => darkOf(colour) ?? colour) }, { sync: false });
      }
      for (const property of model) {
        if (!property.attr.endsWith("color") || property.is_unset) continue;
        const light = property.get_value();
        const dark = darkOf(light);
        if (dark === undefined) continue;
        changed.push([model, property.attr, light]);
        model.setv({ [property.attr]: dark }, { sync: false });
      }
    }
  };

  const darkenNew = (document, roots) => {
    if (isDark() && documents.has(document)) for (const root of roots) darken(document, root.references());
  };

  const lighten = (document) => {
    for (const [model, attribute, light] of documents.get(document).splice(0)) model.setv({ [attribute]: light }, { sync: false });
  };

  const apply = () => {
    for (const [document, changed] of documents) {
      if (isDark() && changed.length === 0) darken(document);
      if (!isDark()) lighten(document);
    }
  };

  window.ensioTheme = {
    print(starts) {
      printing = starts;
      apply();
    },
    follow(document) {
      documents.set(document, []);
      if (isDark()) darken(document);
    },
    followServer() {
      // Bokeh has no event between the arrival of a document and its first paint: the list of documents is where one can be seen.
      const all = Bokeh.documents;
      all.push = (document) => {
        const addRoot = document.add_root;
        document.add_root = (...root) => {
          if (documents.has(document)) darkenNew(document, [root[0]]);
          else {
            window.ensioTheme.follow(document);
            document.on_change((event) => {
              if (event.attr === "children") darkenNew(document, event.value);
            });
          }
          return addRoot.apply(document, root);
        };
        return Array.prototype.push.call(all, document);
      };
    },
  };
  // Boxes at the mouse are made while one moves it: they take the colours of the page.
  const box = window.Bokeh?.Models.get("Tooltip")?.prototype.default_view.prototype;
  if (box) {
    const plain = box.stylesheets;
    box.stylesheets = function () {
      return [...plain.call(this), `:host { --tooltip-color: var(--ensio-widget, #fff); --tooltip-text: var(--ensio-widget-text, #18191d);
        --tooltip-border: var(--ensio-widget-active, #d7d7d8); }`];
    };
  }
  // Bokeh draws half a pixel aside, and clears as much less: at the edge of a canvas something of each painting would stay, such
  // as of one before the layout was known.
  const canvas = window.Bokeh?.require?.("core/util/canvas").CanvasLayer.prototype;
  if (canvas) {
    canvas.clear = function () {
      const { x, y, width, height } = this.bbox;
      this.ctx.clearRect(x - 1, y - 1, width + 2, height + 2);
    };
  }
  query.addEventListener("change", apply);
  window.addEventListener("beforeprint", () => window.ensioTheme.print(true));
  window.addEventListener("afterprint", () => window.ensioTheme.print(false));
})();
