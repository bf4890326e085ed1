/* SPDX-License-Identifier: BSD-3-Clause */
/* Saving and restoring terminal settings. */
#include "launcher/yod/tty.h"

#include <string.h>
#include <unistd.h>

struct p3_tty p3_tty_keep(void)
{
	struct p3_tty tty = {.fd = -1};
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && tty.fd < 0; fd++)
		if (!tcgetattr(fd, &tty.was))
			tty.fd = fd;
	return tty;
}

static bool is_as_it_was(const struct p3_tty *tty)
{
	struct termios now;
	const struct termios *was = &tty->was;
	if (tcgetattr(tty->fd, &now))
		return true;
	return now.c_iflag == was->c_iflag && now.c_oflag == was->c_oflag &&
	       now.c_cflag == was->c_cflag && now.c_lflag == was->c_lflag &&
	       !memcmp(now.c_cc, was->c_cc, sizeof now.c_cc);
}

void p3_tty_restore(const struct p3_tty *tty)
{
	if (tty->fd < 0 || tcgetpgrp(tty->fd) != getpgrp() || is_as_it_was(tty))
		return;
	(void)tcsetattr(tty->fd, TCSADRAIN, &tty->was);
}
