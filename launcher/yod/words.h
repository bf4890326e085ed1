/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words - lines of words, quoted as in a shell
 *
 *	-sz 2 prog 'one word' "another \"one\"" a\ third	# and a comment
 *
 * Blanks separate.  In '...' every character stands for itself; in "..." a backslash
 * quotes the characters " \ $ and `, elsewhere any character.  A line ends with a
 * newline that is not quoted; backslash and newline together are ignored.  # begins a
 * comment where a word could.  Nothing is expanded.  The state is in struct p3_words,
 * which belongs to one thread.
 */
#ifndef P3_LAUNCHER_WORDS_H
#define P3_LAUNCHER_WORDS_H

#include <stdint.h>

struct p3_words {
	char *at;      /* the unread rest; ends with a zero byte */
	uint32_t line; /* number of the line of `at`, from 1 */
};

/*
 * Read the words of the next line that has any.  Make a new array that ends with NULL,
 * with room for head_n entries in front of the words: *argv_out, with *argc_out
 * entries, head included.  The text is changed; words lie in it.  *line_out is the
 * line's number.  Return 0; -ENOENT if no line is left; -EINVAL if a quote is open,
 * from *line_out on; or -ENOMEM.
 */
int p3_words_next(struct p3_words *words, uint32_t head_n, char ***argv_out,
	int *argc_out, uint32_t *line_out);

#endif
