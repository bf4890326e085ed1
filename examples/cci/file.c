/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file - fetches a file from another process by RMA
 *
 *	cci_file serve FILE
 *	cci_file fetch URI COPY
 *
 * The server maps the file, registers it for reading, and sends the handle to each
 * client: a handle is 32 bytes, which are valid at any process.  From then on its
 * program takes no part: the client reads the file in pieces, several at a time.  With
 * the last piece comes a message, which tells the server that the client is done; then
 * it ends.
 */
#include "common.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20, AT_ONCE = 4 };

/* The server's message to a client. */
struct offer {
	struct cci_rma_handle handle;
	uint64_t length;
	uint64_t sum;
};

static uint64_t sum_of(const unsigned char *bytes, uint64_t length)
{
	uint64_t sum = 0xcbf29ce484222325; /* FNV-1a */
	for (uint64_t i = 0; i < length; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

static void want(int right, const char *path)
{
	if (!right) {
		perror(path);
		exit(1);
	}
}

/* ---- the server ---- */

static void *map_file(const char *path, uint64_t *length_out)
{
	struct stat is;
	int fd = open(path, O_RDONLY);
	want(fd >= 0 && fstat(fd, &is) == 0, path);
	expect(is.st_size > 0, "an empty file");
	void *at = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	want(at != MAP_FAILED, path);
	close(fd);
	*length_out = (uint64_t)is.st_size;
	return at;
}

/* Return after the client's last RMA. */
static void serve_client(const struct offer *offer)
{
	cci_event_t *event = await(CCI_EVENT_CONNECT_REQUEST);
	check(cci_accept(event, NULL), "cci_accept");
	done_with(event);
	event = await(CCI_EVENT_ACCEPT);
	check((int)event->accept.status, "accept");
	check(cci_send(event->accept.connection, offer, sizeof *offer, NULL,
		      CCI_FLAG_BLOCKING),
		"cci_send");
	done_with(event);
	event = await(CCI_EVENT_RECV);
	expect(event->recv.len == 4 && !memcmp(event->recv.ptr, "done", 4), "a message");
	done_with(event);
}

static void serve(const char *path)
{
	struct offer offer;
	cci_rma_handle_t *handle;
	void *at = map_file(path, &offer.length);
	open_endpoint();
	check(cci_rma_register(here.endpoint, at, offer.length, CCI_FLAG_READ, &handle),
		"cci_rma_register");
	memcpy(&offer.handle, handle, sizeof offer.handle);
	offer.sum = sum_of(at, offer.length);
	print_uri();
	serve_client(&offer);
	check(cci_rma_deregister(here.endpoint, handle), "cci_rma_deregister");
	close_endpoint();
}

/* ---- the client ---- */

static void *make_copy(const char *path, uint64_t length)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
	want(fd >= 0 && ftruncate(fd, (off_t)length) == 0, path);
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	want(at != MAP_FAILED, path);
	close(fd);
	return at;
}

/* Start to read a piece.  The last one is fenced, so that the message comes after all. */
static void read_piece(cci_connection_t *server, cci_rma_handle_t *copy,
	const struct offer *offer, uint64_t at)
{
	uint64_t rest = offer->length - at;
	bool last = rest <= PIECE;
	int flags = CCI_FLAG_READ | (last ? CCI_FLAG_FENCE : 0);
	check(cci_rma(server, last ? "done" : NULL, last ? 4 : 0, copy, at,
		      (cci_rma_handle_t *)&offer->handle, at, last ? rest : PIECE, NULL,
		      flags),
		"cci_rma");
}

static void end_piece(void)
{
	cci_event_t *event = await(CCI_EVENT_SEND);
	check((int)event->send.status, "RMA read");
	done_with(event);
}

static void read_all(cci_connection_t *server, const struct offer *offer, void *to)
{
	cci_rma_handle_t *copy;
	unsigned under_way = 0;
	check(cci_rma_register(here.endpoint, to, offer->length, 0, &copy),
		"cci_rma_register");
	for (uint64_t at = 0; at < offer->length; at += PIECE) {
		if (under_way == AT_ONCE)
			end_piece(), under_way--;
		read_piece(server, copy, offer, at);
		under_way++;
	}
	while (under_way--)
		end_piece();
	check(cci_rma_deregister(here.endpoint, copy), "cci_rma_deregister");
}

static void fetch(const char *uri, const char *path)
{
	struct offer offer;
	open_endpoint();
	cci_connection_t *server = connect_to(uri);
	cci_event_t *event = await(CCI_EVENT_RECV);
	expect(event->recv.len == sizeof offer, "the server's message");
	memcpy(&offer, event->recv.ptr, sizeof offer);
	done_with(event);
	void *copy = make_copy(path, offer.length);
	read_all(server, &offer, copy);
	expect(sum_of(copy, offer.length) == offer.sum, "the bytes of the copy");
	printf("%llu bytes\n", (unsigned long long)offer.length);
	check(cci_disconnect(server), "cci_disconnect");
	close_endpoint();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	else if (argc == 4 && !strcmp(argv[1], "fetch"))
		fetch(argv[2], argv[3]);
	else {
		fprintf(stderr,
			"usage: cci_file serve FILE, or cci_file fetch URI COPY\n");
		return 2;
	}
	return 0;
}
