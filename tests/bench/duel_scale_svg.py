# SPDX-License-Identifier: Apache-2.0
"""Lines, one figure a series: what an operation costs by the size of what grows,
against the smallest. Colours serve light and dark."""
import math
import os
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 340, 56, 190, 52, 48
COLOURS = ["#2b7de0", "#d9822b", "#2f9e5b", "#b0479a"]


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def axes(sizes, x, y, top):
    out = []
    for size in sizes:
        out += [f'<path d="M{x(size):.1f} {TOP}V{HEIGHT - BOTTOM}" '
                'stroke="#777" stroke-opacity=".25"/>',
                text(x(size), HEIGHT - BOTTOM + 18, f"{size:,}",
                     'text-anchor="middle"')]
    value = 0
    while value <= top:
        out += [f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" '
                'stroke="#777" stroke-opacity=".25"/>',
                text(LEFT - 6, y(value) + 4, f"{value:.2g}",
                     'text-anchor="end"')]
        value += 0.5 if top > 1.6 else 0.25
    return out


def line(rows, x, y, colour):
    points = [(x(r["size"]), r["ratio"]) for r in rows]
    out = [f'<path d="M{px:.1f} {y(r["least"]):.1f}V{y(r["most"]):.1f}" '
           f'stroke="{colour}" stroke-opacity=".5"/>' for px, r in points]
    path = "L".join(f"{px:.1f} {y(r['median']):.1f}" for px, r in points)
    out.append(f'<path d="M{path}" fill="none" stroke="{colour}" '
               'stroke-width="2"/>')
    out += [f'<circle cx="{px:.1f}" cy="{y(r["median"]):.1f}" r="3" '
            f'fill="{colour}"/>' for px, r in points]
    return out


def figure(table, flat):
    rows = table["rows"]
    sizes = sorted({r["size"] for r in rows})
    top = max(1.4, *(r["ratio"]["most"] for r in rows))
    low, high = math.log(sizes[0]), math.log(sizes[-1])

    def x(size):
        return LEFT + 20 + (math.log(size) - low) / (high - low) * \
            (WIDTH - LEFT - RIGHT - 40)

    def y(value):
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
           f'{HEIGHT}" font-family="sans-serif" font-size="13" fill="#777">',
           text(8, 22, table["title"][0].upper() + table["title"][1:],
                'font-size="15"'),
           text(8, 40, "CPU of an operation, against the smallest; median, "
                "least to most"), *axes(sizes, x, y, top),
           f'<path d="M{LEFT} {y(flat):.1f}H{WIDTH - RIGHT}" stroke="#c33" '
           'stroke-dasharray="4 4"/>',
           text(WIDTH - RIGHT + 6, y(flat) + 4, f"{flat}", 'fill="#c33"')]
    for i, kind in enumerate(dict.fromkeys(r["kind"] for r in rows)):
        of = [r for r in rows if r["kind"] == kind]
        out += line(of, x, y, COLOURS[i])
        at = HEIGHT - BOTTOM - 70 + 18 * i
        out += [f'<circle cx="{WIDTH - RIGHT + 14}" cy="{at - 4}" r="4" '
                f'fill="{COLOURS[i]}"/>',
                text(WIDTH - RIGHT + 24, at, f"{kind}, at first "
                     f"{of[0]['all']['median']:.3g} us")]
    return "\n".join([*out, "</svg>", ""])


def plot(result, folder, flat):
    os.makedirs(folder, exist_ok=True)
    for table in result["tables"]:
        if "size" not in table["rows"][0]:
            continue
        with open(f"{folder}/scale-{table['name']}.svg", "w") as f:
            f.write(figure(table, flat))
