/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mac - message authentication between hosts, by libsodium
 *
 * Messages get a tag by AES-256-GCM, or ChaCha20-Poly1305 (RFC 8439) if a CPU of the job
 * has no AES instructions, with the message as additional data and no text: so it is
 * authenticated, and not encrypted.  The nonce is the message's number under its key.
 * Each number is used for one message only, so a key belongs to one direction of one
 * connection.  Keys and proofs are made by keyed BLAKE2b.
 *
 * libsodium is loaded when a process meets other hosts, so that jobs on one host need no
 * library beside libc.  Encryption would need a copy of all that is sent, since frames
 * stay as they are until they are acknowledged, and bytes of reads lie in the memory of
 * the program; so it is not offered.
 *
 * p3_mac_load and p3_mac_use come first, in any thread.  The others have no state but
 * their arguments'.
 */
#ifndef P3_NIC_FAR_MAC_H
#define P3_NIC_FAR_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P3_MAC_STATE 512u /* of AES-256-GCM; libsodium's function tells the same */

struct p3_mac_key {
	unsigned char bytes[32];
};

struct p3_mac_tag {
	uint64_t word[2];
};

/* The messages of one direction. */
struct p3_mac {
	uint64_t number; /* of the next message */
	bool aes;
	_Alignas(16) unsigned char state[P3_MAC_STATE];
};

/* Load libsodium, unless it is loaded.  Return 0, or -ENOENT after an error line. */
int p3_mac_load(void);
/* Return true if this CPU has the instructions for AES-256-GCM. */
bool p3_mac_has_aes(void);
/* Use AES-256-GCM, or ChaCha20-Poly1305, for all keys that begin from now on.  At first
 * it is AES if this CPU has it. */
void p3_mac_use(bool aes);

/* Make a key, or a proof, of bytes by which no one can learn the key. */
struct p3_mac_key p3_mac_hash(
	const struct p3_mac_key *key, const void *bytes, size_t len);
/* Return true if two proofs are equal, in a time that does not depend on them. */
bool p3_mac_equal(const struct p3_mac_key *a, const struct p3_mac_key *b);

/* Begin with message 0. */
void p3_mac_begin(struct p3_mac *m, const struct p3_mac_key *key);
/* Return the tag of a message with this number. */
struct p3_mac_tag p3_mac_seal(
	const struct p3_mac *m, uint64_t number, const void *bytes, size_t len);
/* Return true if the next message has this tag, and count it. */
bool p3_mac_check(
	struct p3_mac *m, const struct p3_mac_tag *tag, const void *bytes, size_t len);

#endif
