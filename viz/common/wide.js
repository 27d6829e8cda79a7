// Called when the width of a figure changes: in a wide one, texts above the frame have longer lines and legends more columns.
// Of each text and legend, ensioNarrow keeps what it was made as, which a narrow window has again.
const width = cb_obj.inner_width;
const wide = width >= least;
const known = (globalThis.ensioNarrow ??= new WeakMap());
const wrapped = (text, line) => {
    const lines = [''];
    for (const word of text.split(/[ \n]/)) {
        const last = lines[lines.length - 1];
        if (last && last.length + word.length >= line) lines.push(word);
        else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    }
    return lines.join('\n');
};
let changes = false;
for (const part of [cb_obj.title, ...cb_obj.above]) {
    if (part?.type === 'Title') {
        const [made, last] = known.get(part) ?? [];
        const narrow = part.text === last ? made : part.text;
        const character = part === cb_obj.title ? title_px : text_px;
        const text = wide ? wrapped(narrow, Math.floor(width / character)) : narrow;
        known.set(part, [narrow, text]);
        if (text === part.text) continue;
        part.setv({text}, {sync: false});
        changes = true;
    } else if (part?.type === 'Legend') {
        const narrow = known.get(part) ?? part.ncols;
        known.set(part, narrow);
        const text_of = (item) => String(item.label?.value ?? item.label ?? '');
        const widths = part.items.map((item) => character_px * text_of(item).length + entry_px);
        let columns = wide ? Math.max(widths.length, 1) : narrow;
        const needs = (count) => {
            const most = Array(count).fill(0);
            widths.forEach((each, i) => { most[i % count] = Math.max(most[i % count], each); });
            return most.reduce((sum, each) => sum + each, 0);
        };
        while (wide && columns > narrow && needs(columns) > width - 10) columns--;
        if (columns !== part.ncols) part.setv({ncols: columns}, {sync: false});
    }
}
const [view] = cb_context.index.query((each) => each.model === cb_obj);
// No gesture begins by holding: Bokeh would drop a drag whose mouse rests for 0.3 s first.
if (view) view.canvas_view.ui_event_bus.ui_gestures._start_timeout = () => {};
// Bokeh gives a changed title other room in the next layout, after it has been drawn.
if (view && changes) setTimeout(() => view.invalidate_layout(), 50);
