# SPDX-License-Identifier: BSD-3-Clause
# Makes a program, both C99 and C++17, from the list names.txt: awk -f names.awk
# names.txt It compiles, links, and ends with 0.
function check(name, condition) {
	checks = checks "\tcheck(\"" name "\", " condition ");\n"
}

# What stands in front of #define and #ifdef begins the line.
function must(how, name) {
	probes = probes how " " name "\n#error \"" name "\"\n#endif\n"
}

function code(name) {
	cases = cases "\tcase " name ":\n"
	check(name, name " >= 0 && " name " < PTL_MAX_ERRNO")
	check("ptl_err_str of " name, "strcmp(ptl_err_str[" name "], \"" name "\") == 0")
	codes++
}

/^#|^$/ { next }
$1 == "header" { headers = headers "#include <" $2 ">\n" }
$1 == "macro" {
	must("#ifndef", $2)
	value = $3 == "" ? $2 : $3
	checks = checks "\tsum += (unsigned long long)(" value ");\n"
}
$1 == "code" {
	must("#ifndef", $2)
	code($2)
}
$1 == "index" { code($2) }
$1 == "function" {
	name = $2
	functions = functions "\t{\"" name "\", (function)" name "},\n"
	if (NF > 2) {
		type = $3
		sub(/^[^ ]+ [^ ]+ [^ ]+ /, "")
		checks = checks "\t{\n\t\t" type " (*is)" $0 " = " name ";\n\t\t(void)is;\n\t}\n"
	}
}
$1 == "table" { check($2, $2 "[0] != NULL") }
$1 == "hidden" {
	own = own "C_LINKAGE const char *" $2 "[];\n"
	check($2, "strcmp(" $2 "[PTL_EVENT_ACK], \"PTL_EVENT_ACK\") == 0")
}
$1 == "absent" {
	must("#ifdef", $2)
	own = own "enum { " $2 " = " ++absent " };\n"
}
$1 == "switch" {
	must("#ifdef", $2)
	must("#ifdef", $3)
}

END {
	print "/* made from names.txt */"
	printf "%s", headers
	print "#include <stdio.h>\n#include <string.h>"
	printf "%s", probes
	print "#ifdef __cplusplus\n#define C_LINKAGE extern \"C\"\n#else\n#define C_LINKAGE extern\n#endif"
	printf "%s", own
	print "typedef void (*function)(void);"
	print "static const struct {\n\tconst char *name;\n\tfunction at;\n} functions[] = {"
	printf "%s};\n", functions
	print "static int failures;"
	print "static void check(const char *name, int truth)\n{"
	print "\tif (!truth)\n\t\tprintf(\"wrong: %s\\n\", name);\n\tfailures += !truth;\n}"
	print "/* Two codes of one value do not compile. */"
	print "static int known(int value)\n{\n\tswitch (value) {"
	printf "%s\t\treturn 1;\n\tdefault:\n\t\treturn 0;\n\t}\n}\n", cases
	print "int main(void)\n{\n\tunsigned long long sum = 0;"
	printf "%s", checks
	print "\tfor (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)"
	print "\t\tcheck(functions[i].name, functions[i].at != NULL);"
	print "\tfor (int i = 0; i < PTL_MAX_ERRNO; i++)\n\t\tcheck(ptl_err_str[i], known(i));"
	print "\tcheck(\"number of codes\", PTL_MAX_ERRNO == " codes ");"
	print "\tprintf(\"%d failures (%llx)\\n\", failures, sum);"
	print "\treturn failures != 0;\n}"
}
