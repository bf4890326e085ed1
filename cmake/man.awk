# SPDX-License-Identifier: BSD-3-Clause
# Manual pages from the comments of the public headers, of Portals, CCI and GASNet:
#
#	awk -v out=DIR -v date=2026-01-31 -v tools="yod ..." -f man.awk docs/settings.md \
#		examples/hello.c ... include/portals3.h ...
#
# DIR/man7/cci.7 has the head and the types of cci.h, DIR/man7/gasnet.7 those of gasnet.h,
# and the settings of docs/gasnet.md.  DIR/man3 gets a page for each comment that documents
# functions, and a link for each further function of that comment, and pages of ptl_md_t,
# ptl_event_t and ptl_ni_limits_t; DIR/man7/portals3.7 has the text at the head of
# portals3.h, the types, a list of all functions, and the settings of docs/settings.md.
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
#
# In gasnet*.h the first paragraph is the title: names, where "A0 to A16" are 17 names, a
# dash, the purpose, and behind tabs the section.  Prototypes of macros are in the comment:
#	<tab>type name(arguments)

function is_cci() { return base == "cci.h" }
function is_gasnet() { return base ~ /^gasnet/ }

# The overview that a page refers to, and the library in which its functions are.
function overview() { return is_cci() ? "cci" : is_gasnet() ? "gasnet" : "portals3" }
function library() {
	if (base == "gasnet_tools.h")
		return "GASNet tools (libgasnet_tools\\-seq, \\-par, and each library of GASNet)"
	if (is_gasnet())
		return "GASNet 1.8 (libgasnet\\-portals\\-seq, \\-par, \\-parsync)"
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
	if (is_gasnet()) {
		put(".It Dv GASNET_OK")
		put("success")
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
	if (is_gasnet() && s ~ /^(Main-line code|Handlers|In the handler)[ ;,]/)
		return 1
	return s ~ /^(Any thread|One thread)/ || s ~ /  Any thread; (does|blocks)/
}

function line(s,   f) {
	if (s == "") {
		gap = 1
		in_code = 0
		return
	}
	if (s ~ /^(PTL|CCI|GASNET)_[A-Z_0-9]+\t/)
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
	if (is_gasnet())
		match(p, GASNET_CALL)
	else
		match(p, /(Ptl|cnos_|p3tcp_|cci_)[A-Za-z_]+\(/)
	name = substr(p, RSTART, RLENGTH - 1)
	type = substr(p, 1, RSTART - 1)
	args = substr(p, RSTART + RLENGTH)
	if (is_gasnet())
		sub(/\) *(__attribute__.*)?$/, "", args) # an argument may be a function
	else
		sub(/\).*$/, "", args)
	sub(/ +$/, "", type)
	n = split(args, f, /, */)
	for (i = 1; i <= n; i++)
		type = type (i == 1 ? "\n.Fn " name : "") " \"" f[i] "\""
	return type ~ /^\n/ ? substr(type, 2) : ".Ft " type
}

# The pages that a comment names, and those beside it in its part of the header.
function see_also(own, part_of,   rest, name, seen, named, result) {
	rest = comment (is_gasnet() ? "" : members[part_of])
	# A literal /.../ behind ?: would be a match with the line, and not a pattern.
	while (match(rest, is_gasnet() ? GASNET_NAME : "PtlX?[A-Z][A-Za-z]+|(cci|cnos|p3tcp)_[a-z_]+")) {
		name = substr(rest, RSTART, RLENGTH)
		rest = substr(rest, RSTART + RLENGTH)
		if (index(own, " " name " ") || seen[name]++)
			continue
		if (!(name in paged)) # a type, a group of functions, a form M of GASNet, or a file
			continue
		if (!is_gasnet())
			name = paged[name]
		if (index(own, " " name " ") || named[name]++)
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
	if (base == "job.h" || base == "start.h") # which only helps the others
		n += 40
	rest = s
	while (match(rest, /Ptl[A-Z][A-Za-z]+\(|gasnet_[A-Za-z_]+[0-9]*\(|GASNET_BLOCKUNTIL\(/)) {
		called = substr(rest, RSTART, RLENGTH - 1)
		rest = substr(rest, RSTART + RLENGTH)
		if (n > 80 || (called in shown && size_shown[called] <= n))
			continue
		shown[called] = s
		size_shown[called] = n
		shown_in[called] = folder base
	}
}

# The example of the first function of names, which are between spaces, that has one.
function example(names,   name, f, n, i) {
	n = split(names, f, / +/)
	for (i = 1; i <= n && name == ""; i++)
		if (f[i] in shown)
			name = f[i]
	if (name == "")
		return ""
	return ".Sh EXAMPLES\nFrom\n.Pa examples/" shown_in[name] " :\n.Bd -literal\n" \
		literal(shown[name]) ".Ed\n"
}

# ---- comments of gasnet*.h ----

# The title, which may have several lines: sets where, and returns the rest in one line.
function gasnet_title(   title, end) {
	end = index(comment, "\n\n")
	title = end ? substr(comment, 1, end - 1) : comment
	sub(/\n+$/, "", title)
	comment = "\n" substr(comment, end + 1)
	where = ""
	if (match(title, /[\t\n]+(G [0-9., to]+|extension)$/)) {
		where = substr(title, RSTART)
		gsub(/[\t\n]/, "", where)
		title = substr(title, 1, RSTART - 1)
	}
	gsub(/[\t\n]+/, " ", title)
	return title
}

# Names of a title, with spaces around them: "A0 to A2" are A0 A1 A2 or, if brief, A0 A2.
function all_names(s, brief,   f, pair, n, i, k, last, stem, result) {
	n = split(s, f, /, */)
	for (i = 1; i <= n; i++) {
		if (split(f[i], pair, / to /) < 2) {
			result = result " " f[i]
			continue
		}
		stem = pair[1]
		sub(/[0-9]+$/, "", stem)
		last = substr(pair[2], length(stem) + 1) + 0
		for (k = 0; k <= last; k += brief ? last : 1)
			result = result " " stem k
	}
	return result " "
}

# Take the prototypes of macros out of the comment.
function take_prototypes(   all, n, i, rest, p) {
	n = split(comment, all, "\n")
	own_protos = 0
	for (i = 1; i <= n; i++) {
		if (all[i] !~ /^\t([a-z_0-9 *]+[ *])?(gasnett?|GASNETT?)_[A-Za-z_0-9]+\(.*[,)]$/) {
			rest = rest all[i] "\n"
			continue
		}
		p = all[i]
		while (p !~ /\)$/)
			p = p " " all[++i]
		gsub(/[ \t]+/, " ", p)
		sub(/^ /, "", p)
		from_comment[++own_protos] = p
	}
	sub(/\n\n\n+/, "\n\n", rest)
	comment = rest
	for (i = count; i > 0; i--)
		protos[i + own_protos] = protos[i]
	for (i = 1; i <= own_protos; i++)
		protos[i] = from_comment[i]
	count += own_protos
}

function gasnet_standard() {
	if (base == "gasnet_tools.h")
		return "GASNet tools, specification 1.9."
	if (where == "extension")
		return "An extension, not in the GASNet 1.8 specification."
	return "GASNet, specification 1.8" (sub(/^G /, "", where) ? ", section " where : "") "."
}

function gasnet_page(   title, names, what, i, synopsis) {
	if (comment !~ /^(gasnett?|GASNETT?)_[^\n]*[^.]\n/ || comment ~ /^gasnet[a-z_]*\.h/)
		return
	title = gasnet_title()
	i = index(title, " - ")
	if (!i)
		return
	names = substr(title, 1, i - 1)
	what = substr(title, i + 3)
	take_prototypes()
	returns = ""
	for (i = 1; i <= count; i++) {
		if (protos[i] ~ /^int / && comment ~ /\nGASNET_(ERR_|OK)/)
			returns = "int"
		synopsis = synopsis prototype(protos[i]) "\n"
	}
	gasnet_summary = gasnet_summary summary_of(all_names(names, 1), what)
	keep_page(all_names(names, 0), all_names(names, 1), what, synopsis, gasnet_standard(), "")
}

# Lines of an overview: each of the names, which are between spaces, with the purpose.
function summary_of(names, what,   f, n, i, result) {
	n = split(names, f, " ")
	for (i = 1; i <= n; i++)
		result = result ".It Xr " f[i] " 3\n" text(what) "\n"
	return result
}

# Keep the page of the comment.  The other pages, to which it may refer, are known in the end.
# own has all its names, shown those that stand at its head, both between spaces.
function keep_page(own, shown_names, what, synopsis, standard, types,   f, n, i) {
	n = split(own, f, " ")
	for (i = 1; i <= n; i++)
		paged[f[i]] = f[1]
	pages++
	page_own[pages] = own
	page_nm[pages] = shown_names
	page_what[pages] = what
	page_file[pages] = file
	page_base[pages] = base
	page_synopsis[pages] = synopsis
	page_standard[pages] = standard
	page_comment[pages] = comment
	page_types[pages] = types
	page_part[pages] = base header_part
	if (header_part !~ /extensions/) # which have little in common
		members[base header_part] = members[base header_part] own
	function_page = 1
	lines(comment)
	page_body[pages] = body
}

function write_page(i,   name, f, n, k, explained) {
	base = page_base[i]
	file = page_file[i]
	comment = page_comment[i]
	n = split(page_nm[i], f, " ")
	name = out "/man3/" f[1] ".3"
	printf "%s", head(f[1], 3) > name
	for (k = 1; k <= n; k++)
		print ".Nm " f[k] (k < n ? " ," : "") > name
	explained = is_gasnet() ? "" : constants(comment page_synopsis[i])
	print ".Nd " text(page_what[i]) "\n.Sh LIBRARY\n" library() "\n" \
		".Sh SYNOPSIS\n.In " base "\n" page_synopsis[i] page_body[i] explained \
		example(page_own[i]) ".Sh SEE ALSO\n" \
		sorted_refs(see_also(page_own[i], page_part[i]) page_types[i]) \
		".Xr " overview() " 7\n.Sh STANDARDS\n" page_standard[i] > name
	close(name)
	n = split(page_own[i], f, " ")
	for (k = 2; k <= n; k++) {
		name = out "/man3/" f[k] ".3"
		print ".so man3/" f[1] ".3" > name
		close(name)
	}
}

# The page of the comment, whose prototypes are protos[1..count]
function page(   title, what, where, named, n, i, synopsis, own) {
	if (is_gasnet()) {
		gasnet_page()
		return
	}
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
	own = all_names(substr(title, 1, i - 1), 0)
	what = substr(title, i + 3)
	returns = protos[1]
	sub(/ *\**(Ptl|cnos_|p3tcp_|cci_).*/, "", returns)
	if (title !~ /^(Ptl|cci_)/)
		returns = "" # what it returns the comment says
	sub(/^[^\n]*\n/, "", comment)
	n = split(own, named, " ")
	for (i = 1; i <= n; i++)
		synopsis = synopsis prototype(protos[i]) "\n"
	if (is_cci())
		cci_summary = cci_summary summary_of(own, what)
	else
		summary = summary summary_of(own, what)
	if (is_cci())
		where = "Common Communication Interface, API 2."
	else if (sub(/^P3.3 /, "", where))
		where = "Portals 3.3, section " where "."
	else
		where = "An extension, not in the Portals 3.3 document."
	keep_page(own, own, what, synopsis, where, types_of(comment synopsis))
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

base == "gasnet.md" {
	if (/^## /)
		in_settings = /^## Settings/
	if (in_settings && /^\| `/) {
		n = split($0, cell, / *\| */)
		gsub(/`/, "")
		n = split($0, cell, / *\| */)
		gsub(/, /, " , ", cell[2])
		gasnet_environment = gasnet_environment ".It Ev " cell[2] "\n" text(cell[4]) \
			".\n" (cell[3] == "" ? "" : "Default: " text(cell[3]) ".\n")
	}
	next
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

FILENAME ~ /examples\/(gasnet\/)?[a-z]*\.[ch]$/ {
	folder = FILENAME ~ /gasnet\// ? "gasnet/" : ""
	if (FILENAME ~ /gasnet\/ring\.c$/ && !/SPDX/)
		gasnet_whole = gasnet_whole $0 "\n"
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

# Likewise gasnet.h, without lines for compilers only.
base == "gasnet.h" && /^\/\* ---- types and constants/ { showing = 1; next }
base == "gasnet.h" && /^ \* gasnet_ErrorName/ { showing = 0; sub(/\/\*\n$/, "", gasnet_types) }
base == "gasnet.h" && showing && /^#if defined\(__GNUC__\)/ { skipping = 1 }
base == "gasnet.h" && showing && !skipping { gasnet_types = gasnet_types $0 "\n" }
base == "gasnet.h" && showing && /^#endif/ { skipping = 0 }

/^\/\* ---- / { header_part = $0 }

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
	if (first && is_gasnet())
		gasnet_tops[base] = comment
	if (base == "gasnet_coll.h" && comment ~ /^Flags/)
		gasnet_tops[base] = gasnet_tops[base] "\n" comment
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
is_gasnet() && !joining && /^[a-z][a-z_0-9A-Z, ]*[ *](gasnet|gasnett)_[A-Za-z_0-9]+\(/ && !/^typedef/ {
	proto = ""
	joining = 1
}
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
		sub(/ *(__attribute__|GASNETT_NORETURN).*/, "", proto)
		protos[++count] = proto
	}
	next
}

/^$/ && (count || is_gasnet()) && comment != "" {
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
	print ".Nm cci\n.Nd Common Communication Interface over Portals 3.3\n" \
		".Sh SYNOPSIS\n.In cci.h\n.Sh DESCRIPTION" > name
	printf "%s", overview_part(cci_top) > name
	printf "%s", compiling("cci", "\\&./prog") > name
	printf "%s", ".Sh FUNCTIONS\n.Bl -tag -width cci_create_endpoint_at -compact\n" cci_summary ".El\n" > name
	printf "%s", ".Sh TYPES\n.Bd -literal\n" literal(cci_types) ".Ed\n" > name
	print ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n.It Ev CCI_CONFIG\nPath of a file with devices.\n" \
		".It Ev PTL3_CCI_TRANSPORT\nTransport name of the devices.\n.El\n" \
		"The other settings are those of Portals.\n.Sh SEE ALSO\n.Xr portals3 7\n.Sh STANDARDS\n" \
		"Common Communication Interface, API 2." > name
	close(name)
}

# How a program is compiled with a package of pkg-config, and started.
function compiling(package, start) {
	return ".Sh COMPILING\n.Bd -literal -offset indent\n" \
		"cc prog.c -o prog $(pkg-config --cflags --libs " package ")\n" \
		start "\n.Ed\n.Pp\nWithout pkg\\-config:\n.Fl l Ns " (package == "cci" ? "cci" : "portals") " .\n" \
		"With the static library, add what\n.Dl pkg-config --static --libs " package "\n" \
		"prints.\nIf libportals is installed below a folder DIR of yours, set\n" \
		".Ev PKG_CONFIG_PATH Ns No =DIR/lib/pkgconfig\nfirst, and link with\n" \
		".Fl Wl,-rpath,DIR/lib .\nCMake: find_package(Portals3), target Portals3::portals.\n"
}

function gasnet_top(header) {
	comment = gasnet_tops[header]
	gasnet_title()
	return overview_part(comment)
}

function gasnet_overview(   name) {
	base = "gasnet.h"
	file = "include/gasnet.h"
	name = out "/man7/gasnet.7"
	printf "%s", head("gasnet", 7) > name
	print ".Nm gasnet\n.Nd GASNet\\-1 over Portals 3.3\n" \
		".Sh SYNOPSIS\n.In gasnet.h\n.In gasnet_tools.h\n.In gasnet_coll.h\n.Sh DESCRIPTION" > name
	printf "%s", gasnet_top("gasnet.h") > name
	print ".Sh COMPILING\nThe libraries have names for pkg\\-config:\n.Pa gasnet\\-portals\\-seq ,\n" \
		".Pa gasnet\\-portals\\-par\nand\n.Pa gasnet\\-portals\\-parsync ,\n" \
		"and the same with \\-debug.\n.Bd -literal -offset indent\n" \
		"cc $(pkg-config --cflags gasnet-portals-par) prog.c -o prog \\e\n" \
		"\t$(pkg-config --libs gasnet-portals-par)\n" \
		"yod -sz 4 ./prog\n.Ed\n.Pp\nMakefiles may include\n.Pa portals\\-conduit/portals\\-par.mak\n" \
		"of the include folder, which sets\n.Ev GASNET_CC , GASNET_CPPFLAGS , GASNET_CFLAGS ,\n" \
		".Ev GASNET_LD , GASNET_LDFLAGS , GASNET_LIBS\nand\n.Ev GASNET_CXX , GASNET_CXXCPPFLAGS , GASNET_CXXFLAGS ;\n" \
		"pkg\\-config has variables of the same names.\nCMake has\n.Li Portals3::gasnet_par\nand so on." > name
	printf "%s", ".Sh VECTORS, LISTS AND STRIDES\n" gasnet_top("gasnet_vis.h") > name
	printf "%s", ".Sh COLLECTIVE OPERATIONS\n" gasnet_top("gasnet_coll.h") > name
	printf "%s", ".Sh TOOLS\n" gasnet_top("gasnet_tools.h") > name
	printf "%s", ".Sh FUNCTIONS\n.Bl -tag -width gasnet_AMRequestLongAsync16 -compact\n" \
		gasnet_summary ".El\n" > name
	printf "%s", ".Sh TYPES\n.Bd -literal\n" literal(gasnet_types) ".Ed\n" > name
	printf "%s", ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n" gasnet_environment ".El\n" > name
	print "The settings of Portals hold, too: see\n.Xr portals3 7 .\n" \
		".Sh EXAMPLES\nA message goes around all nodes.\nStart it with\n.Dl yod -sz 4 ./ring\n" \
		".Bd -literal\n" literal(gasnet_whole) ".Ed\n.Pp\n" \
		"More programs, and\n.Pa start.h ,\nare in the folder\n.Pa examples/gasnet\n" \
		"below the documentation of libportals." > name
	print ".Sh SEE ALSO\n.Xr gasnetrun_portals 1 ,\n.Xr yod 1 ,\n.Xr portals3 7\n" \
		".Sh STANDARDS\nGASNet, specification 1.8." > name
	close(name)
}

BEGIN {
	GASNET_NAME = "(gasnett?|GASNETT?)_[A-Za-z_0-9]*[A-Za-z0-9]"
	GASNET_CALL = GASNET_NAME "\\("
}

END {
	for (i = 1; i <= pages; i++)
		write_page(i)
	cci_overview()
	gasnet_overview()
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
	print ".Nm portals3\n.Nd Portals 3.3 message passing in user space\n" \
		".Sh SYNOPSIS\n.In portals3.h\n.In portals3_runtime.h\n.In portals3x.h\n" \
		".Sh DESCRIPTION" > name
	printf "%s", overview_part(top) > name
	printf "%s", compiling("portals3", "yod -sz 4 ./prog") > name
	printf "%s", ".Sh RANKS AND JOBS\n" overview_part(runtime) > name
	printf "%s", ".Sh DESCRIPTORS AND EVENTS\n" types > name
	printf "%s", ".Sh FUNCTIONS\n.Bl -tag -width PtlMEAttachAny -compact\n" summary ".El\n" > name
	printf "%s", ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n" environment ".El\n" > name
	print ".Sh EXAMPLES\nEvery rank puts a line into rank 0.\nStart it with\n.Dl yod -sz 4 ./hello\n" \
		".Bd -literal\n" literal(whole) ".Ed\n.Pp\n" \
		"The folder\n.Pa share/doc/libportals\n(Debian:\n.Pa /usr/share/doc/libportals-dev )\n" \
		"has more programs in\n.Pa examples ,\nand the documents, with a tutorial, in\n.Pa docs ." > name
	n = split(tools, tool, / +/)
	for (i = 1; i <= n; i++)
		references = references ".Xr " tool[i] " 1" (i < n ? " ,\n" : "\n")
	printf "%s", ".Sh SEE ALSO\n" references ".Sh STANDARDS\nPortals 3.3.\n" > name
}
