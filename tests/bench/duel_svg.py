# SPDX-License-Identifier: Apache-2.0
"""Bars, one figure a table: who costs what. Colours serve light and dark."""
import os
from xml.sax.saxutils import escape

BAR, GAP, LEFT, WIDTH, TOP = 20, 8, 190, 640, 48


def figure(table):
    rows = table["rows"]
    most = max(r["most"] for r in rows) or 1
    height = TOP + len(rows) * (BAR + GAP) + GAP
    scale = (WIDTH - LEFT - 110) / most
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
           f'{height}" font-family="sans-serif" font-size="13" fill="#777">',
           f'<text x="8" y="22" font-size="15">{escape(table["title"])}</text>',
           f'<text x="8" y="40">{"" if table["unit"] == "KiB" else "CPU "}'
           f'{escape(table["unit"])}, median; line: '
           'least to most</text>']
    for i, r in enumerate(rows):
        y = TOP + i * (BAR + GAP)
        mine = r["subject"].startswith("sallyport")
        middle = y + BAR / 2
        label = f"{r['median']:.3g}" + (f"  ({r['ratio']:.2f}x)"
                                        if r["ratio"] else "")
        out += [
            f'<text x="{LEFT - 8}" y="{middle + 5}" text-anchor="end">'
            f'{escape(r["subject"])}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{r["median"] * scale:.1f}" '
            f'height="{BAR}" fill="{"#2b7de0" if mine else "#9aa5b1"}"/>',
            f'<path d="M{LEFT + r["least"] * scale:.1f} {middle}H'
            f'{LEFT + r["most"] * scale:.1f}" stroke="#555"/>',
            f'<text x="{LEFT + r["most"] * scale + 8:.1f}" y="{middle + 5}">'
            f'{escape(label)}</text>']
    return "\n".join([*out, "</svg>", ""])


def plot(result, folder):
    os.makedirs(folder, exist_ok=True)
    for table in result["tables"]:
        if table["rows"]:
            with open(f"{folder}/{table['name']}.svg", "w") as f:
                f.write(figure(table))
