// The explorer in a notebook: a Bokeh document whose changes go to the kernel and back as messages of the widget.

// BokehJS of one version, loaded once per page. Other versions in the page stay: Bokeh keeps them by version.
function bokeh(version, ask) {
    const key = `ensio_bokeh_${version}`;
    window[key] ??= load(version, ask).catch((error) => {
        delete window[key];
        throw error;
    });
    return window[key];
}

async function load(version, ask) {
    const parts = [];
    if (!window.Bokeh?.[version]) parts.push("bokeh");
    const known = (name) => {
        try {
            return window.Bokeh[version].Models.get(name) != null;
        } catch {
            return false;
        }
    };
    if (!known("Select")) parts.push("bokeh-widgets");
    if (!known("DataTable")) parts.push("bokeh-tables");
    for (const part of parts) await run(await ask(part));
    return window.Bokeh[version];
}

// A script element, and not `new Function`: a content security policy that admits widgets admits blobs.
function run(buffer) {
    return new Promise((resolve, reject) => {
        const url = URL.createObjectURL(new Blob([buffer], {type: "text/javascript"}));
        const script = document.createElement("script");
        script.onload = () => {
            URL.revokeObjectURL(url);
            resolve();
        };
        script.onerror = () => reject(new Error("the page does not allow BokehJS to run"));
        script.src = url;
        document.head.append(script);
        script.remove();
    });
}

// Enter and the space bar are for the field or button of the explorer that has the focus. VS Code would take them from
// it to edit the cell. With Shift or Ctrl they run the cell, as everywhere in a notebook.
function keepKeys(event) {
    const isPlain = !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (isPlain && ["Enter", " "].includes(event.key)) event.stopPropagation();
}

const bytes = (view) => view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);

async function render({model, el}) {
    const me = crypto.getRandomValues(new Uint32Array(2)).join("-");
    const send = (content) => model.send({view: me, ...content});
    let shown = null;
    let waiting = {};

    const receive = (content, buffers) => {
        if (content.kind === "patch") {
            if (!shown) return;
            const named = new Map(content.buffers.map((id, i) => [id, bytes(buffers[i])]));
            shown.apply_json_patch(JSON.parse(content.patch), named);
        } else if (content.view === me) {
            waiting[content.kind]?.(content, buffers);
        }
    };
    model.on("msg:custom", receive);
    // The pictures are light. VS Code puts widgets on white in its dark themes too, and their text stays pale.
    Object.assign(el.style, {background: "#ffffff", color: "#18191d", colorScheme: "light"});
    el.addEventListener("keydown", keepKeys);
    const release = () => {
        model.off("msg:custom", receive);
        el.removeEventListener("keydown", keepKeys);
    };
    // One request at a time. The answer is used before the next message: changes that follow it are patches of it.
    const request = (kind, more, use) =>
        new Promise((resolve, reject) => {
            waiting = {
                [kind]: (content, buffers) => {
                    try {
                        resolve(use(content, buffers));
                    } catch (error) {
                        reject(error);
                    }
                },
            };
            send({kind, ...more});
        });

    const note = document.createElement("p");
    note.textContent = "The explorer needs its kernel: run the cell again if this text stays.";
    el.append(note);
    try {
        const Bokeh = await bokeh(model.get("_bokeh"), (name) =>
            request("script", {name}, (_, buffers) => bytes(buffers[0])),
        );
        await request("document", {}, (content) => {
            shown = Bokeh.require("document").Document.from_json(JSON.parse(content.document));
        });
        note.remove();
        shown.on_change((event) => {
            const events = Array.isArray(event.events) ? event.events : [event];
            const own = event.sync === false ? [] : events.filter((one) => one.sync !== false);
            if (own.length === 0) return;
            const patch = shown.create_json_patch(own);
            send({kind: "patch", patch: JSON.stringify(patch, (_, value) => value?.to_base64?.() ?? value)});
        });
        const views = await Bokeh.embed.add_document_standalone(shown, el, [], false);
        const [releaseKeys, releaseRows] = [explorerKeys(Bokeh, el), fitRows(Bokeh, el)];
        return () => {
            release();
            releaseKeys();
            releaseRows();
            for (const view of views.roots ?? views) view.remove?.();
        };
    } catch (error) {
        note.textContent = `The explorer cannot be shown: ${error.message}`;
        el.append(note);
        return release;
    }
}

export default {render};
