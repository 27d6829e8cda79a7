"""Texts that a page draws into its pictures, and where: labels that are cut off or lie on each other."""

from __future__ import annotations

from typing import NamedTuple

from playwright.sync_api import Page

WATCH = """
(() => {
    const drawn = window.ensioDrawn = new Map();
    const paint = CanvasRenderingContext2D.prototype;
    const { clearRect, fillText } = paint;
    paint.clearRect = function (...box) {
        drawn.set(this.canvas, []);
        return clearRect.apply(this, box);
    };
    paint.fillText = function (text, x, y, ...rest) {
        const size = this.measureText(text), place = this.getTransform();
        const corners = [];
        for (const dx of [-size.actualBoundingBoxLeft, size.actualBoundingBoxRight])
            for (const dy of [-size.actualBoundingBoxAscent, size.actualBoundingBoxDescent])
                corners.push(place.transformPoint({ x: x + dx, y: y + dy }));
        const xs = corners.map((each) => each.x), ys = corners.map((each) => each.y);
        if (!drawn.has(this.canvas)) drawn.set(this.canvas, []);
        const box = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
        drawn.get(this.canvas).push([text, ...box]);
        return fillText.call(this, text, x, y, ...rest);
    };
})();
"""
"""Script that remembers the texts of each canvas since it was cleared."""

_FIGURES = """
    () => Bokeh.documents.flatMap((one) => [...one.all_models])
        .filter((model) => model.frame_width !== undefined && Bokeh.index.find_one(model))
        .map((model) => {
            const view = Bokeh.index.find_one(model), frame = view.frame.bbox, texts = [];
            for (const canvas of view.canvas_view.el.shadowRoot.querySelectorAll("canvas"))
                texts.push(...(ensioDrawn.get(canvas) ?? []));
            const box = view.canvas_view.el.getBoundingClientRect();
            const sides = [frame.left, frame.right, frame.top, frame.bottom];
            return [model.name, sides, [box.width, box.height], texts];
        })
"""


class Text(NamedTuple):
    """A text on the screen, in pixels of its figure."""

    text: str
    left: float
    right: float
    top: float
    bottom: float

    def touches(self, other: Text) -> bool:
        """Whether the boxes of both have points in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


class Drawn(NamedTuple):
    """A figure as it is drawn."""

    name: str
    frame: Text
    size: tuple[float, float]
    texts: list[Text]

    def cut_off(self) -> list[str]:
        """Texts that leave the figure."""
        width, height = self.size
        return [
            each.text
            for each in self.texts
            if each.left < -1 or each.right > width + 1 or each.top < -1 or each.bottom > height + 1
        ]

    def of(self, texts: list[str]) -> list[Text]:
        """Where these texts are."""
        return [each for each in self.texts if each.text in texts]


def drawn_figures(page: Page) -> list[Drawn]:
    """The figures of a page that was opened with `WATCH`."""
    return [
        Drawn(name, Text("", *frame), tuple(size), [Text(*each) for each in texts])
        for name, frame, size, texts in page.evaluate(_FIGURES)
    ]
