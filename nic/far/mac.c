/* SPDX-License-Identifier: BSD-3-Clause */
/* Message authentication between hosts. */
#include "nic/far/mac.h"

#include "shm/process.h"
#include "shm/log.h"

#include <errno.h>
#include <string.h>

typedef unsigned long long length;

P3_PROCESS_LOCK(load_lock)

/* Functions of libsodium, with the types that a call needs. */
struct suite {
	int (*seal)(unsigned char *text_out, unsigned char *tag_out, length *tag_len_out,
		const unsigned char *text, length text_len, const unsigned char *data,
		length data_len, const unsigned char *unused, const unsigned char *nonce,
		const void *state);
	int (*check)(unsigned char *text_out, unsigned char *unused,
		const unsigned char *text, length text_len, const unsigned char *tag,
		const unsigned char *data, length data_len, const unsigned char *nonce,
		const void *state);
};

static struct {
	bool loaded;
	bool has_aes, uses_aes;
	struct suite aes, chacha;
	int (*begin_aes)(void *state_out, const unsigned char *key);
	int (*hash)(unsigned char *out, size_t out_len, const unsigned char *in,
		length in_len, const unsigned char *key, size_t key_len);
	int (*differ)(const void *a, const void *b, size_t len);
} mac;

static int mac_load_library(void)
{
	int (*init)(void), (*has_aes)(void);
	size_t (*state_len)(void);
	void *lib = dlopen("libsodium.so.26", RTLD_NOW | RTLD_LOCAL); /* 1.0.19 on */
	if (!lib)
		lib = dlopen("libsodium.so.23", RTLD_NOW | RTLD_LOCAL);
	if (lib && p3_dl_find(lib, "sodium_init", &init) &&
		p3_dl_find(lib, "crypto_aead_aes256gcm_is_available", &has_aes) &&
		p3_dl_find(lib, "crypto_aead_aes256gcm_statebytes", &state_len) &&
		p3_dl_find(lib, "crypto_aead_aes256gcm_beforenm", &mac.begin_aes) &&
		p3_dl_find(lib, "crypto_aead_aes256gcm_encrypt_detached_afternm",
			&mac.aes.seal) &&
		p3_dl_find(lib, "crypto_aead_aes256gcm_decrypt_detached_afternm",
			&mac.aes.check) &&
		p3_dl_find(lib, "crypto_aead_chacha20poly1305_ietf_encrypt_detached",
			&mac.chacha.seal) &&
		p3_dl_find(lib, "crypto_aead_chacha20poly1305_ietf_decrypt_detached",
			&mac.chacha.check) &&
		p3_dl_find(lib, "crypto_generichash", &mac.hash) &&
		p3_dl_find(lib, "sodium_memcmp", &mac.differ) && init() >= 0) {
		mac.has_aes = has_aes() && state_len() <= P3_MAC_STATE;
		mac.uses_aes = mac.has_aes;
		return 0;
	}
	const char *why = dlerror();
	p3_error("a job on several hosts authenticates its messages by libsodium, which "
		 "cannot be loaded: %s; install it (Debian: libsodium23), or start all "
		 "ranks on one host",
		why ? why : "libsodium.so");
	return -ENOENT;
}

int p3_mac_load(void)
{
	pthread_mutex_lock(&load_lock);
	int rc = mac.loaded ? 0 : mac_load_library();
	mac.loaded = rc == 0;
	pthread_mutex_unlock(&load_lock);
	return rc;
}

bool p3_mac_has_aes(void)
{
	return mac.has_aes;
}

void p3_mac_use(bool aes)
{
	mac.uses_aes = aes && mac.has_aes;
}

struct p3_mac_key p3_mac_hash(const struct p3_mac_key *key, const void *bytes, size_t len)
{
	struct p3_mac_key out;
	(void)mac.hash(
		out.bytes, sizeof out.bytes, bytes, len, key->bytes, sizeof key->bytes);
	return out;
}

bool p3_mac_equal(const struct p3_mac_key *a, const struct p3_mac_key *b)
{
	return mac.differ(a, b, sizeof *a) == 0;
}

void p3_mac_begin(struct p3_mac *m, const struct p3_mac_key *key)
{
	m->number = 0;
	m->aes = mac.uses_aes;
	if (m->aes)
		(void)mac.begin_aes(m->state, key->bytes);
	else
		memcpy(m->state, key->bytes, sizeof key->bytes);
}

static const struct suite *mac_suite(const struct p3_mac *m)
{
	return m->aes ? &mac.aes : &mac.chacha;
}

/* Write the nonce: 12 bytes. */
static void mac_nonce(unsigned char nonce[12], uint64_t number)
{
	memset(nonce, 0, 12);
	memcpy(nonce, &number, sizeof number);
}

struct p3_mac_tag p3_mac_seal(
	const struct p3_mac *m, uint64_t number, const void *bytes, size_t len)
{
	unsigned char nonce[12];
	struct p3_mac_tag tag;
	mac_nonce(nonce, number);
	(void)mac_suite(m)->seal(NULL, (unsigned char *)&tag, NULL, NULL, 0, bytes, len,
		NULL, nonce, m->state);
	return tag;
}

bool p3_mac_check(
	struct p3_mac *m, const struct p3_mac_tag *tag, const void *bytes, size_t len)
{
	unsigned char nonce[12];
	mac_nonce(nonce, m->number++);
	return mac_suite(m)->check(NULL, NULL, NULL, 0, (const unsigned char *)tag, bytes,
		       len, nonce, m->state) == 0;
}
