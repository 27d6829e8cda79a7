// Keys of the picture that has the focus: + and - zoom, arrows move, with Shift they zoom the vertical axis, 0 or Home
// shows all. Axes change as by the mouse, so that link, fields and the other pictures follow.
// explorerKeys(Bokeh, root) acts on the pictures inside of an element, and returns what ends that.
function explorerKeys(Bokeh, root) {
    const [ZOOM, STEP] = [2, 0.2];
    const ACROSS = /ArrowUp/;
    const HELP =
        "position:absolute;left:0;bottom:0;z-index:10;padding:2px 6px;font:12px/1.4 system-ui,sans-serif;" +
        "background:Canvas;color:CanvasText;border:1px solid currentColor;pointer-events:none";

    // The innermost element that has the focus, and its view, if it is a picture inside of the root.
    const focused = () => {
        let [at, isInside] = [document.activeElement, false];
        for (;;) {
            isInside ||= root.contains(at);
            if (!at?.shadowRoot?.activeElement) break;
            at = at.shadowRoot.activeElement;
        }
        if (!isInside || !at?.getAttribute("aria-keyshortcuts")) return null;
        const [view] = Bokeh.index.query((each) => each.el === at);
        return view ?? null;
    };

    // On a logarithmic axis, steps are factors.
    const change = (range, scale, ends) => {
        const [to, back] = scale.type === "LogScale" ? [Math.log10, (x) => 10 ** x] : [(x) => x, (x) => x];
        let [start, end] = ends(to(range.start), to(range.end));
        const whole = range.bounds ?? (range.tags.length === 2 ? range.tags : null);
        if (whole) {
            const [low, high] = [Math.min(...whole), Math.max(...whole)].map(to);
            const [size, isReversed] = [Math.abs(end - start), start > end];
            const first = Math.min(Math.max(Math.min(start, end), low), high - size);
            const [from, until] = size < high - low ? [first, first + size] : [low, high];
            [start, end] = isReversed ? [until, from] : [from, until];
        }
        if (Math.abs(back(end) - back(start)) < (range.min_interval ?? 0)) return;
        range.setv({start: back(start), end: back(end)});
    };
    const zoom = (factor) => (start, end) => {
        const [middle, half] = [(start + end) / 2, ((end - start) / 2) * factor];
        return [middle - half, middle + half];
    };
    const move = (part) => (start, end) => [start + part * (end - start), end + part * (end - start)];

    // In the page alone: an answer of the server might come after the next key.
    const whole = (plot) => {
        const {x_range, y_range} = plot;
        if (x_range.tags.length === 2) x_range.setv({start: x_range.tags[0], end: x_range.tags[1]});
        else x_range.reset();
        if (y_range.bounds) y_range.setv({start: Math.max(...y_range.bounds), end: Math.min(...y_range.bounds)});
        else if (ACROSS.test(plot.html_attributes["aria-keyshortcuts"])) y_range.reset();
    };

    const along = (ends) => (plot) => change(plot.x_range, plot.x_scale, ends);
    const across = (ends) => (plot) => change(plot.y_range, plot.y_scale, ends);
    const ACTIONS = {
        "+": along(zoom(1 / ZOOM)),
        "=": along(zoom(1 / ZOOM)),
        "-": along(zoom(ZOOM)),
        "_": along(zoom(ZOOM)),
        ArrowLeft: along(move(-STEP)),
        ArrowRight: along(move(STEP)),
        ArrowUp: across(move(STEP)),
        ArrowDown: across(move(-STEP)),
        "Shift+ArrowUp": across(zoom(1 / ZOOM)),
        "Shift+ArrowDown": across(zoom(ZOOM)),
        0: whole,
        Home: whole,
    };

    // A table has six parts that take the focus one after the other: one is enough, and arrows enter it.
    const ONE_STOP = ".slick-pane, .grid-canvas, [hidefocus]:not(.slick-viewport-top.slick-viewport-left)";
    const stopOnce = () => {
        for (const view of Bokeh.index.query((each) => each.grid?.setActiveCell)) {
            for (const part of view.shadow_el.querySelectorAll(ONE_STOP)) part.tabIndex = -1;
        }
    };

    // A table moves its cell, and chooses the row, with the tabulator key too: whoever walks through the page would
    // mark calls. The key goes on to what is behind the table, and an arrow enters it.
    const inTable = (event) => {
        const path = event.composedPath();
        const [view] = Bokeh.index.query((each) => each.grid?.setActiveCell && path.includes(each.el));
        if (!view || !path.includes(root)) return false;
        if (event.key === "Tab") event.stopImmediatePropagation();
        else if (/Arrow(Up|Down)/.test(event.key) && !view.grid.getActiveCell() && view.grid.getDataLength() > 0) {
            event.preventDefault();
            event.stopImmediatePropagation();
            view.grid.setActiveCell(0, 0);
        }
        return true;
    };

    // A picture whose title changes, as when single calls come, loses the focus to the page, since Bokeh removes all its
    // attributes for a moment. It gets the focus back at once, and keys that come before that are still its keys.
    let last = null;
    const again = () => {
        if (!last || document.activeElement !== document.body) return null;
        const [view] = Bokeh.index.query((each) => each.model === last);
        view?.el.focus({preventScroll: true});
        return view ?? null;
    };
    const changed = new MutationObserver(again);
    const elsewhere = () => {
        last = null;
        changed.disconnect();
    };
    const keep = (view) => {
        if (last === view.model) return;
        elsewhere();
        last = view.model;
        changed.observe(view.el, {attributeFilter: ["tabindex"]});
    };

    const pressed = (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "Tab") stopOnce();
        if (inTable(event)) return;
        const view = focused() ?? again();
        if (!view) return;
        const name = event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key;
        const act = ACTIONS[name];
        const plot = view.model;
        const isAcross = /Arrow(Up|Down)/.test(name);
        if (!act || (isAcross && !ACROSS.test(plot.html_attributes["aria-keyshortcuts"]))) return;
        event.preventDefault();
        event.stopImmediatePropagation();
        keep(view);
        act(plot);
    };

    const help = document.createElement("div");
    help.style.cssText = HELP;
    help.setAttribute("aria-hidden", "true"); // the picture's description says the same
    // Events of the focus do not leave a shadow tree within which it moves.
    const look = () => {
        const view = focused();
        if (view) keep(view);
        else if (document.activeElement !== document.body) elsewhere();
        if (!view?.el.matches(":focus-visible")) return void help.remove();
        help.textContent = view.el.getAttribute("aria-description");
        if (help.parentNode !== view.el.shadowRoot) view.el.shadowRoot.append(help);
    };
    const lookSoon = () => setTimeout(look);

    // A picture has no gesture that begins by holding: Bokeh would drop a drag whose mouse rests for 0.3 s first.
    const drags = (event) => {
        const path = event.composedPath();
        if (!path.includes(root)) return;
        const [view] = Bokeh.index.query((each) => each.canvas_view && path.includes(each.el));
        if (view) view.canvas_view.ui_event_bus.ui_gestures._start_timeout = () => {};
    };

    // Before all others: a notebook takes arrows and 0 otherwise.
    window.addEventListener("keydown", pressed, true);
    window.addEventListener("keyup", look, true);
    window.addEventListener("pointerdown", lookSoon, true);
    window.addEventListener("pointerdown", elsewhere, true);
    window.addEventListener("pointerdown", drags, true);
    return () => {
        elsewhere();
        window.removeEventListener("keydown", pressed, true);
        window.removeEventListener("keyup", look, true);
        window.removeEventListener("pointerdown", lookSoon, true);
        window.removeEventListener("pointerdown", elsewhere, true);
        window.removeEventListener("pointerdown", drags, true);
        help.remove();
    };
}
