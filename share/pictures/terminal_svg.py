"""Screens of a terminal as SVG: cells from "tmux capture-pane -e", one picture or a film.

Blocks and braille patterns are drawn as shapes, since fonts disagree about their size.  All
other text is placed run by run, so that a font of another width cannot move a column.
"""
import html
import re

CELL_W, CELL_H, BASE = 8.4, 17, 13
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
GROUNDS = {"dark": ("#d8dee9", "#1e222a"), "light": ("#1f2328", "#ffffff")}
ANSI = ["#3b4252", "#bf616a", "#a3be8c", "#ebcb8b", "#81a1c1", "#b48ead", "#88c0d0", "#e5e9f0",
        "#4c566a", "#d06f79", "#b1d196", "#f0d399", "#8cafd2", "#c895bf", "#93ccdc", "#eceff4"]
SGR = re.compile(r"\x1b\[([0-9;:]*)m")


def colour(n):
    """The colour of index n of the 256 that terminals number."""
    if n < 16:
        return ANSI[n]
    if n >= 232:
        return "#" + f"{8 + 10 * (n - 232):02x}" * 3
    n -= 16
    return "#" + "".join(f"{0 if v == 0 else 55 + 40 * v:02x}"
                         for v in (n // 36, n // 6 % 6, n % 6))


class Style:
    def __init__(self, ground):
        self.ground = ground
        self.fg = self.bg = None
        self.bold = self.dim = self.reverse = self.underline = False

    def key(self):
        fg, bg = self.fg or self.ground[0], self.bg or self.ground[1]
        if self.reverse:
            fg, bg = bg, fg
        return fg, bg, self.bold, self.dim, self.underline

    def apply(self, text):
        codes = [int(c or 0) for c in re.split("[;:]", text)]
        while codes:
            c = codes.pop(0)
            if c == 0:
                self.__init__(self.ground)
            elif c in (1, 2, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 4: "underline", 7: "reverse"}[c], True)
            elif c in (22, 24, 27):
                for name in {22: ("bold", "dim"), 24: ("underline",), 27: ("reverse",)}[c]:
                    setattr(self, name, False)
            elif c in (38, 48):
                value = None
                if codes and codes.pop(0) == 5:
                    value = colour(codes.pop(0))
                else:
                    value = "#" + "".join(f"{v:02x}" for v in codes[:3])
                    del codes[:3]
                setattr(self, "fg" if c == 38 else "bg", value)
            elif 30 <= c <= 37 or 90 <= c <= 97:
                self.fg = ANSI[c - 30 if c < 90 else c - 82]
            elif 40 <= c <= 47 or 100 <= c <= 107:
                self.bg = ANSI[c - 40 if c < 100 else c - 92]
            elif c in (39, 49):
                setattr(self, "fg" if c == 39 else "bg", None)


def width_of(char):
    import unicodedata
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cells_of(line, style):
    """(column, character, style) of a line that tmux captured with its colours.  style is that
    of the end of the line before: tmux writes only changes."""
    out, at, col = [], 0, 0
    while at < len(line):
        m = SGR.match(line, at)
        if m:
            style.apply(m.group(1))
            at = m.end()
            continue
        out.append((col, line[at], style.key()))
        col += width_of(line[at])
        at += 1
    return out


def number(v):
    return f"{v:.2f}".rstrip("0").rstrip(".")


def rect(x, y, w, h):
    return f"M{number(x)} {number(y)}h{number(w)}v{number(h)}h{number(-w)}z"


def shape_of(char, x):
    """The outline of a line, block or braille character in the cell at x, or None for other
    text."""
    n = ord(char)
    if char in LINES:
        mx, my, t = x + CELL_W / 2, CELL_H / 2, 3 if char in HEAVY else 1.2
        arms = {"u": rect(mx - t / 2, 0, t, my + t / 2),
                "d": rect(mx - t / 2, my - t / 2, t, my + t / 2),
                "l": rect(x, my - t / 2, CELL_W / 2 + t / 2, t),
                "r": rect(mx - t / 2, my - t / 2, CELL_W / 2 + t / 2, t)}
        return "".join(arms[a] for a in LINES[char])
    if 0x2581 <= n <= 0x2588:  # lower eighths
        h = CELL_H * (n - 0x2580) / 8
        return rect(x, CELL_H - h, CELL_W, h)
    if 0x2589 <= n <= 0x258F:  # left eighths
        return rect(x, 0, CELL_W * (0x2590 - n) / 8, CELL_H)
    if 0x2801 <= n <= 0x28FF:
        dots = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
        return "".join(rect(x + CELL_W * (0.14 + 0.5 * c), CELL_H * (0.06 + 0.25 * r),
                            CELL_W * 0.26, CELL_H * 0.15)
                       for bit, (c, r) in enumerate(dots) if (n - 0x2800) >> bit & 1)
    return None


# Lines go from the middle of a cell up, down, left and right.
LINES = dict(zip("─│┌┐└┘├┤┬┴┼╭╮╯╰", "lr ud dr dl ur ul udr udl dlr ulr udlr dr dl ul ur".split()))
HEAVY = {"┃": "ud"}
LINES.update(HEAVY)
SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}


def row_svg(line, style):
    """The shapes and texts of one line of the screen, its top at 0."""
    backs, paths, texts = [], {}, []
    run = None
    for col, char, (fg, bg, bold, dim, underline) in cells_of(line, style):
        x, w = col * CELL_W, width_of(char) * CELL_W
        if bg != style.ground[1]:
            if backs and backs[-1][0] == bg and abs(backs[-1][1] + backs[-1][2] - x) < 0.01:
                backs[-1][2] += w
            else:
                backs.append([bg, x, w])
        shape = rect(x, 0, CELL_W, CELL_H) if char in SHADES else shape_of(char, x)
        if shape is not None:
            opacity = SHADES.get(char, 1) * (0.6 if dim else 1)
            key = (fg, opacity)
            paths[key] = paths.get(key, "") + shape
            run = None
        elif char == " " and not underline:
            run = None
        else:
            key = (fg, bold, dim, underline)
            if run is None or run[0] != key or run[3] != col:
                run = [key, col, "", col]
                texts.append(run)
            run[2] += char
            run[3] = col + width_of(char)
    out = [f'<path fill="{c}" d="{rect(x, 0, w, CELL_H)}"/>' for c, x, w in backs]
    for (fg, opacity), d in paths.items():
        fade = f' opacity="{number(opacity)}"' if opacity < 1 else ""
        out.append(f'<path fill="{fg}"{fade} d="{d}"/>')
    for (fg, bold, dim, underline), col, text, end in texts:
        more = (' font-weight="bold"' if bold else "") + (' opacity=".6"' if dim else "")
        more += ' text-decoration="underline"' if underline else ""
        if len(text) > 1:
            more += f' textLength="{number((end - col) * CELL_W)}"'
        paint = "" if fg == style.ground[0] else f' fill="{fg}"'
        out.append(f'<text x="{number(col * CELL_W)}" y="{BASE}"{paint}{more}>'
                   f'{html.escape(text, quote=False)}</text>')
    return "".join(out)


def film(frames, cols, rows, title, kind="dark"):
    """An SVG of frames, each (seconds it stays, list of lines).  One frame gives a still.
    kind is that of the terminal, dark or light."""
    ground = GROUNDS[kind]
    symbols, body, keys = {}, [], []
    total = sum(stay for stay, _ in frames)
    height, at = rows * CELL_H, 0.0
    for i, (stay, lines) in enumerate(frames):
        used, style = [], Style(ground)
        for y, line in enumerate(lines[:rows]):
            svg = row_svg(line, style)
            if svg:
                name = symbols.setdefault(svg, f"r{len(symbols)}")
                used.append(f'<use href="#{name}" y="{y * CELL_H}"/>')
        body.append(f'<g transform="translate(0 {i * height})">{"".join(used)}</g>')
        keys.append(f"{number(100 * at / total)}%{{transform:translateY({-i * height}px)}}")
        at += stay
    style = f"text{{font:14px {FONT};white-space:pre}}"
    if len(frames) > 1:
        style += (f"#film{{animation:film {number(total)}s steps(1,end) infinite}}"
                  f"@keyframes film{{{''.join(keys)}}}")
    w, h = cols * CELL_W, height
    defs = "".join(f'<g id="{name}">{svg}</g>' for svg, name in symbols.items())
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 {number(w + 24)} {h + 24}" '
            f'width="{number(w + 24)}" height="{h + 24}"><title>{html.escape(title)}</title>'
            f"<style>{style}</style>"
            f'<rect x="-12" y="-12" width="{number(w + 24)}" height="{h + 24}" rx="8" '
            f'fill="{ground[1]}"/><defs>{defs}</defs>'
            f'<svg width="{number(w)}" height="{h}" overflow="hidden">'
            f'<g id="film" fill="{ground[0]}">{"".join(body)}</g></svg></svg>\n')
