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
 * the last piece comes a message, which tells the server that the client is done.  The
 * server ends when one client is done; a client that fails costs it nothing.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20, AT_ONCE = 4, OFFER_MS = 30000 };

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

/* End the program if the file cannot be used. */
static void want(int right, const char *path, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s: %s; expected %s\n", path, strerror(errno), what);
		exit(1);
	}
}

/* ---- the server ---- */

static void *map_file(const char *path, uint64_t *length_out)
{
	struct stat is;
	int fd = open(path, O_RDONLY);
	want(fd >= 0 && fstat(fd, &is) == 0, path, "a file that can be read");
	errno = EINVAL;
	want(S_ISREG(is.st_mode) && is.st_size > 0, path, "a regular file with bytes");
	void *at = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	want(at != MAP_FAILED, path, "a file that can be mapped");
	close(fd);
	*length_out = (uint64_t)is.st_size;
	return at;
}

static void send_offer(const cci_event_accept_t *accepted, const struct offer *offer)
{
	if (accepted->status != CCI_SUCCESS)
		return; /* the client has gone meanwhile */
	int status = cci_send(
		accepted->connection, offer, sizeof *offer, NULL, CCI_FLAG_SILENT);
	if (status != CCI_ERR_DISCONNECTED)
		check(status, "cci_send");
}

/* Return false when a client is done. */
static bool serve_event(cci_event_t *event, const struct offer *offer)
{
	switch (event->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		check(cci_accept(event, NULL), "cci_accept");
		return true;
	case CCI_EVENT_ACCEPT:
		send_offer(&event->accept, offer);
		return true;
	case CCI_EVENT_RECV:
		expect(event->recv.len == 4 && !memcmp(event->recv.ptr, "done", 4),
			"a message");
		return false;
	default:
		return true;
	}
}

static void serve_clients(const struct offer *offer)
{
	bool more = true;
	while (more) {
		cci_event_t *event = next_event();
		more = serve_event(event, offer);
		done_with(event);
	}
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
	serve_clients(&offer);
	check(cci_rma_deregister(here.endpoint, handle), "cci_rma_deregister");
	close_endpoint();
}

/* ---- the client ---- */

/* Open the copy before the server is asked.  An old file keeps its bytes until then. */
static int open_copy(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	want(fd >= 0, path, "a file that can be written");
	return fd;
}

static void *map_copy(int fd, const char *path, uint64_t length)
{
	want(ftruncate(fd, (off_t)length) == 0, path, "room for the file");
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	want(at != MAP_FAILED, path, "a file that can be mapped");
	close(fd);
	return at;
}

/* Wait for the server's first message; a server of another kind sends none. */
static void await_offer(const char *uri, struct offer *offer_out)
{
	struct pollfd readable = {.fd = here.fd, .events = POLLIN};
	if (poll(&readable, 1, OFFER_MS) == 0) {
		fprintf(stderr,
			"%s: no message in %d s; expected the address of cci_file "
			"serve\n",
			uri, OFFER_MS / 1000);
		exit(1);
	}
	cci_event_t *event = await(CCI_EVENT_RECV);
	expect(event->recv.len == sizeof *offer_out, "the server's message");
	memcpy(offer_out, event->recv.ptr, sizeof *offer_out);
	done_with(event);
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
	int fd = open_copy(path);
	open_endpoint();
	cci_connection_t *server = connect_to(uri);
	await_offer(uri, &offer);
	void *copy = map_copy(fd, path, offer.length);
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
