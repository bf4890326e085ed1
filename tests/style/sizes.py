#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure functions, comments of the firmware's headers, and documents.

usage: sizes.py ROOT

- Functions, from their first line to the closing brace: half of those of the library and the
  launcher have at most 10 lines, and none outside of tests has more than 60.
- nic/**/*.h together have at least one line with a comment for two lines with code.  A line
  with both counts in both; an empty line, and one of a comment without a letter, in neither.
- README.md and docs/performance.md have at most 160 lines.
- A file of docs/design/ has at most two pages, which are 1,300 words.
"""

import pathlib
import re
import statistics
import sys

LIBRARY = ("shm", "nic", "lib", "launcher")
OTHERS = ("info", "bench", "examples")
MEDIAN, MOST, RATIO, DOCUMENT, WORDS = 10, 60, 0.5, 160, 1300
LEAST = 2000  # functions, or this program no longer finds them

bad = []


def complain(*words):
    bad.append(" ".join(map(str, words)))


def functions(text):
    """Return the first line's number and the length of each function, as clang-format
    leaves it: only its braces stand alone at the beginning of a line."""
    lines, start, found = text.splitlines(), None, []
    for i, line in enumerate(lines):
        if line == "{":
            start = i - 1
            while start > 0 and lines[start][:1] in ("\t", " "):
                start -= 1
        elif line == "}" and start is not None:
            found.append((start + 1, i - start + 1))
            start = None
    return found


def check_functions(root):
    ours = []
    for folder in LIBRARY + OTHERS:
        for path in sorted(p for p in (root / folder).rglob("*.[ch]")):
            for line, length in functions(path.read_text()):
                if folder in LIBRARY:
                    ours.append(length)
                if length > MOST:
                    complain(f"{path.relative_to(root)}:{line}: a function of {length} lines, not {MOST} at most")
    if len(ours) < LEAST:
        complain("only", len(ours), "functions in", *LIBRARY)
    elif statistics.median(ours) > MEDIAN:
        complain("half of the", len(ours), "functions have", statistics.median(ours), "lines or more, not", MEDIAN)
    return ours


def lines_of(text):
    """Return the numbers of lines with a comment and of lines with code."""
    comments = code = 0
    # Mark the comments: \1 in each of their lines that has a letter.
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"/\*.*?\*/|//[^\n]*",
                  lambda m: re.sub(r"[^\n]*[A-Za-z][^\n]*", "\1", re.sub(r"[^\w\n]", " ", m[0])),
                  text, flags=re.S)
    for line in text.splitlines():
        comments += "\1" in line
        code += bool(re.sub(r"[\s\1]", "", line))
    return comments, code


def check_comments(root):
    found = [lines_of(p.read_text()) for p in sorted((root / "nic").rglob("*.h"))]
    comments, code = (sum(column) for column in zip((0, 0), *found))
    if code < 1000:
        complain("only", code, "lines of code in nic/**/*.h")
    elif comments / code < RATIO:
        complain(f"nic/**/*.h: {comments} lines with comments, {code} with code: less than {RATIO}")
    return comments, code


def check_documents(root):
    lines = {d: len((root / d).read_text().splitlines()) for d in ("README.md", "docs/performance.md")}
    for doc, n in lines.items():
        if n > DOCUMENT:
            complain(f"{doc} has {n} lines, not {DOCUMENT} at most")
    words = {d.name: len(d.read_text().split()) for d in sorted((root / "docs/design").glob("*.md"))}
    for doc, n in words.items():
        if n > WORDS:
            complain(f"docs/design/{doc} has {n} words, not {WORDS} at most: two pages")
    if len(words) < 8:
        complain("only", len(words), "documents in docs/design/")
    return lines, max(words.values(), default=0)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    ours, (comments, code) = check_functions(root), check_comments(root)
    lines, words = check_documents(root)
    print("\n".join(bad), end="\n" if bad else "")
    if not bad:
        print(f"{len(ours)} functions, median {statistics.median(ours):g} lines, longest {max(ours)}; "
              f"nic/**/*.h: {comments} / {code} = {comments / code:.2f}; longest document of docs/design/: {words} words; "
              + ", ".join(f"{doc}: {n} lines" for doc, n in lines.items()))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
