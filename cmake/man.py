#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write manual pages from the comments of the public headers, of Portals, CCI and GASNet:

    man.py OUT DATE "TOOL ..." docs/settings.md examples/hello.c ... include/portals3.h ...

OUT/man7/cci.7 has the head and the types of cci.h, OUT/man7/gasnet.7 those of gasnet.h, and the settings of
docs/gasnet.md.  OUT/man3 gets a page for each comment that documents functions, and a link for each further
function of that comment, and pages of ptl_md_t, ptl_event_t and ptl_ni_limits_t; OUT/man7/portals3.7 has the
text at the head of portals3.h, the types, a list of all functions, and the settings of docs/settings.md.

A page explains the options, events and registers that its comment names, and shows the shortest function of the
examples that calls its function, or else that of docs/tutorial.md.

The head of portals3.h describes the parts of a comment.  Lines that begin with a tab are arguments, lists or
examples:
    <tab>name<tab>in|out<tab>text   an argument, before the first paragraph
    PTL_CODE<tab>text               a return code
    <tab>term<tab>text, <tab>- text an item of a list
    <tab>anything                   an example
More tabs in front continue the line above.

In gasnet*.h the first paragraph is the title: names, where "A0 to A16" are 17 names, a dash, the purpose, and
behind tabs the section.  Prototypes of macros are in the comment:
    <tab>type name(arguments)
"""
import collections
import dataclasses
import pathlib
import re
import sys

GASNET_NAME = r"(?:gasnett?|GASNETT?)_[A-Za-z_0-9]*[A-Za-z0-9]"
GASNET_CALL = GASNET_NAME + r"\("
GASNET_PROTOTYPE = r"\t(?:[a-z_0-9 *]+[ *])?(?:gasnett?|GASNETT?)_[A-Za-z_0-9]+\(.*[,)]$"
CALL = r"(?:Ptl|cnos_|p3tcp_|cci_)[A-Za-z_]+\("
PROTOTYPE = (r"(?:CCI_DECLSPEC |static inline )?(?:int|void|unsigned int|const char) "
             r".*(?:Ptl[A-Z]|cnos_|p3tcp_|cci_)")
LONGEST = 80  # lines of an example
HELPER = 40  # lines that a function of a helping header counts more


class Family:
    """Portals, CCI, or GASNet: that of a header."""

    def __init__(self, base):
        self.base = base
        self.cci = base == "cci.h"
        self.gasnet = base.startswith("gasnet")
        self.overview = "cci" if self.cci else "gasnet" if self.gasnet else "portals3"

    def library(self):
        if self.base == "gasnet_tools.h":
            return "GASNet tools (libgasnet_tools\\-seq, \\-par, and each library of GASNet)"
        if self.gasnet:
            return "GASNet 1.8 (libgasnet\\-portals\\-seq, \\-par, \\-parsync)"
        return f"{'CCI 2' if self.cci else 'Portals 3.3'} (libportals, \\-l{'cci' if self.cci else 'portals'})"


def literal(s):
    return re.sub(r"\n([.'])", r"\n\\&\1", s.replace("\\", "\\e"))


def text(s):
    s = re.sub(r"^ +", "", re.sub(r"\t+", " ", s.replace("\\", "\\e")))
    return re.sub(r"^([.'])", r"\\&\1", re.sub(r"\n([.'])", r"\n\\&\1", re.sub(r"([.?)])  +", r"\1\n", s)))


# ---- the parts of a comment ----

class Body:
    """The text of a comment: of the page of functions that return something, or of an overview."""
    LISTS = {"tag": ".Bl -tag -width Ds", "bullet": ".Bl -bullet -compact",
             "literal": ".Bd -literal -offset indent"}

    def __init__(self, comment, family, of_functions=False, returns="", file=""):
        self.comment, self.family, self.of_functions = comment, family, of_functions
        self.returns, self.file = returns, file
        self.out, self.inside, self.part, self.gap, self.in_code = [], "", "", False, False
        lines = comment.split("\n")
        while lines:
            line = lines.pop(0)
            if lines and lines[0].startswith("===="):
                self.section("RULES" if line == "Caveats" else line.upper())
                lines.pop(0)
            elif line:
                self.line(line)
                self.gap = False
            else:
                self.gap, self.in_code = True, False
        self.leave()

    def __str__(self):
        return "".join(f"{s}\n" for s in self.out)

    def list(self, kind):
        if self.inside != kind:
            self.leave()
            self.out.append(self.LISTS[kind])
            self.inside = kind

    def leave(self):
        if self.inside:
            self.out.append(".Ed" if self.inside == "literal" else ".El")
            self.gap = True
        self.inside = ""

    def item(self, term):
        """mdoc reads words of a macro's line as macros if they look like some: quote them."""
        self.list("tag")
        self.out.append(f'.It "{text(term)}"')

    def paragraph(self):
        self.leave()
        if self.gap and self.out and not self.out[-1].startswith(".Sh "):
            self.out.append(".Pp")

    def section(self, name):
        self.leave()
        self.out.append(f".Sh {name}")
        self.part = name

    def argument(self, s):
        name, way, *words = re.split(r"\t+", s)[1:]
        if self.part != "ARGUMENTS":
            self.section("ARGUMENTS")
        self.item(f"{name} ({way})")
        self.out.append(text(" ".join(words[:2])))

    def constant(self, name, meaning):
        self.list("tag")
        self.out += [f".It Dv {name}", meaning]

    def begin_codes(self):
        """Begin the return values with those that all functions have."""
        self.section("RETURN VALUES")
        self.list("tag")
        if self.returns != "int":
            return
        if self.family.gasnet:
            self.constant("GASNET_OK", "success")
            return
        library = "CCI" if self.family.cci else "PTL"
        success = "CCI_SUCCESS" if self.family.cci else "PTL_OK"
        if self.family.cci or f"\n{success}\t" not in self.comment:
            self.constant(success, "success")
        if library == "CCI" and "\nCCI_ERROR\t" not in self.comment:
            self.constant("CCI_ERROR", "CCI is not initialized, or this is a forked child that has not called cci_init")
        if library == "PTL" and not re.search("\nPTL_NO_INIT\t|never PTL_NO_INIT", self.comment):
            self.constant("PTL_NO_INIT", "this is a forked child that has not called PtlInit" if "runtime" in self.file
                          else "PtlInit has not succeeded, PtlFini has run, or this is a forked child")

    def code(self, s):
        name, meaning = re.split(r"\t+", s)[:2]
        if self.part != "RETURN VALUES":
            self.begin_codes()
        self.constant(name, text(meaning))
        self.in_code = True

    def is_contract(self, s):
        return self.family.gasnet and re.match(r"(Main-line code|Handlers|In the handler)[ ;,]", s) or \
            re.match(r"(Any thread|One thread)", s) or re.search(r"  Any thread; (does|blocks)", s)

    def prose(self, s):
        if self.of_functions and self.is_contract(s) and self.part != "THREADS AND BLOCKING":
            if self.part != "RETURN VALUES" and self.returns == "int":
                self.begin_codes()
            self.section("THREADS AND BLOCKING")
        elif self.of_functions and self.part in ("ARGUMENTS", ""):
            self.section("DESCRIPTION")
        else:
            self.paragraph()
        self.out.append(text(s))

    def line(self, s):
        if re.match(r"(PTL|CCI|GASNET)_[A-Z_0-9]+\t", s):
            self.code(s)
        elif self.in_code and s[0] == "\t":
            self.out.append(text(s))
        elif re.match(r"\t[^\t]+\t+(in|out)\t", s):
            self.argument(s)
        elif s.startswith("\t- "):
            self.list("bullet")
            self.out.append(".It\n" + text(s[3:]))
        elif re.match(r"\t\t+out\t", s):
            self.out.append(".br\nout: " + text(re.sub(r"^\t+out\t", "", s)))
        elif re.match(r"\t\t|\t  ", s) and self.inside not in ("", "literal"):
            self.out.append(text(s))
        elif re.match(r"\t[^\t]+\t+[^\t]", s):
            term, meaning = re.split(r"\t+", s)[1:3]
            self.item(term)
            self.out.append(text(meaning))
        elif s[0] == "\t":
            self.list("literal")
            self.out.append(s[1:].replace("\\", "\\e"))
        else:
            self.prose(s)


# ---- names and prototypes ----

def all_names(s, brief=False):
    """Return the names of a title: "A0 to A2" are A0, A1 and A2 or, if brief, A0 and A2."""
    names = []
    for word in re.split(r", *", s):
        first, _, last = word.partition(" to ")
        stem = re.sub(r"[0-9]+$", "", first)
        most = int(last[len(stem):]) if last else 0
        names += [f"{stem}{k}" for k in range(0, most + 1, most if brief else 1)] if last else [first]
    return names


def prototype(p, family):
    """Return .Ft and .Fn of a prototype without its semicolon."""
    call = re.search(GASNET_CALL if family.gasnet else CALL, p)
    name, kind, args = call[0][:-1], p[:call.start()].rstrip(" "), p[call.end():]
    # An argument of GASNet may be a function.
    args = re.sub(r"\) *(__attribute__.*)?$" if family.gasnet else r"\).*$", "", args, count=1)
    words = "".join(f' "{arg}"' for arg in re.split(r", *", args)) if args else ""
    return (f".Ft {kind}\n" if kind else "") + (f".Fn {name}{words}" if words else "")


@dataclasses.dataclass
class Page:
    family: Family
    file: str
    own: list  # all names
    shown: list  # those at the head
    what: str
    synopsis: str
    comment: str
    standard: str
    types: list
    part: str
    body: str


class Pages:
    """All pages, and what they refer to."""

    def __init__(self, out, date, tools):
        self.out, self.date, self.tools = pathlib.Path(out), date, tools.split()
        self.pages, self.page_of = [], {}
        self.members = collections.defaultdict(list)  # of a part of a header
        self.meaning = {}  # of constants
        self.shown = {}  # {function: (lines, file, text)} of examples
        self.whole = {}  # programs
        self.tops, self.types = {}, {"cci.h": "", "gasnet.h": ""}
        self.structs, self.struct_text, self.about = {}, "", {}
        self.environment = {"settings.md": "", "gasnet.md": ""}
        self.header_part = ""

    # ---- constants and types ----

    def learn(self, comment):
        """Take names and explanations of a comment's list: "\\tPTL_X\\ttext", and lines that go on."""
        name = ""
        for line in comment.split("\n"):
            if re.match(r"\tPTL_[A-Z_0-9]+\t", line):
                name, meaning = re.split(r"\t+", line)[1:3]
                self.meaning[name] = meaning
            elif line.startswith("\t\t") and name:
                self.meaning[name] += line
            else:
                name = ""

    def constants(self, s):
        found = [f".It Dv {name}\n{text(meaning)}\n" for name, meaning in self.meaning.items() if names_it(s, name)]
        return f".Sh CONSTANTS\n.Bl -tag -width Ds\n{''.join(found)}.El\n" if found else ""

    def example(self, names):
        """Return the example of the first of these functions that has one."""
        for name in names:
            if name in self.shown:
                _, file, code = self.shown[name]
                return f".Sh EXAMPLES\nFrom\n.Pa examples/{file} :\n.Bd -literal\n{literal(code)}.Ed\n"
        return ""

    def see_also(self, page):
        """Return the pages that a comment names, and those beside it in its part of the header."""
        gasnet, named = page.family.gasnet, []
        rest = page.comment + ("" if gasnet else "".join(f" {name} " for name in self.members[page.part]))
        for name in re.findall(GASNET_NAME if gasnet else r"PtlX?[A-Z][A-Za-z]+|(?:cci|cnos|p3tcp)_[a-z_]+", rest):
            if name in self.page_of and name not in page.own:
                named.append(name if gasnet else self.page_of[name])
        return [name for name in dict.fromkeys(named) if name not in page.own]

    # ---- reading ----

    def read(self, path):
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.name in self.environment:
            self.read_settings(path.name, lines)
        elif path.name == "tutorial.md":
            self.read_tutorial(lines)
        elif path.parent.name == "include":
            Header(self, path, lines)
        else:
            folder = "gasnet/" if path.parent.name == "gasnet" else ""
            self.whole[path.name] = "".join(f"{line}\n" for line in lines if "SPDX" not in line)
            for function in functions_of(lines):
                self.show_calls(function, folder + path.name, HELPER * (path.name in ("job.h", "start.h")))

    def read_settings(self, name, lines):
        inside = name == "settings.md"
        for line in lines:
            if line.startswith("## ") and name == "gasnet.md":
                inside = line.startswith("## Settings")
            if not inside or not line.startswith("| `"):
                continue
            cell = re.split(r" *\| *", line.replace("`", ""))
            if name == "gasnet.md":
                default = f"Default: {text(cell[2])}.\n" if cell[2] else ""
                entry = f".It Ev {cell[1].replace(', ', ' , ')}\n{text(cell[3])}.\n{default}"
            else:
                entry = (f".It Ev {cell[1]} No = {cell[2]}\n{text(cell[4].replace('. ', '.  '))}.\n"
                         f"Default: {text(cell[3])}.\n")
            self.environment[name] += entry

    def read_tutorial(self, lines):
        """Take examples of functions that no other program calls."""
        blocks, name = {}, ""
        for line in lines:
            found = re.match(r"```c file=(\S+)", line)
            name = found[1] if found else "" if line.startswith("```") else name
            if name and not found:
                blocks.setdefault(name, []).append(line)
        before = set(self.shown)
        for name, block in blocks.items():
            for function in functions_of(block):
                self.show_calls(function, f"tutorial/{name}", 0, before)

    def show_calls(self, function, file, more, known=()):
        """A function is the shortest so far for all that it calls."""
        size = function.count("\n") + more
        for called in re.findall(r"(Ptl[A-Z][A-Za-z]+|gasnet_[A-Za-z_]+[0-9]*|GASNET_BLOCKUNTIL)\(", function):
            if size <= LONGEST and called not in known and (called not in self.shown or size < self.shown[called][0]):
                self.shown[called] = size, file, function

    # ---- writing ----

    def write(self, name, title, section, what, file, *parts, names=None):
        """Write a page: its head, and its parts."""
        head = f".\\\" made from {file}: change it there\n.Dd {self.date}\n.Dt {title.upper()} {section}\n" \
            ".Os libportals\n.Sh NAME\n" + " ,\n".join(f".Nm {name}" for name in names or [title]) + f"\n.Nd {what}\n"
        (self.out / name).write_text(head + "".join(parts), encoding="utf-8")

    def keep(self, page):
        self.page_of.update(dict.fromkeys(page.own, page.own[0]))
        self.pages.append(page)
        if "extensions" not in page.part:  # which have little in common
            self.members[page.part] += page.own

    def write_page(self, page):
        explained = "" if page.family.gasnet else self.constants(page.comment + page.synopsis)
        self.write(f"man3/{page.own[0]}.3", page.own[0], 3, text(page.what), page.file,
                   f".Sh LIBRARY\n{page.family.library()}\n.Sh SYNOPSIS\n.In {page.family.base}\n{page.synopsis}",
                   page.body, explained, self.example(page.own), ".Sh SEE ALSO\n",
                   references(self.see_also(page) + page.types),
                   f".Xr {page.family.overview} 7\n.Sh STANDARDS\n{page.standard}\n", names=page.shown)
        for name in page.own[1:]:
            (self.out / f"man3/{name}.3").write_text(f".so man3/{page.own[0]}.3\n")

    def type_page(self, name, what, users, more=""):
        """Write the page of a type: its comment, its definition, and the meaning of its constants."""
        above, definition = self.structs[name]
        self.write(f"man3/{name}.3", name, 3, what, "include/portals3.h",
                   ".Sh LIBRARY\nPortals 3.3 (libportals, \\-lportals)\n.Sh SYNOPSIS\n.In portals3.h\n"
                   f".Bd -literal\n{literal(definition)}.Ed\n.Sh DESCRIPTION\n", overview(above), more,
                   f".Sh SEE ALSO\n{references(users.split())}.Xr portals3 7\n.Sh STANDARDS\nPortals 3.3.\n")

    def summary(self, family, *more):
        """Return the lines of an overview: each name with its purpose."""
        lines = [f".It Xr {name} 3\n{text(page.what)}\n" for page in self.pages if page.family.overview == family
                 for name in page.shown]
        return "".join(lines + [f".It Xr {name} 3\n{what}\n" for name, what in more])

    def gasnet_top(self, header):
        return overview(take_title(self.tops[header])[1], header)

    def cci_overview(self):
        self.write(
            "man7/cci.7", "cci", 7, "Common Communication Interface over Portals 3.3", "include/cci.h",
            ".Sh SYNOPSIS\n.In cci.h\n.Sh DESCRIPTION\n", overview(behind_title(self.tops["cci.h"]), "cci.h"),
            compiling("cci", "\\&./prog"), ".Sh FUNCTIONS\n.Bl -tag -width cci_create_endpoint_at -compact\n",
            self.summary("cci"), f".El\n.Sh TYPES\n.Bd -literal\n{literal(self.types['cci.h'])}.Ed\n", """\
.Sh ENVIRONMENT
.Bl -tag -width Ds
.It Ev CCI_CONFIG
Path of a file with devices.
.It Ev PTL3_CCI_TRANSPORT
Transport name of the devices.
.El
The other settings are those of Portals.
.Sh SEE ALSO
.Xr portals3 7
.Sh STANDARDS
Common Communication Interface, API 2.
""")

    def gasnet_overview(self):
        self.write(
            "man7/gasnet.7", "gasnet", 7, "GASNet\\-1 over Portals 3.3", "include/gasnet.h",
            ".Sh SYNOPSIS\n.In gasnet.h\n.In gasnet_tools.h\n.In gasnet_coll.h\n.Sh DESCRIPTION\n",
            self.gasnet_top("gasnet.h"), GASNET_COMPILING,
            ".Sh VECTORS, LISTS AND STRIDES\n", self.gasnet_top("gasnet_vis.h"),
            ".Sh COLLECTIVE OPERATIONS\n", self.gasnet_top("gasnet_coll.h"), ".Sh TOOLS\n",
            self.gasnet_top("gasnet_tools.h"),
            ".Sh FUNCTIONS\n.Bl -tag -width gasnet_AMRequestLongAsync16 -compact\n", self.summary("gasnet"),
            f".El\n.Sh TYPES\n.Bd -literal\n{literal(self.types['gasnet.h'])}.Ed\n",
            f".Sh ENVIRONMENT\n.Bl -tag -width Ds\n{self.environment['gasnet.md']}.El\n", f"""\
The settings of Portals hold, too: see
.Xr portals3 7 .
.Sh EXAMPLES
A message goes around all nodes.
Start it with
.Dl yod -sz 4 ./ring
.Bd -literal
{literal(self.whole['ring.c'])}.Ed
.Pp
More programs, and
.Pa start.h ,
are in the folder
.Pa examples/gasnet
below the documentation of libportals.
.Sh SEE ALSO
.Xr gasnetrun_portals 1 ,
.Xr yod 1 ,
.Xr portals3 7
.Sh STANDARDS
GASNet, specification 1.8.
""")

    def portals_overview(self):
        tools = " ,\n".join(f".Xr {tool} 1" for tool in self.tools)
        types = TYPES["ptl_event_t"], TYPES["ptl_md_t"], TYPES["ptl_ni_limits_t"]
        self.write(
            "man7/portals3.7", "portals3", 7, "Portals 3.3 message passing in user space", "include/",
            ".Sh SYNOPSIS\n.In portals3.h\n.In portals3_runtime.h\n.In portals3x.h\n.Sh DESCRIPTION\n",
            overview(behind_title(self.tops["portals3.h"])), compiling("portals3", "yod -sz 4 ./prog"),
            ".Sh RANKS AND JOBS\n", overview(behind_title(self.tops["portals3_runtime.h"])),
            ".Sh DESCRIPTORS AND EVENTS\n", self.struct_text,
            ".Sh FUNCTIONS\n.Bl -tag -width PtlMEAttachAny -compact\n",
            self.summary("portals3", *zip(("ptl_event_t", "ptl_md_t", "ptl_ni_limits_t"), types)),
            f".El\n.Sh ENVIRONMENT\n.Bl -tag -width Ds\n{self.environment['settings.md']}.El\n", f"""\
.Sh EXAMPLES
Every rank puts a line into rank 0.
Start it with
.Dl yod -sz 4 ./hello
.Bd -literal
{literal(self.whole['hello.c'])}.Ed
.Pp
The folder
.Pa share/doc/libportals
(Debian:
.Pa /usr/share/doc/libportals-dev )
has more programs in
.Pa examples ,
and the documents, with a tutorial, in
.Pa docs .
.Sh SEE ALSO
{tools}
.Sh STANDARDS
Portals 3.3.
""")

    def write_all(self):
        for page in self.pages:
            self.write_page(page)
        self.cci_overview()
        self.gasnet_overview()
        self.type_page("ptl_ni_limits_t", TYPES["ptl_ni_limits_t"], "PtlNIInit PtlNIStatus PtlGetPut PtlMEAttach")
        self.type_page("ptl_md_t", TYPES["ptl_md_t"],
                       "PtlMDAttach PtlMDBind PtlMDUpdate PtlMDUnlink PtlMEMDPost ptl_event_t",
                       ".Sh OPTIONS\n" + overview(self.about["md"]) + self.example(["PtlMDAttach"]))
        self.type_page("ptl_event_t", TYPES["ptl_event_t"],
                       "PtlEQAlloc PtlEQGet PtlEQWait PtlEQPoll PtlEventKindStr PtlNIFailStr ptl_md_t",
                       ".Sh KINDS\n" + overview(self.about["event"]) + self.example(["PtlEQWait"]))
        self.portals_overview()


TYPES = {"ptl_ni_limits_t": "limits of a network interface", "ptl_md_t": "memory descriptor",
         "ptl_event_t": "event of an event queue"}
GASNET_COMPILING = """\
.Sh COMPILING
The libraries have names for pkg\\-config:
.Pa gasnet\\-portals\\-seq ,
.Pa gasnet\\-portals\\-par
and
.Pa gasnet\\-portals\\-parsync ,
and the same with \\-debug.
.Bd -literal -offset indent
cc $(pkg-config --cflags gasnet-portals-par) prog.c -o prog \\e
\t$(pkg-config --libs gasnet-portals-par)
yod -sz 4 ./prog
.Ed
.Pp
Makefiles may include
.Pa portals\\-conduit/portals\\-par.mak
of the include folder, which sets
.Ev GASNET_CC , GASNET_CPPFLAGS , GASNET_CFLAGS ,
.Ev GASNET_LD , GASNET_LDFLAGS , GASNET_LIBS
and
.Ev GASNET_CXX , GASNET_CXXCPPFLAGS , GASNET_CXXFLAGS ;
pkg\\-config has variables of the same names.
CMake has
.Li Portals3::gasnet_par
and so on.
"""


def compiling(package, start):
    """Return how a program is compiled with a package of pkg-config, and started."""
    return f"""\
.Sh COMPILING
.Bd -literal -offset indent
cc prog.c -o prog $(pkg-config --cflags --libs {package})
{start}
.Ed
.Pp
Without pkg\\-config:
.Fl l Ns {"cci" if package == "cci" else "portals"} .
With the static library, add what
.Dl pkg-config --static --libs {package}
prints.
If libportals is installed below a folder DIR of yours, set
.Ev PKG_CONFIG_PATH Ns No =DIR/lib/pkgconfig
first, and link with
.Fl Wl,-rpath,DIR/lib .
CMake: find_package(Portals3), target Portals3::portals.
"""


def behind_title(comment):
    return comment.partition("\n")[2]


def overview(comment, base="portals3.h"):
    return str(Body(comment, Family(base)))


def references(names):
    return "".join(f".Xr {name} 3 ,\n" for name in sorted(names, key=str.lower))


def names_it(s, name):
    """Does a text name a constant?  Events are often named without their prefix."""
    if re.search(rf"(^|[^A-Z_]){name}([^A-Z_0-9]|$)", s) or name.startswith("PTL_SR_") and "PTL_SR_*" in s or \
            name.startswith("PTL_MD_") and '"ptl_md_t' in s or name.startswith("PTL_EVENT_") and '"ptl_event_t' in s:
        return True
    brief = name.removeprefix("PTL_EVENT_")
    return brief != name and re.search(rf"(^|[^A-Z_]){brief}([^A-Z_]|$)", s)


def types_of(s):
    """Return the types whose pages a page refers to."""
    return [name for name, pattern in (
        ("ptl_md_t", "ptl_md_t|PTL_MD_(OP|MANAGE|TRUNCATE|ACK|IOVEC|MAX|EVENT)_?"),
        ("ptl_event_t", "ptl_event_t|PTL_EVENT_|SEND_END|PUT_END|GET_END|REPLY_END"),
        ("ptl_ni_limits_t", "ptl_ni_limits_t|max_[a-z_]+ ")) if re.search(pattern, s)]


def functions_of(lines):
    """Return the functions of a program."""
    code = ""
    for line in lines:
        if re.match(r"[a-z].*\(.*[^;]$", line) and "=" not in line:
            code = line + "\n"
        elif code:
            code += line + "\n"
            if line[:1] == "}":
                yield code
                code = ""


def take_title(comment):
    """Return the title of a comment of gasnet*.h in one line, the rest, and the section."""
    title, _, rest = comment.partition("\n\n")
    rest = "\n" + ("\n" + rest if "\n\n" in comment else comment)
    where = re.search(r"[\t\n]+(G [0-9., to]+|extension)$", title.rstrip("\n"))
    title = title.rstrip("\n")[:where.start()] if where else title.rstrip("\n")
    return re.sub(r"[\t\n]+", " ", title), rest, where[1] if where else ""


def take_prototypes(comment):
    """Return the prototypes of macros in a comment, and the comment without them."""
    lines, found, rest = comment.split("\n"), [], ""
    while lines:
        line = lines.pop(0)
        if not re.match(GASNET_PROTOTYPE, line):
            rest += line + "\n"
            continue
        while not line.endswith(")"):
            line += " " + lines.pop(0)
        found.append(re.sub(r"[ \t]+", " ", line).removeprefix(" "))
    return found, re.sub(r"\n\n\n+", "\n\n", rest, count=1)


class Header:
    """Reads a header: comments, types, and the prototypes below a comment."""
    # The parts about types, as they stand: the lines that begin and end them.
    TYPES = {"cci.h": (r"/\* ---- status", r"/\* ---- the library"),
             "gasnet.h": (r"/\* ---- types and constants", r" \* gasnet_ErrorName")}

    def __init__(self, pages, path, lines):
        self.pages, self.base, self.family = pages, path.name, Family(path.name)
        self.file = f"include/{path.name}"
        self.comment, self.protos = "", []
        self.take_types(lines)
        lines = iter(lines)
        for line in lines:
            if line.startswith("/* ---- "):
                pages.header_part = line
            if line.startswith("/*"):
                self.comment, self.protos = "", []
                if not line.endswith("*/"):
                    self.take_comment(lines)
            elif line == "typedef struct {":
                self.take_struct(line, lines)
            elif self.begins_prototype(line):
                self.take_prototype(line, lines)
            elif not line and (self.protos or self.family.gasnet) and self.comment:
                self.page()
                self.comment, self.protos = "", []
            elif re.match(r"#define PTL_MD_OP_PUT|\tPTL_(EVENT_GET_START|SR_DROP_COUNT) = 0,", line):
                pages.learn(self.comment)
                pages.about["md" if line[0] == "#" else "event" if "EVENT" in line else "sr"] = self.comment

    def take_types(self, lines):
        if self.base not in self.TYPES:
            return
        first, last = (next(i for i, line in enumerate(lines) if re.match(p, line)) for p in self.TYPES[self.base])
        text_of = "".join(f"{line}\n" for line in lines[first:last] if not line.startswith("/* ---- "))
        if self.family.gasnet:  # without lines for compilers only
            text_of = re.sub(r"(?ms)^#if defined\(__GNUC__\).*?^#endif[^\n]*\n", "", text_of).removesuffix("/*\n")
        self.pages.types[self.base] = text_of

    def take_comment(self, lines):
        for line in lines:
            if line == " */":
                break
            self.comment += re.sub(r"^ \* ?", "", line) + "\n"
        self.comment = self.comment.rstrip("\n")
        tops = self.pages.tops
        if self.base == "gasnet_coll.h" and self.comment.startswith("Flags"):
            tops[self.base] += "\n" + self.comment
        tops.setdefault(self.base, self.comment)

    def take_struct(self, line, lines):
        definition = line + "\n"
        while not line.startswith("}"):
            line = next(lines)
            definition += line + "\n"
        name = line[2:].rstrip(";")
        if name in TYPES:
            self.pages.structs[name] = self.comment, definition
        if name in ("ptl_md_t", "ptl_event_t"):
            self.pages.struct_text += f"{overview(self.comment)}.Bd -literal\n{definition}.Ed\n"
        self.comment = ""

    def begins_prototype(self, line):
        return re.match(PROTOTYPE, line) or self.family.gasnet and not line.startswith("typedef") and re.match(
            r"[a-z][a-z_0-9A-Z, ]*[ *](gasnet|gasnett)_[A-Za-z_0-9]+\(", line)

    def take_prototype(self, line, lines):
        proto = line
        while ";" not in line and not line.startswith("{"):
            line = next(lines)
            proto += " " + line
        proto = re.sub(r"CCI_DECLSPEC |static inline ", "", " " + proto, count=1)
        proto = re.sub(r"\( ", "(", re.sub(r"[ \t]+", " ", re.sub(r" *\{$", "", proto)))
        self.protos.append(re.sub(r" *(__attribute__|GASNETT_NORETURN).*", "", proto.removeprefix(" ").split(";")[0]))

    def page(self):
        (self.gasnet_page if self.family.gasnet else self.portals_page)()

    def gasnet_page(self):
        if not re.match(r"(gasnett?|GASNETT?)_[^\n]*[^.]\n", self.comment) or \
                re.match(r"gasnet[a-z_]*\.h", self.comment):
            return
        title, comment, where = take_title(self.comment)
        names, dash, what = title.partition(" - ")
        if not dash:
            return
        protos, comment = take_prototypes(comment)
        protos += self.protos
        codes = re.search(r"\nGASNET_(ERR_|OK)", comment)
        returns = "int" if codes and any(p.startswith("int ") for p in protos) else ""
        section = f", section {where[2:]}" if where.startswith("G ") else ""
        standard = "GASNet tools, specification 1.9." if self.base == "gasnet_tools.h" else \
            "An extension, not in the GASNet 1.8 specification." if where == "extension" else \
            f"GASNet, specification 1.8{section}."
        self.keep(all_names(names), all_names(names, True), what, protos, comment, returns, standard)

    def portals_page(self):
        title, comment = self.comment.partition("\n")[0], behind_title(self.comment)
        if not re.match(r"(Ptl|cnos_|p3tcp_|cci_).* - ", title):
            return
        found = re.search(r"\t+([^\t]+)$", title)
        where, title = (found[1], title[:found.start()]) if found else ("libportals", title)
        names, _, what = title.partition(" - ")
        own = all_names(names)
        returns = re.sub(r" *\**(Ptl|cnos_|p3tcp_|cci_).*", "", self.protos[0], count=1)
        if not re.match(r"Ptl|cci_", title):
            returns = ""  # what it returns the comment says
        standard = "Common Communication Interface, API 2." if self.family.cci else \
            f"Portals 3.3, section {where[5:]}." if where.startswith("P3.3 ") else \
            "An extension, not in the Portals 3.3 document."
        self.keep(own, own, what, self.protos[:len(own)], comment, returns, standard)

    def keep(self, own, shown, what, protos, comment, returns, standard):
        synopsis = "".join(prototype(p, self.family) + "\n" for p in protos)
        types = [] if self.family.gasnet else types_of(comment + synopsis)
        body = str(Body(comment, self.family, True, returns, self.file))
        self.pages.keep(Page(self.family, self.file, own, shown, what, synopsis, comment, standard, types,
                             self.base + self.pages.header_part, body))


def main():
    pages = Pages(*sys.argv[1:4])
    for path in sys.argv[4:]:
        pages.read(pathlib.Path(path))
    pages.write_all()


if __name__ == "__main__":
    main()
