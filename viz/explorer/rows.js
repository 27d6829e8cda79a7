// Rows of tables whose texts have several lines, as high as the texts are in the width of the page: Python knows no
// width, and makes them as high as a narrow page needs. Numbers as in tables.py.
// fitRows(Bokeh, root) fits the tables inside of an element, and returns what ends that.
function fitRows(Bokeh, root) {
    const [LINES, HEAD, LINE, AROUND, CHARACTER, BESIDE, LEAST, MOST] =
        ["rows as high as their texts", 30, 15, 8, 6.1, 12, 25, 4];
    const fit = ({model, el}) => {
        const [data, wide] = [model.source.data, el.clientWidth];
        const whole = model.columns.reduce((sum, each) => sum + each.width, 0);
        if (!wide || !whole) return;
        let lines = 1;
        for (const {field, width} of model.columns) {
            const characters = ((wide * width) / whole - BESIDE) / CHARACTER;
            for (const text of data[field] ?? []) lines = Math.max(lines, Math.ceil(`${text}`.length / characters));
        }
        const row_height = Math.max(LEAST, AROUND + LINE * Math.min(lines, MOST));
        const rows = Math.max(1, Math.min(model.tags[1], data[model.columns[0].field]?.length ?? 0));
        const height = HEAD + rows * row_height;
        if (row_height !== model.row_height || height !== model.height) {
            model.setv({row_height, height}, {sync: false});
        }
    };
    let later = 0;
    const look = () => {
        clearTimeout(later);
        for (const view of Bokeh.index.query((each) => each.model.tags?.[0] === LINES)) {
            if (view.grid) fit(view);
            else later = setTimeout(look, 100); // a table gets its place before its rows
        }
    };
    // What is drawn later makes the page higher; its body may be as high as the window.
    const changed = new ResizeObserver(look);
    for (const each of [root, ...[...Bokeh.index.roots].map((view) => view.el)]) changed.observe(each);
    return () => {
        clearTimeout(later);
        changed.disconnect();
    };
}
