# SPDX-License-Identifier: BSD-3-Clause
# Manual pages from the comments of the public headers, of Portals and of CCI:
#
#	awk -v out=DIR -v date=2026-01-31 -v tools="yod ..." -f man.awk docs/settings.md \
#		examples/hello.c ... include/portals3.h ...
#
# DIR/man7/cci.7 has the head and the types of cci.h.  DIR/man3 gets a page for each comment that documents functions, and a link for each
# further function of that comment, and pages of ptl_md_t, ptl_event_t and
# ptl_ni_limits_t; DIR/man7/portals3.7 has the text at the head of portals3.h, the
# types, a list of all functions, and the settings of docs/settings.md.
#
# A page explains the options, events and registers that its comment names, and shows the
# shortest function of the examples that calls its function.
#
# The head of portals3.h describes the parts of a comment.  Lines that begin with a tab
# are arguments, lists or examples:
#	<tab>name<tab>in|out<tab>text	an argument, before the first paragraph
#	PTL_CODE<tab>text		a return code
#	<tab>term<tab>text, <tab>- text	an item of a list
#	<tab>anything			an example
# More tabs in front continue the line above.

function is_cci() { return base == "cci.h" }

# The overview that a page refers to, and the library in which its functions are.
function overview() { return is_cci() ? "cci" : "portals3" }
function library() {
	return is_cci() ? "CCI 2 (libportals, \\-lcci)" : "Portals 3.3 (libportals, \\-lportals)"
}

function text(s) {
	gsub(/\\/, "\\e", s)
	gsub(/\t+/, " ", s)
	sub(/^ +/, "", s)
	gsub(/\.  +/, ".\n", s)
	gsub(/\?  +/, "?\n", s)
	gsub(/\)  +/, ")\n", s)
	gsub(/\n[.']/, "\n\\\\\\&&", s)
	sub(/^[.']/, "\\\\\\&&", s)
	return s
}

function put(s) { body = body s "\n" }

# ---- the parts of a comment ----

function list(kind) {
	if (inside == kind)
		return
	leave()
	if (kind == "tag")
		put(".Bl -tag -width Ds")
	else if (kind == "bullet")
		put(".Bl -bullet -compact")
	else if (kind == "literal")
		put(".Bd -literal -offset indent")
	inside = kind
}

function leave() {
	if (inside == "tag" || inside == "bullet")
		put(".El")
	else if (inside == "literal")
		put(".Ed")
	if (inside != "")
		gap = 1
	inside = ""
}

# mdoc reads words of a macro's line as macros if they look like some: quote them
function item(term) { put(".It \"" text(term) "\"") }

function paragraph() {
	leave()
	if (gap && body != "" && body !~ /\.Sh [^\n]*\n$/)
		put(".Pp")
}

function section(name) {
	leave()
	put(".Sh " name)
	part = name
}

function argument(s,   f, n, words) {
	n = split(s, f, /\t+/)
	if (part != "ARGUMENTS")
		section("ARGUMENTS")
	list("tag")
	item(f[2] " (" f[3] ")")
	words = f[4]
	if (n > 4)
		words = words " " f[5]
	put(text(words))
}

function code(s,   f) {
	split(s, f, /\t+/)
	if (part != "RETURN VALUES")
		begin_codes()
	list("tag")
	put(".It Dv " f[1])
	put(text(f[2]))
	coded[f[1]] = 1
	in_code = 1
}

function begin_codes() {
	section("RETURN VALUES")
	list("tag")
	if (returns != "int")
		return
	if (is_cci()) {
		put(".It Dv CCI_SUCCESS")
		put("success")
		if (comment !~ /\nCCI_ERROR\t/) {
			put(".It Dv CCI_ERROR")
			put("CCI is not initialized, or this is a forked child that has not called cci_init")
		}
		return
	}
	if (comment !~ /\nPTL_OK\t/) {
		put(".It Dv PTL_OK")
		put("success")
	}
	if (comment !~ /\nPTL_NO_INIT\t/ && comment !~ /never PTL_NO_INIT/) {
		put(".It Dv PTL_NO_INIT")
		put(file ~ /runtime/ ? "this is a forked child that has not called PtlInit" : \
			"PtlInit has not succeeded, PtlFini has run, or this is a forked child")
	}
}

function contract(s) {
	return s ~ /^(Any thread|One thread)/ || s ~ /  Any thread; (does|blocks)/
}

function line(s,   f) {
	if (s == "") {
		gap = 1
		in_code = 0
		return
	}
	if (s ~ /^(PTL|CCI)_[A-Z_0-9]+\t/)
		code(s)
	else if (in_code && s ~ /^\t/)
		put(text(s))
	else if (s ~ /^\t[^\t]+\t+(in|out)\t/)
		argument(s)
	else if (s ~ /^\t- /) {
		list("bullet")
		put(".It\n" text(substr(s, 4)))
	} else if (s ~ /^\t\t+out\t/) {
		sub(/^\t+out\t/, "", s)
		put(".br\nout: " text(s))
	} else if (s ~ /^(\t\t|\t  )/ && inside != "" && inside != "literal")
		put(text(s))
	else if (s ~ /^\t[^\t]+\t+[^\t]/) {
		list("tag")
		split(s, f, /\t+/)
		item(f[2])
		put(text(f[3]))
	} else if (s ~ /^\t/) {
		list("literal")
		sub(/^\t/, "", s)
		gsub(/\\/, "\\e", s)
		put(s)
	} else {
		if (contract(s) && part != "THREADS AND BLOCKING" && function_page) {
			if (part != "RETURN VALUES" && returns == "int")
				begin_codes()
			section("THREADS AND BLOCKING")
		} else if (function_page && (part == "ARGUMENTS" || part == "")) {
			section("DESCRIPTION")
		} else
			paragraph()
		put(text(s))
	}
	gap = 0
}

function lines(comment,   all, n, i) {
	body = inside = part = ""
	gap = in_code = 0
	n = split(comment, all, "\n")
	for (i = 1; i <= n; i++)
		if (all[i + 1] ~ /^====/) {
			section(all[i] == "Caveats" ? "RULES" : toupper(all[i]))
			i++
		} else
			line(all[i])
	leave()
}

# ---- pages ----

function head(name, sec) {
	return ".\\\" made from " file ": change it there\n.Dd " date "\n.Dt " toupper(name) \
		" " sec "\n.Os libportals\n.Sh NAME\n"
}

# .Ft and .Fn of a prototype without its semicolon
function prototype(p,   name, type, args, f, n, i) {
	match(p, /(Ptl|cnos_|p3tcp_|cci_)[A-Za-z_]+\(/)
	name = substr(p, RSTART, RLENGTH - 1)
	type = substr(p, 1, RSTART - 1)
	args = substr(p, RSTART + RLENGTH)
	sub(/\).*$/, "", args)
	sub(/ +$/, "", type)
	n = split(args, f, /, */)
	for (i = 1; i <= n; i++)
		type = type (i == 1 ? "\n.Fn " name : "") " \"" f[i] "\""
	return ".Ft " type
}

function see_also(own,   rest, name, seen, result) {
	rest = comment
	while (match(rest, /PtlX?[A-Z][A-Za-z]+|cci_[a-z_]+/)) {
		name = substr(rest, RSTART, RLENGTH)
		rest = substr(rest, RSTART + RLENGTH)
		if (index(own, " " name " ") || name ~ /_t$/ || seen[name]++)
			continue
		result = result name "\n"
	}
	return result
}

function sorted_refs(names,   f, n, i, j, t, s) {
	n = split(names, f, "\n") - 1
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && tolower(f[j]) < tolower(f[j - 1]); j--) {
			t = f[j]
			f[j] = f[j - 1]
			f[j - 1] = t
		}
	for (i = 1; i <= n; i++)
		s = s ".Xr " f[i] " 3 ,\n"
	return s
}

# ---- constants and types ----

# Names and explanations of a comment's list: "\tPTL_X\ttext", and lines that go on.
function learn(s,   all, n, i, f, name) {
	n = split(s, all, "\n")
	for (i = 1; i <= n; i++)
		if (all[i] ~ /^\tPTL_[A-Z_0-9]+\t/) {
			split(all[i], f, /\t+/)
			name = f[2]
			meaning[name] = f[3]
			known[++nknown] = name
		} else if (all[i] ~ /^\t\t/ && name != "")
			meaning[name] = meaning[name] all[i]
		else
			name = ""
}

# Events are often named without their prefix.
function names_it(s, name,   brief) {
	if (s ~ ("(^|[^A-Z_])" name "([^A-Z_0-9]|$)"))
		return 1
	if ((name ~ /^PTL_SR_/ && s ~ /PTL_SR_\*/) || (name ~ /^PTL_MD_/ && s ~ /"ptl_md_t/) ||
		(name ~ /^PTL_EVENT_/ && s ~ /"ptl_event_t/))
		return 1
	brief = name
	return sub(/^PTL_EVENT_/, "", brief) && s ~ ("(^|[^A-Z_])" brief "([^A-Z_]|$)")
}

function constants(s,   i, all) {
	for (i = 1; i <= nknown; i++)
		if (names_it(s, known[i]))
			all = all ".It Dv " known[i] "\n" text(meaning[known[i]]) "\n"
	return all == "" ? "" : ".Sh CONSTANTS\n.Bl -tag -width Ds\n" all ".El\n"
}

function types_of(s,   all) {
	if (s ~ /ptl_md_t|PTL_MD_(OP|MANAGE|TRUNCATE|ACK|IOVEC|MAX|EVENT)_?/)
		all = all "ptl_md_t\n"
	if (s ~ /ptl_event_t|PTL_EVENT_|SEND_END|PUT_END|GET_END|REPLY_END/)
		all = all "ptl_event_t\n"
	if (s ~ /ptl_ni_limits_t|max_[a-z_]+ /)
		all = all "ptl_ni_limits_t\n"
	return all
}

# The page of a type: its comment, its definition, and the meaning of its constants.
function type_page(type, what, above, definition, users, more,   name) {
	name = out "/man3/" type ".3"
	printf "%s", head(type, 3) > name
	print ".Nm " type "\n.Nd " what "\n.Sh LIBRARY\nPortals 3.3 (libportals, \\-lportals)\n" \
		".Sh SYNOPSIS\n.In portals3.h\n.Bd -literal\n" literal(definition) ".Ed\n" \
		".Sh DESCRIPTION\n" overview_part(above) more ".Sh SEE ALSO" > name
	gsub(/ /, "\n", users)
	print sorted_refs(users "\n") ".Xr portals3 7\n.Sh STANDARDS\nPortals 3.3." > name
	close(name)
}

function literal(s) {
	gsub(/\\/, "\\e", s)
	gsub(/\n[.']/, "\n\\\\\\&&", s)
	return s
}

# ---- examples ----

# The function that ends here is the shortest so far for all that it calls.
function show_calls(s,   rest, called, n) {
	n = gsub(/\n/, "\n", s)
	if (base == "job.h") # which only helps the others
		n += 40
	rest = s
	while (match(rest, /Ptl[A-Z][A-Za-z]+\(/)) {
		called = substr(rest, RSTART, RLENGTH - 1)
		rest = substr(rest, RSTART + RLENGTH)
		if (n > 80 || (called in shown && size_shown[called] <= n))
			continue
		shown[called] = s
		size_shown[called] = n
		shown_in[called] = base
	}
}

function example(name) {
	if (!(name in shown))
		return ""
	return ".Sh EXAMPLES\nFrom\n.Pa examples/" shown_in[name] " :\n.Bd -literal\n" \
		literal(shown[name]) ".Ed\n"
}

# The page of the comment, whose prototypes are protos[1..count]
function page(   title, names, what, where, f, n, i, synopsis, name, own) {
	title = comment
	sub(/\n.*/, "", title)
	if (title !~ /^(Ptl|cnos_|p3tcp_|cci_).* - /)
		return
	where = "libportals"
	if (match(title, /\t+[^\t]+$/)) {
		where = substr(title, RSTART)
		gsub(/\t/, "", where)
		title = substr(title, 1, RSTART - 1)
	}
	i = index(title, " - ")
	names = substr(title, 1, i - 1)
	what = substr(title, i + 3)
	n = split(names, f, /, */)
	returns = protos[1]
	sub(/ *\**(Ptl|cnos_|p3tcp_|cci_).*/, "", returns)
	if (title !~ /^(Ptl|cci_)/)
		returns = "" # what it returns the comment says
	function_page = 1
	sub(/^[^\n]*\n/, "", comment)
	lines(comment)
	own = " "
	for (i = 1; i <= n; i++) {
		synopsis = synopsis prototype(protos[i]) "\n"
		own = own f[i] " "
		if (is_cci())
			cci_summary = cci_summary ".It Xr " f[i] " 3\n" text(what) "\n"
		else
			summary = summary ".It Xr " f[i] " 3\n" text(what) "\n"
	}
	name = out "/man3/" f[1] ".3"
	printf "%s", head(f[1], 3) > name
	for (i = 1; i <= n; i++)
		print ".Nm " f[i] (i < n ? " ," : "") > name
	print ".Nd " text(what) "\n.Sh LIBRARY\n" library() "\n" \
		".Sh SYNOPSIS\n.In " base "\n" synopsis body \
		constants(comment synopsis) example(f[1]) ".Sh SEE ALSO\n" \
		sorted_refs(see_also(own) types_of(comment synopsis)) \
		".Xr " overview() " 7\n.Sh STANDARDS" > name
	if (is_cci()) {
		print "Common Communication Interface, API 2." > name
	} else if (where ~ /^P3/) {
		sub(/^P3.3 /, "", where)
		print "Portals 3.3, section " where "." > name
	} else
		print "An extension, not in the Portals 3.3 document." > name
	close(name)
	for (i = 2; i <= n; i++) {
		name = out "/man3/" f[i] ".3"
		print ".so man3/" f[1] ".3" > name
		close(name)
	}
}

function overview_part(s) {
	function_page = 0
	lines(s)
	return body
}

# ---- reading ----

FNR == 1 {
	file = FILENAME
	sub(/.*\/include\//, "include/", file)
	base = FILENAME
	sub(/.*\//, "", base)
	first = 1
	comment = ""
}

base == "settings.md" {
	if (/^\| `/) {
		n = split($0, cell, / *\| */)
		gsub(/`/, "", cell[2])
		gsub(/`/, "", cell[3])
		gsub(/`/, "", cell[4])
		gsub(/`/, "", cell[5])
		gsub(/\. /, ".  ", cell[5])
		environment = environment ".It Ev " cell[2] " No = " cell[3] "\n" text(cell[5]) \
			".\nDefault: " text(cell[4]) ".\n"
	}
	next
}

FILENAME ~ /examples\/[a-z]*\.[ch]$/ {
	if (base == "hello.c" && !/SPDX/)
		whole = whole $0 "\n"
	if (/^[a-z].*\(.*[^;]$/ && !/=/)
		code_of = $0 "\n"
	else if (code_of != "") {
		code_of = code_of $0 "\n"
		if (/^}/) {
			show_calls(code_of)
			code_of = ""
		}
	}
	next
}

# The part of cci.h about its types: the comments and the definitions, as they stand.
base == "cci.h" && /^\/\* ---- status/ { showing = 1 }
base == "cci.h" && /^\/\* ---- the library/ { showing = 0 }
base == "cci.h" && showing && !/^\/\* ---- / { cci_types = cci_types $0 "\n" }

/^\/\*/ {
	reading = 1
	comment = ""
	count = 0
	if (/\*\/$/) {
		reading = 0
		next
	}
	next
}

reading && /^ \*\/$/ {
	reading = 0
	sub(/\n+$/, "", comment)
	if (first && base == "portals3.h")
		top = comment
	if (first && base == "cci.h")
		cci_top = comment
	if (first && base == "portals3_runtime.h")
		runtime = comment
	first = 0
	next
}

reading {
	sub(/^ \* ?/, "")
	comment = comment $0 "\n"
	next
}

/^typedef struct \{/ { definition = ""; defining = 1; above = comment }
defining { definition = definition $0 "\n" }
/^#define PTL_MD_OP_PUT|^\tPTL_(EVENT_GET_START|SR_DROP_COUNT) = 0,/ {
	learn(comment)
	about[substr($0, 1, 9) == "#define P" ? "md" : /EVENT/ ? "event" : "sr"] = comment
}
defining && /^\} ptl_(md|event|ni_limits)_t;/ {
	type = $2
	sub(/;/, "", type)
	comment_of[type] = above
	definition_of[type] = definition
}
defining && /^\} ptl_(md|event)_t;/ {
	types = types overview_part(above) ".Bd -literal\n" definition ".Ed\n"
}
defining && /^\}/ { defining = 0; comment = "" ; next }
defining { next }

/^(CCI_DECLSPEC |static inline )?(int|void|unsigned int|const char) .*(Ptl[A-Z]|cnos_|p3tcp_|cci_)/ { proto = ""; joining = 1 }
joining {
	proto = proto " " $0
	if (/;|^\{/) {
		joining = 0
		sub(/CCI_DECLSPEC |static inline /, "", proto)
		sub(/ *\{$/, "", proto)
		gsub(/[ \t]+/, " ", proto)
		gsub(/\( /, "(", proto)
		sub(/^ /, "", proto)
		sub(/;.*/, "", proto)
		protos[++count] = proto
	}
	next
}

/^$/ && count && comment != "" {
	page()
	comment = ""
	count = 0
}

function cci_overview(   name) {
	base = "cci.h"
	file = "include/cci.h"
	sub(/^[^\n]*\n/, "", cci_top)
	name = out "/man7/cci.7"
	printf "%s", head("cci", 7) > name
	print ".Nm cci\n.Nd Common Communication Interface on one machine\n" \
		".Sh SYNOPSIS\n.In cci.h\n.Sh DESCRIPTION" > name
	printf "%s", overview_part(cci_top) > name
	printf "%s", ".Sh FUNCTIONS\n.Bl -tag -width cci_create_endpoint_at -compact\n" cci_summary ".El\n" > name
	printf "%s", ".Sh TYPES\n.Bd -literal\n" literal(cci_types) ".Ed\n" > name
	print ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n.It Ev CCI_CONFIG\nPath of a file with devices.\n" \
		".It Ev PTL3_CCI_TRANSPORT\nTransport name of the devices.\n.El\n" \
		"The other settings are those of Portals.\n.Sh SEE ALSO\n.Xr portals3 7\n.Sh STANDARDS\n" \
		"Common Communication Interface, API 2." > name
	close(name)
}

END {
	cci_overview()
	base = "portals3.h"
	file = "include/portals3.h"
	type_page("ptl_ni_limits_t", "limits of a network interface", comment_of["ptl_ni_limits_t"],
		definition_of["ptl_ni_limits_t"], "PtlNIInit PtlNIStatus PtlGetPut PtlMEAttach", "")
	type_page("ptl_md_t", "memory descriptor", comment_of["ptl_md_t"],
		definition_of["ptl_md_t"],
		"PtlMDAttach PtlMDBind PtlMDUpdate PtlMDUnlink PtlMEMDPost ptl_event_t",
		".Sh OPTIONS\n" overview_part(about["md"]) example("PtlMDAttach"))
	type_page("ptl_event_t", "event of an event queue", comment_of["ptl_event_t"],
		definition_of["ptl_event_t"],
		"PtlEQAlloc PtlEQGet PtlEQWait PtlEQPoll PtlEventKindStr PtlNIFailStr ptl_md_t",
		".Sh KINDS\n" overview_part(about["event"]) example("PtlEQWait"))
	summary = summary ".It Xr ptl_event_t 3\nevent of an event queue\n" \
		".It Xr ptl_md_t 3\nmemory descriptor\n" \
		".It Xr ptl_ni_limits_t 3\nlimits of a network interface\n"
	sub(/^[^\n]*\n/, "", top)
	sub(/^[^\n]*\n/, "", runtime)
	file = "include/"
	name = out "/man7/portals3.7"
	printf "%s", head("portals3", 7) > name
	print ".Nm portals3\n.Nd Portals 3.3 message passing on one machine\n" \
		".Sh SYNOPSIS\n.In portals3.h\n.In portals3_runtime.h\n.In portals3x.h\n" \
		".Sh DESCRIPTION" > name
	printf "%s", overview_part(top) > name
	printf "%s", ".Sh RANKS AND JOBS\n" overview_part(runtime) > name
	printf "%s", ".Sh DESCRIPTORS AND EVENTS\n" types > name
	printf "%s", ".Sh FUNCTIONS\n.Bl -tag -width PtlMEAttachAny -compact\n" summary ".El\n" > name
	printf "%s", ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n" environment ".El\n" > name
	print ".Sh EXAMPLES\nEvery rank puts a line into rank 0.\nStart it with\n.Dl yod -sz 4 ./hello\n" \
		".Bd -literal\n" literal(whole) ".Ed\n.Pp\n" \
		"More programs, and a tutorial, are in the folder\n.Pa examples\n" \
		"below the documentation of libportals." > name
	n = split(tools, tool, / +/)
	for (i = 1; i <= n; i++)
		references = references ".Xr " tool[i] " 1" (i < n ? " ,\n" : "\n")
	printf "%s", ".Sh SEE ALSO\n" references ".Sh STANDARDS\nPortals 3.3.\n" > name
}
