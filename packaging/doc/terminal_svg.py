# SPDX-License-Identifier: BSD-2-Clause
"""Draw a terminal's screen, as `tmux capture-pane -p -e` prints it, as SVG.

    python terminal_svg.py [dark|light] <SCREEN >SVG

Knows bold, dim, underline, reverse and the eight colours, as a dark or a light terminal (xterm's colours) has
them.
"""

import html
import re
import sys

CELL_WIDTH, CELL_HEIGHT, MARGIN = 7.8, 17, 10
# Text, background, dim text
THEMES = {"dark": ("#d8dee9", "#1e222a", "#8a93a3"), "light": ("#24292f", "#ffffff", "#8a9199")}
COLOURS = ("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5")
SGR = re.compile("\x1b\\[([0-9;]*)m")
SHIFTS = re.compile("[\x0e\x0f]")  # tmux prints those of the alternate character set


class Style:
    """Attributes of the text that follows; colours are indices into COLOURS, or None."""

    def __init__(self):
        self.bold = self.dim = self.underline = self.reverse = False
        self.ink = self.paper = None

    def apply(self, code):
        if code == 0:
            self.__init__()
        elif code in (1, 2, 4, 7):
            setattr(self, {1: "bold", 2: "dim", 4: "underline", 7: "reverse"}[code], True)
        elif 30 <= code <= 37 or code == 39:
            self.ink = code - 30 if code < 38 else None
        elif 40 <= code <= 47 or code == 49:
            self.paper = code - 40 if code < 48 else None

    def font(self):
        """Return attributes of SVG's text."""
        return ((' font-weight="bold"' if self.bold else "")
                + (' text-decoration="underline"' if self.underline else ""))

    def colours(self, theme):
        """Return the colours of the text and of what is behind it; None: the terminal's."""
        text, background, dim = THEMES[theme]
        ink = COLOURS[self.ink] if self.ink is not None else dim if self.dim else text
        paper = COLOURS[self.paper] if self.paper is not None else None
        return (paper or background, ink) if self.reverse else (ink, paper)


def runs(line, style, theme):
    """Split a line into (column, text, font, colours); style changes with it."""
    column = at = 0
    for match in [*SGR.finditer(line), None]:
        text = line[at:match.start() if match else len(line)]
        if text:
            yield column, text, style.font(), style.colours(theme)
        column += len(text)
        if match:
            at = match.end()
            for code in match.group(1).split(";"):
                style.apply(int(code or 0))


def draw(row, column, text, font, colours):
    x = MARGIN + column * CELL_WIDTH
    y = MARGIN + row * CELL_HEIGHT
    width = len(text) * CELL_WIDTH
    ink, paper = colours
    if paper:
        yield '<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>' % (
            x, y, width, CELL_HEIGHT, paper)
    if text.strip() or "underline" in font:
        yield '<text x="%.1f" y="%d" textLength="%.1f" fill="%s"%s xml:space="preserve">%s</text>' % (
            x, y + 13, width, ink, font, html.escape(text))


def main():
    theme = sys.argv[1] if len(sys.argv) > 1 else "dark"
    lines = SHIFTS.sub("", sys.stdin.read()).rstrip("\n").split("\n")
    columns = max(len(SGR.sub("", line)) for line in lines)
    width = columns * CELL_WIDTH + 2 * MARGIN
    height = len(lines) * CELL_HEIGHT + 2 * MARGIN
    style = Style()
    print('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
          'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">' % (
              width, height, width, height))
    print('<rect width="100%%" height="100%%" rx="6" fill="%s"/>' % THEMES[theme][1])
    for row, line in enumerate(lines):
        for run in runs(line, style, theme):
            print("\n".join(draw(row, *run)))
    print("</svg>")


if __name__ == "__main__":
    main()
