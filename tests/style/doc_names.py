#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Find names in documents and in comments that the tree does not have.

usage: doc_names.py ROOT

In documents: files and links; functions in backticks with (), and in a table of functions
and files that function in that file; files, macros, types, variables and functions in
backticks without (), also inside of longer text, and in blocks of code.  In comments of C
files, in other text of documents, and in pictures: names that begin with a prefix of this
library, and, in headers, files.  docs/history is a record of its day, so it may name what
no longer exists.
"""

import pathlib
import re
import sys

FOLDERS = ("include", "lib", "nic", "shm", "launcher", "examples", "bench", "tests", "cmake", ".ci")
CODE = ("include", "lib", "nic", "shm", "launcher", "examples")
TEXT = (".c", ".h", ".cc", ".sh", ".py", ".cmake", ".txt", ".pml", ".in", ".awk", ".h2m", ".map")
OTHERS = ("CMakeLists.txt", "CMakePresets.json", ".clang-format", ".clang-tidy")

# Names of other libraries and tools that a document uses, and names of examples.
FOREIGN = {"fork", "close_range", "sdt_libportals", "what_it_shows", "PtlXNew",
           "PTL3_WIRE",  # which NEWS.md says is gone
           # of libfabric, which makes names of settings from those of lib/ofi/prov.c
           "FI_PROVIDER", "FI_PROVIDER_PATH", "FI_PORTALS_EAGER", "FI_PORTALS_UNEXPECTED",
           "fi_cntr_wait", "fi_cq_sread"}

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
WORD = re.compile(r"[A-Za-z_]\w*")
FILE = r"[A-Za-z0-9_.-]+\.(?:c|h|cc|sh|py|awk|cmake|md|svg|pml|txt)"
PLACE = re.compile(rf"(?<![\w./$-])(?:{'|'.join(map(re.escape, FOLDERS))}|docs)/[\w./-]*\w(\*|\.\*)?")
NAME = re.compile(r"(?<![\w.$*-])(?:Ptl[A-Z]\w*|[A-Za-z]\w*_\w*|_[A-Z]\w*)(\*?)|(?<=-D)\w+()")
OURS = re.compile(r"(?<![\w.])(?:p3_\w*|P3_\w*|Ptl[A-Z]\w*|PTL_\w+|PTL3_\w+)(?:/\w+)?(\*?)")

bad = []


def complain(*words):
    bad.append(" ".join(words))


def read(path):
    return path.read_text(errors="replace")


class Tree:
    """Names and files of the source tree."""

    def __init__(self, root):
        self.root = root
        self.files = [p for f in FOLDERS if (root / f).is_dir() for p in sorted((root / f).rglob("*"))
                      if p.is_file()] + [root / o for o in OTHERS if (root / o).is_file()]
        self.docs = sorted(root.glob("docs/**/*"))
        self.basenames = {p.name for p in self.files + self.docs + list(root.glob("*"))}
        self.words, self.defined, self.comments, made = set(), {}, {}, set()
        for p in self.files:
            name = str(p.relative_to(root))
            if p.suffix in (".c", ".h", ".cc"):
                self.take_c(name, read(p))
            elif p.suffix in TEXT or not p.suffix or p.name in OTHERS:
                self.take_text(read(p), made)
        for d in self.docs:
            if d.suffix == ".md":
                blocks = re.findall(r"^```c file=(\S+)\n(.*?)^```", read(d), re.S | re.M)
                for file, code in blocks:
                    self.basenames.add(file)
                    self.words |= {w for w in WORD.findall(code) if not OURS.fullmatch(w)}
        # Tests are named by CMake: mp_${name} is made of mp_ and a word of the tree.
        self.made = tuple(made)

    def take_text(self, text, made):
        self.words |= set(WORD.findall(text))
        self.basenames |= set(re.findall(FILE, text))
        made |= set(re.findall(r"\b([a-z][a-z_]*_)\$\{", text))

    def take_c(self, name, text):
        comments, code, at = [], [], 0
        for m in TOKEN.finditer(text):
            if m.group()[0] == "/":
                code.append(text[at:m.start()])
                comments.append((text.count("\n", 0, m.start()) + 1, m.group()))
                at = m.end()
        code = "".join(code) + text[at:]
        self.words |= set(WORD.findall(code))
        self.basenames |= set(re.findall(FILE, code))
        # They begin a line, their name after a type.
        first, last = (set(re.findall(rf"^(?:[a-z][^\n;]*{most}[ *]|\t*)(\w+) ?\(", code, re.M))
                       for most in ("?", ""))
        self.defined[name] = first | last
        self.comments[name] = comments

    def has(self, word):
        return word in self.words or word in FOREIGN or \
            self.is_made(word, lambda rest: rest in self.words)

    def begins(self, start):
        def known(begin):
            return any(w.startswith(begin) for w in self.words)
        return known(start) or self.is_made(start.rstrip("_"), known)

    def is_made(self, word, known):
        return any(word.startswith(p) and known(word[len(p):]) for p in self.made)

    def defines(self, function):
        return any(function in names for f, names in self.defined.items() if f.startswith(CODE))


def check_word(tree, where, word, star):
    if star or word.endswith("_"):
        if not tree.begins(word):
            complain(where, "names nothing that is there:", word + star)
    elif not tree.has(word):
        complain(where, "names what is not there:", word)


def check_span(tree, where, span):
    """A text in backticks."""
    if re.fullmatch(rf"(?:{'|'.join(map(re.escape, FOLDERS))}|docs)/[A-Za-z0-9_./-]*", span):
        if not (tree.root / span).exists():
            complain(where, "names a file that is not there:", span)
        return
    if re.fullmatch(FILE, span):
        if span not in tree.basenames:
            complain(where, "names a file that is not there:", span)
        return
    m = re.fullmatch(r"(\w+)\(\)", span)
    if m:
        if m.group(1) not in FOREIGN and not tree.defines(m.group(1)):
            complain(where, "names a function that is not there:", span)
        return
    check_code(tree, where, span)


def check_code(tree, where, text):
    """Text with names and files: a block, or a text in backticks that is more than one."""
    for m in PLACE.finditer(text):
        if not any(tree.root.glob(m.group())):
            complain(where, "names a file that is not there:", m.group())
    for m in NAME.finditer(PLACE.sub(" ", text)):
        check_word(tree, where, m.group().rstrip("*"), m.group(1) or "")


def check_prose(tree, where, text):
    for m in OURS.finditer(text):
        check_word(tree, where, m.group().rstrip("*").partition("/")[0], m.group(1))


def sections(path):
    """Return the anchors of a document's headings."""
    heads = re.findall(r"^#+ (.*)$", read(path), re.M) if path.suffix == ".md" else []
    return {"#" + re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in heads}


def check_document(tree, path):
    doc, text = str(path.relative_to(tree.root)), read(path)
    for block in re.findall(r"^```.*?^```", text, re.S | re.M):
        check_code(tree, doc, block)
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    check_prose(tree, doc, re.sub(r"`[^`\n]+`", "", text))
    for link, section in sorted(set(re.findall(r"\]\(([\w./-]*)(#[\w-]+)?\)", text))):
        target = path.parent / link if link else path
        if not target.exists() or section and section not in sections(target):
            complain(doc, "links to nothing:", link + section)
    for span in sorted(set(re.findall(r"`([^`\n]+)`", text))):
        check_span(tree, doc, span)
    rows = re.findall(r"^\| `(\w+)\(\)` \| `([a-z0-9_./]+)` \|", text, re.M)
    for function, file in rows:
        if function not in tree.defined.get(file, ()):
            complain(f"{doc}: no {function} in {file}")
    for names, file in re.findall(r"((?:`\w+`(?:, | and )?)+) in `([a-z]+/[\w./]+)`", text):
        there = set(WORD.findall(read(tree.root / file))) if (tree.root / file).is_file() else ()
        for name in re.findall(r"`(\w+)`", names):
            if name not in there:
                complain(f"{doc}: no {name} in {file}")
    return len(rows)


def check_comments(tree, name, comments):
    names = 0
    for line, text in comments:
        where = f"{name}:{line}"
        for m in OURS.finditer(text):
            word, _, other = m.group().rstrip("*").partition("/")
            check_word(tree, where, word, m.group(1))
            if other and not tree.has(word.rsplit("_", 1)[0] + "_" + other) and not tree.has(other):
                complain(where, "names what is not there:", m.group())
            names += 1
        if not name.endswith(".h"):
            continue
        for file in re.findall(rf"(?<![\w/.<*-])((?:[\w.-]+/)*{FILE})\b(?!\()", text):
            ours = file.split("/")[0] in FOLDERS + ("docs",)
            lost = ours and not (tree.root / file).exists()
            if lost or file.rsplit("/", 1)[-1] not in tree.basenames:
                complain(where, "names a file that is not there:", file)
    return names


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    tree = Tree(root)
    docs = [root / "README.md", root / "examples/README.md"]
    docs += [d for d in sorted(root.glob("docs/**/*.md"))
             if "history" not in d.parts and d.name != "english.md"]
    docs += [d for d in (root / "CONTRIBUTING.md", root / "NEWS.md") if d.exists()]
    rows = sum(check_document(tree, d) for d in docs)
    for picture in sorted(root.glob("docs/img/*.svg")):
        check_prose(tree, str(picture.relative_to(root)), read(picture))
    names = sum(check_comments(tree, n, c) for n, c in tree.comments.items())
    if rows <= 40:
        complain(f"only {rows} functions of a table were looked for")
    if names < 200 or len(tree.words) < 5000:
        complain(f"only {names} names in comments were looked for, among {len(tree.words)} words")
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
