/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beacon - the TCP address at which a process hears the processes of other hosts
 *
 * A beacon listens at one address of one network, from before the exchange of cards
 * (exchange.h) until the process ends.  While the process computes or is stopped, the
 * kernel completes connections to the beacon and answers keepalives.  When the process
 * has ended, the kernel refuses connections; when the host is off or cut off, no answer
 * comes.  So other hosts learn by connections whether the process lives.
 *
 * The functions have no state; one thread at a time calls them.  The sockets do not
 * block, and are close-on-exec.
 */
#ifndef P3_LIB_DOMAIN_BEACON_H
#define P3_LIB_DOMAIN_BEACON_H

#include "lib/domain/exchange.h"

#include <stdbool.h>
#include <sys/socket.h>

#define P3_BEACON_TEXT 64 /* room for an address as text */

/* Choose this host's address: by the setting P3_CONF_FABRIC_NET, or else the one from
 * which the route to another host begins (name or user@name; NULL: unknown), or, since a
 * name may be known to the remote shell alone, that by which the launcher has reached
 * this host (NULL: unknown).  Write family and address.  Return 0, -EADDRNOTAVAIL after
 * an error line, or another -errno. */
int p3_beacon_choose(
	const char *other_host, const char *own_address, struct p3_card *card);

/* Return a number that stands for this host and its network namespace, or 0 if the kernel
 * does not tell it. */
uint64_t p3_beacon_network(void);

/* Print the error line for a rank on another host with the address of this host. */
void p3_beacon_say_same(uint32_t rank, const struct p3_card *card);

/* Listen at the card's address, and write the port.  Return a descriptor, or -errno after
 * an error line. */
int p3_beacon_listen(struct p3_card *card);

/* Begin to connect from this card's address to another's.  timeout_s is the longest
 * silence of the other host, after which the kernel ends the connection; 0: for ever.
 * Return a socket, or -errno. */
int p3_beacon_dial(
	const struct p3_card *self, const struct p3_card *other, uint32_t timeout_s);

/* Accept a connection, and write the caller's family and address to from_out.  Return a
 * socket, or -errno. */
int p3_beacon_accept(int fd, uint32_t timeout_s, struct p3_card *from_out);

/* Let a connection live until its other end, or this process ends it; without that the
 * kernel does so after timeout_s. */
void p3_beacon_keep(int fd);

/* Return the milliseconds since the other host last acknowledged data or a keepalive on a
 * connection that was made with a timeout_s; it then does so each second. */
uint32_t p3_beacon_silence_ms(int fd);

/* Write family, port and address to the card. */
void p3_beacon_take_address(struct p3_card *card, const struct sockaddr *from);
bool p3_beacon_is_same_host(const struct p3_card *a, const struct p3_card *b);

/* Write the address of a card, with the port if it has one. */
void p3_beacon_print(const struct p3_card *card, char text[P3_BEACON_TEXT]);

#endif
