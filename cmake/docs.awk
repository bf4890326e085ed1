# SPDX-License-Identifier: BSD-3-Clause
# A document as it is installed: awk -v installed="a.md img/b.svg ..." -f docs.awk FILE
# Links to other pages of the source tree become text: 'words (`PAGE` of the sources)'.
function is_there(to,   page) {
	page = to
	sub(/#.*/, "", page)
	return page == "" || to ~ /^(https?|mailto):/ || page ~ /^\.\.\/examples(\/|$)/ ||
		index(" " installed " ", " " page " ")
}

{
	line = $0
	done = ""
	while (match(line, /\[[^][]*\]\([^()]*\)/)) {
		link = substr(line, RSTART, RLENGTH)
		done = done substr(line, 1, RSTART - 1)
		line = substr(line, RSTART + RLENGTH)
		at = index(link, "](")
		words = substr(link, 2, at - 2)
		to = substr(link, at + 2, length(link) - at - 2)
		if (is_there(to)) {
			done = done link
			continue
		}
		sub(/#.*/, "", to)
		if (!sub(/^\.\.\//, "", to))
			to = "docs/" to
		done = done (index(to, words) ? "`" to "` of the sources" : words " (`" to "` of the sources)")
	}
	print done line
}
