/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words - lines of words, quoted as in a shell
 *
 *	-sz 2 prog 'one word' "another \"one\"" a\ third	# and a comment
 *
 * Blanks separate.  In '...' every character stands for itself; in "..." a backslash
 * before " \ $ or ` takes their meaning away, elsewhere before anything.  A line ends
 * with a newline that is not quoted; backslash and newline are nothing.  # begins a
 * comment where a word could.  Nothing is expanded.
 */
#ifndef P3_LAUNCHER_WORDS_H
#define P3_LAUNCHER_WORDS_H

#include <stdint.h>

struct p3_words {
	char *at;      /* what is not read yet; ends with 0 */
	uint32_t line; /* number of the line that `at` is in, from 1 */
};

/*
 * Words of the next line that has any, behind the head_n first entries of a new array
 * that ends with NULL: *argv_out, *argc_out of them, head included.  The text is
 * changed; words lie in it.  *line_out is where the line began.  0; -ENOENT: no line
 * is left; -EINVAL: a quote is open, from *line_out on; -ENOMEM.
 */
int p3_words_next(struct p3_words *words, uint32_t head_n, char ***argv_out,
	int *argc_out, uint32_t *line_out);

#endif
