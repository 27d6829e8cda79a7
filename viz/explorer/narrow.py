"""Pictures of the explorer in pages that are narrower than their titles and legends."""

from __future__ import annotations

from bokeh.models import CustomJS
from bokeh.models.annotations import Legend, Title
from bokeh.plotting import figure

# As `viz/common/figures.py` does it for 700 pixels: pixels of a character of a title, and of a legend; room
# beside the text of an entry; pixels of a row of each.
_FIT_JS = """
    const available = fig.outer_width - 60;
    if (!(available > 0)) return;
    if (fig.wide_title == null || fig.title.text !== fig.narrow_title) fig.wide_title = fig.title.text;
    let title = '';
    const most = Math.max(...fig.wide_title.split('\\n').map((line) => line.length));
    const fits = Math.floor((available - 75) / 8.2);
    if (fits >= most) title = fig.wide_title;
    else {
        let line = 0;
        for (const word of fig.wide_title.split(/[ \\n]+/)) {
            const breaks = line > 0 && line + 1 + word.length > fits;
            title += (line === 0 ? '' : breaks ? '\\n' : ' ') + word;
            line = breaks || line === 0 ? word.length : line + 1 + word.length;
        }
    }
    const lines = (text) => text.split('\\n').length;
    let more = 18 * (lines(title) - lines(fig.wide_title));
    fig.narrow_title = title;
    if (fig.title.text !== title) fig.title.setv({text: title}, {sync: false});
    for (const legend of legends) {
        legend.wide ??= legend.ncols;
        const widths = legend.items.map((item) => 7.2 * `${item.label?.value ?? ''}`.length + 35);
        let columns = legend.wide;
        const width = () => {
            const widest = Array(columns).fill(0);
            widths.forEach((each, at) => { widest[at % columns] = Math.max(widest[at % columns], each); });
            return widest.reduce((sum, each) => sum + each, 0);
        };
        while (columns > 1 && width() > available) columns -= 1;
        const rows = (each) => Math.ceil(widths.length / each);
        more += 24 * (rows(columns) - rows(legend.wide));
        if (legend.ncols !== columns) legend.setv({ncols: columns}, {sync: false});
    }
    fig.wide_height ??= fig.height;
    const height = fig.wide_height + more;
    if (fig.height !== height) fig.setv({height}, {sync: false});
"""


def fit_when_narrow(fig: figure) -> None:
    """Break title and legend of a figure where the page is too narrow for them.

    The page does so when its width changes, and when the title does.
    """
    legends = [each for each in fig.above if isinstance(each, Legend)]
    fit = CustomJS(args={"fig": fig, "legends": legends}, code=_FIT_JS)
    fig.js_on_change("outer_width", fit)
    assert isinstance(fig.title, Title)
    fig.title.js_on_change("text", fit)
