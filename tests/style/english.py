#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Find the turns of phrase that docs/english.md forbids in comments, documents and messages.

usage: english.py ROOT [--list] [FILE...]

tests/style/english.todo lists the files that still have some, with their number: a file may
not have more than that.  --list prints every place, --write writes the list anew; its
numbers only ever become smaller.
"""

import argparse
import pathlib
import re
import subprocess
import sys

TODO = "tests/style/english.todo"
TESTS = ("tests/", "bench/compare/")  # messages there are for people who read the code
WRITTEN = (".c", ".h", ".cc", ".md", ".sh", ".py", ".cmake", ".txt", ".pml", ".in")
# These show the patterns, or are data.
EXEMPT = ("docs/english.md", "tests/style/english.py", "docs/history/", "tests/fuzz/corpus/",
          "LICENSE", "tests/style/claims.txt", "tests/mp/yod_errors.txt")

HEADLESS = r"(?:who|whom|whose|whoever|what|whatever)"
PATTERNS = [
    # A sentence that begins with a relative clause; a question is none.
    ("begins with a clause in place of a noun",
     re.compile(rf"^(?:and |or |but |so |then )?(?:of |for |to |from |by |with )?{HEADLESS}\b[^?]*$", re.I)),
    ("a clause in place of a noun",
     re.compile(rf"\b(?:for|to|from|by|of|with|than|as|on|at) (?:who|whom|whose|whoever)\b", re.I)),
    ("a clause in place of a noun",
     re.compile(r"(?:\b(?:of|for|by|with|from|to|than|as|and|or|all|but|not)|[,;:]) what (?!if\b|for\b)", re.I)),
    ("'who' without a noun", re.compile(r"(?:^|[;:(,] )(?:and |or )?who \w+", re.I)),
    ("'nobody', 'somebody', 'anybody' for a process or thread",
     re.compile(r"\b(?:nobody|somebody|anybody|nobody's|somebody's|anybody's)\b", re.I)),
    ("a quantity without a number or noun",
     re.compile(r"\b(?:so many|so long as|so much)\b", re.I)),
    ("'of which' or 'of whose' at the beginning", re.compile(r"^of (?:which|whose|whom|what)\b", re.I)),
]
# After these 'who' has its noun: "a process, who ..." is judged by a reader.
NOUNS = re.compile(r"\b(?:people|person|users?|authors?|engineers?|readers?|teachers?|researchers?|those),? who\b", re.I)
QUESTION = re.compile(r"\?\s*$")


def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if out.returncode == 0:
        return [f for f in out.stdout.split("\0") if f]
    return [str(p.relative_to(root)) for p in pathlib.Path(root).rglob("*")
            if p.is_file() and "build" not in p.parts]


def is_script(root, name):
    path = pathlib.Path(root) / name
    return not path.suffix and path.is_file() and path.read_bytes()[:2] == b"#!"


def wanted(root, name):
    return not name.startswith(EXEMPT) and (name.endswith(WRITTEN) or is_script(root, name))


def c_comments(text):
    """Yield (line, text) of each line of a comment, an empty text between comments."""
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
    before = -2
    for m in token.finditer(text):
        if m.group()[0] != "/":
            continue
        line = text.count("\n", 0, m.start()) + 1
        own = text[text.rfind("\n", 0, m.start()) + 1:m.start()].strip() == ""
        if not (m.group().startswith("//") and own and line == before + 1):
            yield line, ""
        for k, part in enumerate(m.group().split("\n")):
            yield line + k, re.sub(r"^\s*(?:/\*+|\*/|\*|//+)|\*+/\s*$", "", part).strip()
        before = line if own and m.group().startswith("//") else -2


def c_strings(text):
    """Yield (line, text) of each line of a text of three words or more."""
    bare = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    for m in re.finditer(r'(?:"(?:\\.|[^"\\\n])*"[\sA-Z_0-9]*)+', bare):
        whole = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', m.group()))
        if len(whole.split()) < 3:
            continue
        line = bare.count("\n", 0, m.start()) + 1
        for part in whole.split("\\n"):
            yield line, ""
            yield line, part.strip()
        yield line, ""


def hash_comments(text):
    for k, part in enumerate(text.split("\n")):
        m = re.match(r"\s*#(?!!|\s*SPDX)\s?(.*)", part)
        yield k + 1, m.group(1).strip() if m else ""


def md_lines(text):
    code = False
    for k, part in enumerate(text.split("\n")):
        if part.lstrip().startswith("```"):
            code = not code
            yield k + 1, ""
        elif code or part.startswith(("#", "    ", "\t", "<!--")):
            yield k + 1, ""
        elif part.lstrip().startswith("|"):
            for cell in part.strip().strip("|").split("|"):
                yield k + 1, ""
                yield k + 1, cell.strip()
            yield k + 1, ""
        else:
            item = re.match(r"\s*(?:[-*]|\d+\.)\s+(.*)", part)
            if item:
                yield k + 1, ""
            yield k + 1, (item.group(1) if item else part).strip()


def sentences(lines):
    """Yield (line, sentence): lines joined up to a full stop, an empty line, or a list item."""
    words, first = [], 0
    for line, text in lines:
        if not text or text.startswith(("-", "*", "@", "\t")):
            if words:
                yield first, " ".join(words)
            words = []
        if not text:
            continue
        for part in re.split(r"(?<=[.?!:;])\s+", text.lstrip("-* ")):
            if not words:
                first = line
            words.append(part)
            if re.search(r"[.?!]$", part):
                yield first, " ".join(words)
                words = []
    if words:
        yield first, " ".join(words)


def read(root, name):
    text = (pathlib.Path(root) / name).read_text(errors="replace")
    if name.endswith((".c", ".h", ".cc")):
        return [*c_comments(text), *(() if name.startswith(TESTS) else c_strings(text))]
    if name.endswith(".md"):
        return md_lines(text)
    if name.endswith((".sh", ".py", ".cmake", "CMakeLists.txt")) or is_script(root, name):
        return hash_comments(text)
    return []


def find(root, name):
    for line, sentence in sentences(read(root, name)):
        bare = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", "X", sentence)
        bare = NOUNS.sub("people", bare)
        if QUESTION.search(bare):
            continue
        for why, pattern in PATTERNS:
            if pattern.search(bare):
                yield line, why, sentence
                break


def listed(root):
    path = pathlib.Path(root) / TODO
    rows = path.read_text().split("\n") if path.exists() else []
    return {r.split()[1]: int(r.split()[0]) for r in rows if r and not r.startswith("#")}


def write(root, counts):
    head = "# Places that docs/english.md would have otherwise, a file a line; it may only shrink.\n"
    rows = "".join(f"{n} {f}\n" for f, n in sorted(counts.items()) if n)
    (pathlib.Path(root) / TODO).write_text(head + rows)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("root", nargs="?", default=".")
    p.add_argument("files", nargs="*")
    p.add_argument("--list", action="store_true", help="print every place")
    p.add_argument("--write", action="store_true", help="write the list anew")
    o = p.parse_args()
    names = o.files or [f for f in tracked(o.root) if wanted(o.root, f)]
    found = {f: list(find(o.root, f)) for f in names}
    if o.write:
        write(o.root, {f: len(v) for f, v in found.items()})
        return 0
    may, bad = listed(o.root), 0
    for name, places in sorted(found.items()):
        over = len(places) > may.get(name, 0)
        for line, why, sentence in places if over or o.list else []:
            print(f"{name}:{line}: {why}: {sentence[:150]}")
        if over:
            print(f"{name}: {len(places)} places, {may.get(name, 0)} in {TODO}: rewrite those you added (docs/english.md)")
            bad += 1
    for name in set(may) - set(found) if not o.files else ():
        print(f"{TODO} names a file that is not there: {name}")
        bad += 1
    if not o.files and len(found) < 100:
        print(f"only {len(found)} files were read")
        bad += 1
    return 1 if bad and not o.list else 0


if __name__ == "__main__":
    sys.exit(main())
