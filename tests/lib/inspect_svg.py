#!/usr/bin/env python3
"""Looks at a picture of a flow: inspect_svg.py FILE [EXPRESSION].

Reads it as XML, and looks whether boxes overlap, lie outside, or are crossed by a line. Prints what is
wrong, else the value of the expression (default: how many boxes there are) over `boxes` (a list of
Box), `lines` (a list of Line) and `text` (everything that can be read).
"""
import bisect
import collections
import re
import sys
import xml.etree.ElementTree as tree

S = "{http://www.w3.org/2000/svg}"
Box = collections.namedtuple("Box", "id title classes text x y w h")
Line = collections.namedtuple("Line", "title classes d label")
root = tree.parse(sys.argv[1]).getroot()
boxes, lines, problems = [], [], []
for g in root.iter(S + "g"):
    title, rect, path = g.find(S + "title").text, g.find(S + "rect"), g.find(S + "path")
    texts = [t.text for t in g.findall(S + "text")]
    if path is not None:
        lines.append(Line(title, path.get("class").split(), path.get("d"), "".join(texts)))
        continue
    if rect.get("rx") == "6":  # the one behind a group
        rect = g.findall(S + "rect")[1]
    boxes.append(Box(texts[0], title, g.get("class").split(), texts[1],
                     *(int(rect.get(n)) for n in ("x", "y", "width", "height"))))
text = " ".join(root.itertext())
width, height = int(root.get("width")), int(root.get("height"))


def points(d):
    """Ends of what a path goes through, with three points on each curve between them."""
    x = y = 0
    for word, numbers in re.findall(r"([MHVC])([^MHVC]*)", d):
        n = [int(v) for v in numbers.split()]
        if word == "C":
            for t in (0.25, 0.5, 0.75):
                a, b, c, e = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3
                yield a * x + b * n[0] + c * n[2] + e * n[4], a * y + b * n[1] + c * n[3] + e * n[5]
        x = n[0] if word == "H" else x if word == "V" else n[-2]
        y = n[0] if word == "V" else y if word == "H" else n[-1]
        yield x, y


columns = {}
for b in boxes:
    columns.setdefault(b.x, []).append(b)
    if b.x < 0 or b.y < 0 or b.x + b.w > width or b.y + b.h > height:
        problems.append("%s lies outside" % b.id)
for column in columns.values():
    column.sort(key=lambda b: b.y)
    for one, other in zip(column, column[1:]):
        if one.y + one.h >= other.y:
            problems.append("%s overlaps %s" % (one.id, other.id))
lefts = sorted(columns)
tops = {x: [b.y for b in column] for x, column in columns.items()}
bottom = max(b.y + b.h for b in boxes)


def crossed(x1, y1, x2, y2):
    """A box that the straight piece, no longer than from gap to gap, goes through."""
    x1, x2 = min(x1, x2), max(x1, x2)
    if min(y1, y2) >= bottom:
        return None
    for left in lefts[max(0, bisect.bisect_right(lefts, x1) - 1):bisect.bisect_left(lefts, x2)]:
        column = columns[left]
        if x1 >= left + column[0].w or x2 <= left:
            continue
        first = max(0, bisect.bisect_right(tops[left], min(y1, y2)) - 1)
        for b in column[first:bisect.bisect_left(tops[left], max(y1, y2))]:
            if max(y1, y2) > b.y and min(y1, y2) < b.y + b.h:
                return b.id
    return None


for line in lines[::1 + len(lines) // 2000]:  # of very many some
    way = list(points(line.d))
    for (x1, y1), (x2, y2) in zip(way, way[1:]):
        hit = crossed(x1, y1, x2, y2)
        if hit is not None:
            problems.append("the line %s goes through %s" % (line.title, hit))
            break
        if not (0 <= x2 <= width and 0 <= y2 <= height):
            problems.append("the line %s leads outside" % line.title)
            break
print("\n".join(problems[:10]) if problems else eval(sys.argv[2] if len(sys.argv) > 2 else "len(boxes)"))
sys.exit(1 if problems else 0)
